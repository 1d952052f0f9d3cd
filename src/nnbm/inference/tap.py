"""TAP and susceptibility propagation: the second-order free energy F2 (EQ 3) and its response (EQ 4)."""

from __future__ import annotations

from nnbm.arrays import FloatArray
from nnbm.inference.naive import field_energy
from nnbm.inference.problem import Point
from nnbm.inference.response import Susceptibilities, second_order_response, susceptibilities

__all__ = ["Susp", "Tap"]


class Tap:
    """r_i = w_ii - sum_j w_ij² s_j; means and variances, no covariance."""

    name = "tap"

    def target(self, point: Point) -> FloatArray | None:
        """(n,) r of EQ 3; where it is not positive no site has these moments, and the sweep's limit keeps r > 0."""
        return point.problem.diagonal - point.problem.off_squared @ point.variance

    def stable(self, point: Point) -> bool:
        """Whether the solution is a minimum of F2."""
        return second_order_response(point) is not None

    def covariance(self, _: Point) -> FloatArray | None:
        """None: the paper's TAP equation alone gives none."""
        return None

    def free_energy(self, point: Point) -> float:
        """F2 (EQ 3)."""
        s = point.variance
        return field_energy(point) - 0.25 * float(s @ (point.problem.off_squared @ s))

    def log_partition(self, point: Point) -> float | None:
        """-F2."""
        return -self.free_energy(point)

    def susceptibilities(self, point: Point) -> Susceptibilities | None:
        """(M, V, L, R)."""
        found = second_order_response(point)
        return None if found is None else susceptibilities(point, found)


class Susp(Tap):
    """TAP with the covariances that its linear response gives."""

    name = "susp"

    def covariance(self, point: Point) -> FloatArray | None:
        """(n, n) M = dm/db (EQ 4.1)."""
        found = second_order_response(point)
        return None if found is None else found.means.inverse()

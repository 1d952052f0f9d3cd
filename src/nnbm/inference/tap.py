"""TAP and susceptibility propagation: the second-order free energy F2 (EQ 3) and its response (EQ 4)."""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.naive import field_energy
from nnbm.inference.problem import Point, Target
from nnbm.inference.response import Response, Susceptibilities, second_order_response, susceptibilities
from nnbm.kernels import kernel
from nnbm.linalg.dense import solve_in_place

__all__ = ["Susp", "Tap"]


_ROUNDS, _SETTLED = 3, 1e-12


@kernel(error_model="numpy")
def _look_ahead(
    off_squared: FloatArray, diagonal: FloatArray, r: FloatArray, cumulants: FloatArray, field_error: FloatArray,
    lower: FloatArray,
) -> FloatArray:  # fmt: skip
    """(n,) r with r_i = w_ii - sum_j w_ij² (s_j + ds_j), ds what a step to r does to s while (5.1) is restored.

    By rounds of substitution, which converge where fluctuations couple weakly; where they do not, ds = 0.
    """
    plain = diagonal - off_squared @ cumulants[1]
    found, s_step, last = plain, np.empty(r.size), np.inf
    for _ in range(_ROUNDS):
        step = found - r
        s_step[:] = -field_error - 0.5 * cumulants[2] / cumulants[1] * step
        solve_in_place(lower, s_step)
        for i in range(r.size):
            s, k3, k4 = cumulants[1, i], cumulants[2, i], cumulants[3, i]
            s_step[i] = (k3 * s_step[i] - 0.5 * (s * k4 + 2.0 * s * s * s - k3 * k3) * step[i]) / s
        better = plain - off_squared @ s_step
        moved = np.abs((better - found) / r).max()
        if not moved < last:
            return plain
        found, last = better, moved
        if moved < _SETTLED:
            break
    return found


class Tap:
    """r_i = w_ii - sum_j w_ij² s_j; means and variances, no covariance."""

    name = "tap"

    def response(self, point: Point) -> Response | None:
        """How the moments follow b; None where the solution is no minimum."""
        return second_order_response(point)

    def target(self, point: Point) -> Target | None:
        """The r of EQ 3 at the variances that it will itself bring about, to first order: nearly Newton's step.

        Where it is not positive no site has these moments, and the sweep's limit keeps r > 0.
        """
        if point.gaussian is None:
            return None
        problem = point.problem
        r = _look_ahead(
            problem.off_squared, problem.diagonal, point.r, point.moments.cumulants, point.field_error,
            point.gaussian.lower,
        )  # fmt: skip
        return Target(r)

    def stable(self, point: Point) -> bool:
        """Whether the solution is a minimum of the free energy."""
        return self.response(point) is not None

    def covariance(self, _: Point) -> FloatArray | None:
        """None: the paper's TAP equation alone gives none."""
        return None

    def free_energy(self, point: Point) -> float:
        """F2 (EQ 3)."""
        s = point.variance
        return field_energy(point) - 0.25 * float(s @ (point.problem.off_squared @ s))

    def log_partition(self, point: Point) -> float | None:
        """-F."""
        return -self.free_energy(point)

    def susceptibilities(self, point: Point) -> Susceptibilities | None:
        """(M, V, L, R)."""
        found = self.response(point)
        return None if found is None else susceptibilities(point, found)


class Susp(Tap):
    """TAP with the covariances that its linear response gives."""

    name = "susp"

    def covariance(self, point: Point) -> FloatArray | None:
        """(n, n) M = dm/db (EQ 4.1)."""
        found = self.response(point)
        return None if found is None else found.covariance

"""TAP and its response with the third order of the free energy: F3 (EQ 11)."""

from __future__ import annotations

from nnbm.inference.problem import Point, Target
from nnbm.inference.response import Response, third_order_response
from nnbm.inference.tap import Susp

__all__ = ["Tap3"]


class Tap3(Susp):
    """r_i = w_ii - sum_j w_ij² s_j + 2 T_s and the field -T_m, T the third order; covariances by linear response."""

    name = "tap3"

    def response(self, point: Point) -> Response | None:
        """How the moments follow b; None where the solution is no minimum of F3."""
        return third_order_response(point)

    def target(self, point: Point) -> Target | None:
        """What makes F3 stationary, at the moments of this point."""
        problem, third = point.problem, point.third_order
        r = problem.diagonal - problem.off_squared @ point.variance + 2.0 * third.by_variance
        return Target(r, -third.by_mean)

    def free_energy(self, point: Point) -> float:
        """F3 (EQ 11)."""
        return super().free_energy(point) + point.third_order.value

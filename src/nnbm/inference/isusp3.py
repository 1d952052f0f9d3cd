"""Diagonal consistency on top of the third-order free energy: the first of the paper's future studies (EQ 11)."""

from __future__ import annotations

from nnbm.inference.isusp import ISusP
from nnbm.inference.problem import Point, Target
from nnbm.inference.response import Response, third_order_response

__all__ = ["ISusP3"]


class ISusP3(ISusP):
    """r such that M_ii = s_i with F3's response M, and F3's field; ln Z is worked out as for `isusp`."""

    name = "isusp3"

    def response(self, point: Point) -> Response | None:
        """How the moments follow b at fixed Lambda; None where the solution is no minimum of F3 - sum Lambda s / 2."""
        return third_order_response(point)

    def target(self, point: Point) -> Target | None:
        """The r + 1/M_ii - 1/s_i; None where the Hessian is not positive definite."""
        found = super().target(point)
        return None if found is None else Target(found.r, -point.third_order.by_mean)

    def free_energy(self, point: Point) -> float:
        """F3 - 1/2 sum_i Lambda_i s_i, Lambda_i = w_ii - r_i - sum_j w_ij² s_j + 2 T_s."""
        third = point.third_order
        return super().free_energy(point) + third.value - float(third.by_variance @ point.variance)

"""Improved susceptibility propagation, the paper's proposal: TAP with diagonal consistency, as a fixed point (EQ 5)."""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.naive import field_energy
from nnbm.inference.problem import Point, Sweep, Target
from nnbm.inference.response import Response, Susceptibilities, second_order_response, susceptibilities
from nnbm.inference.solver import Options, iterate

__all__ = ["ISusP"]

_LEGENDRE = np.polynomial.legendre.leggauss(8)
# from t = 1 downwards, so that each solution starts the next
_NODES, _WEIGHTS = 0.5 * (_LEGENDRE[0][::-1] + 1.0), 0.5 * _LEGENDRE[1][::-1]


class ISusP:
    """r such that the response of each variable to its own bias is its variance, M_ii = s_i (EQ 5.2)."""

    name = "isusp"

    def response(self, point: Point) -> Response | None:
        """How the moments follow b at fixed Lambda; None where the solution is no minimum."""
        return second_order_response(point)

    def target(self, point: Point) -> Target | None:
        """The r + 1/M_ii - 1/s_i; None where the Hessian is not positive definite."""
        found = self.response(point)
        if found is None:
            return None
        return Target(point.r + 1.0 / found.diagonal - 1.0 / point.variance)

    def stable(self, point: Point) -> bool:
        """Whether the solution is a minimum of the free energy at its Lambda."""
        return self.response(point) is not None

    def covariance(self, point: Point) -> FloatArray | None:
        """(n, n) M, whose diagonal is the variances."""
        found = self.response(point)
        return None if found is None else found.covariance

    def free_energy(self, point: Point) -> float:
        """F-dagger (EQ 3) at its Lambda; it ranks solutions, but as ln Z it is less accurate than `log_partition`."""
        s, back = point.variance, point.problem.diagonal - point.r
        plain = 0.25 * float(s @ (point.problem.off_squared @ s))
        return field_energy(point) + plain - 0.5 * float(back @ s)

    def log_partition(self, point: Point) -> float | None:
        """ln Z by switching the couplings off: d ln Z/dt = -sum_E w_ij <y_i y_j>_t, followed from t = 1 to 0.

        y = x - o, o the walls where variables have one, else this solution's means: moving or mirroring the domain
        then changes nothing, and a wall that is far away is not felt. None where the solution cannot be followed.
        """
        problem = point.problem
        origin = problem.origin_about(point.moments)
        at_origin = problem.off @ origin
        state, total = problem.state(point.l, point.r), 0.5 * float(origin @ at_origin)
        for t, weight in zip(_NODES, _WEIGHTS, strict=True):
            weakened = problem.weakened(t, origin)
            found = iterate(Sweep(weakened, self), state, Options())
            here = weakened.point(found.y)
            covariance = self.covariance(here) if found.converged else None
            if covariance is None:
                return None
            state = found.y
            apart = here.mean - origin
            total -= 0.5 * weight * float(np.sum(problem.off * covariance) + apart @ problem.off @ apart)
        alone = problem.site.moments(problem.bias - at_origin, problem.diagonal)
        return float(alone.log_partition.sum()) + total

    def susceptibilities(self, point: Point) -> Susceptibilities | None:
        """(M, V, L, R)."""
        found = self.response(point)
        return None if found is None else susceptibilities(point, found)

"""Naive mean field: every variable sees the others' means only (EQ 3 without the w² terms)."""

from __future__ import annotations

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Point, Target
from nnbm.inference.response import Susceptibilities

__all__ = ["Naive", "field_energy"]


class Naive:
    """r_i = w_ii; covariance by linear response, (W_off + diag 1/s)^{-1}."""

    name = "naive"

    def target(self, point: Point) -> Target | None:
        """w_ii."""
        return Target(point.problem.diagonal)

    def stable(self, point: Point) -> bool:
        """Whether the solution is a minimum of the free energy."""
        return point.gaussian is not None

    def covariance(self, point: Point) -> FloatArray | None:
        """(n, n) dm/db."""
        return None if point.gaussian is None else point.gaussian.inverse()

    def free_energy(self, point: Point) -> float:
        """The first-order variational free energy."""
        return field_energy(point)

    def log_partition(self, point: Point) -> float | None:
        """-F: a lower bound of ln Z."""
        return -field_energy(point)

    def susceptibilities(self, _: Point) -> Susceptibilities | None:
        """None: r does not respond."""
        return None


def field_energy(point: Point) -> float:
    """The first-order free energy at (5.1): sites, means and pairs; the sum over i of EQ 3 without its w² terms."""
    p, m = point.problem, point.mean
    v = point.moments.second_moment
    own = (point.l - p.bias) @ m + 0.5 * (p.diagonal - point.r) @ v - point.moments.log_partition.sum()
    return float(own + 0.5 * m @ (p.off @ m))

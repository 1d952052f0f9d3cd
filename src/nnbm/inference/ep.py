"""Expectation propagation, alias adaptive TAP (EQ 6), in the same variables as the other closures.

With tau = 1/s - r and nu = m/s - l the Gaussian's mean equation becomes EQ 5.1, and its precision is G = W + diag(tau).
What is left is that the Gaussian's variances be the sites', [G^{-1}]_ii = s_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Point
from nnbm.inference.response import Susceptibilities
from nnbm.linalg.dense import factor

__all__ = ["EP", "MeanResponse", "mean_response"]


class EP:
    """r such that [G^{-1}]_ii = s_i; covariance by linear response, which is more accurate than G^{-1}."""

    name = "ep"

    def target(self, point: Point) -> FloatArray | None:
        """(n,) the cavity's r = 1/[G^{-1}]_ii - tau_i; None where the Gaussian does not exist."""
        if point.gaussian is None:
            return None
        return point.r + 1.0 / point.gaussian.inverse_diagonal() - 1.0 / point.variance

    def stable(self, point: Point) -> bool:
        """Whether the linear response is a covariance."""
        return self.covariance(point) is not None

    def covariance(self, point: Point) -> FloatArray | None:
        """(n, n) dm/db through the fixed point; None if it is not positive definite."""
        found = mean_response(point)
        return None if found is None else found.covariance

    def free_energy(self, point: Point) -> float:
        """-ln Z_EP."""
        value = self.log_partition(point)
        return np.inf if value is None else -value

    def susceptibilities(self, _: Point) -> Susceptibilities | None:
        """None: the paper's four matrices belong to its own free energy."""
        return None

    def log_partition(self, point: Point) -> float | None:
        """ln Z_EP: the Gaussian's, and every site's exact integral in place of its Gaussian's (EQ 6)."""
        if point.gaussian is None:
            return None
        m, s = point.mean, point.variance
        shift = point.problem.bias + m / s - point.l
        gauss = 0.5 * shift @ m - 0.5 * point.gaussian.log_determinant
        sites = point.moments.log_partition - 0.5 * np.log(s) - 0.5 * m * m / s
        return float(gauss + sites.sum())


@dataclass(frozen=True)
class MeanResponse:
    """How a solution of EP follows b: dm = covariance db and dr = -reaction dm, both (n, n)."""

    covariance: FloatArray
    reaction: FloatArray


def mean_response(point: Point) -> MeanResponse | None:
    """Linear response of EP's fixed point; None where dm/db is not positive definite.

    From d[G^{-1}]_ii = ds_i: with P = (G^{-1})_ij², i != j, K = diag(k3/s³), U = diag(k3²/2s³ - k4/2s²),
    (P U + diag s²) dr = -P K dm and G dm = db - diag(k3/2s) dr.
    """
    reaction = _reaction(point)
    if point.gaussian is None or reaction is None:
        return None
    stiffness = point.gaussian.matrix()
    stiffness -= (0.5 * point.moments.third_cumulant / point.variance)[:, None] * reaction
    found = factor(0.5 * (stiffness + stiffness.T))
    return None if found is None else MeanResponse(found.inverse(), reaction)


def _reaction(point: Point) -> FloatArray | None:
    """(n, n) -dr/dm of EP's fixed point; a function of its own so that its matrices are gone when it is done."""
    if point.gaussian is None:
        return None
    s, k3, k4 = point.moments.cumulants[1:4]
    squares = point.gaussian.inverse() ** 2
    np.fill_diagonal(squares, 0.0)
    left = squares * (0.5 * k3 * k3 / s**3 - 0.5 * k4 / s**2)
    left.flat[:: s.size + 1] += s * s
    lu, pivots, info = lapack.dgetrf(left)
    return lapack.dgetrs(lu, pivots, squares * (k3 / s**3))[0] if info == 0 else None

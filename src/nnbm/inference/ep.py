"""Expectation propagation, alias adaptive TAP (EQ 6), in the same variables as the other closures.

With tau = 1/s - r and nu = m/s - l the Gaussian's mean equation becomes EQ 5.1, and its precision is G = W + diag(tau).
What is left is that the Gaussian's variances be the sites', [G^{-1}]_ii = s_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Point, Target
from nnbm.inference.response import Susceptibilities
from nnbm.kernels import kernel
from nnbm.linalg.dense import Factor, factor

__all__ = ["EP", "MeanResponse", "mean_response"]


class EP:
    """r such that [G^{-1}]_ii = s_i; covariance by linear response, which is more accurate than G^{-1}."""

    name = "ep"

    def target(self, point: Point) -> Target | None:
        """The cavity's r = 1/[G^{-1}]_ii - tau_i; None where the Gaussian does not exist."""
        if point.gaussian is None:
            return None
        return Target(point.r + 1.0 / point.gaussian.inverse_diagonal() - 1.0 / point.variance)

    def stable(self, point: Point) -> bool:
        """Whether the linear response is a covariance."""
        return mean_response(point) is not None

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
    """How a solution of EP follows b: dm = means^{-1} db and dr = -reaction dm, (n, n)."""

    means: Factor
    reaction: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """(n, n) dm/db."""
        return self.means.inverse()


def mean_response(point: Point, covariance: FloatArray | None = None) -> MeanResponse | None:
    """Linear response of EP's fixed point; None where dm/db is not positive definite. covariance: G^{-1} if known.

    From d[G^{-1}]_ii = ds_i: with P = (G^{-1})_ij², i != j, K = diag(k3/s³), U = diag(k3²/2s³ - k4/2s²),
    (P U + diag s²) dr = -P K dm and G dm = db - diag(k3/2s) dr.
    """
    if point.gaussian is None:
        return None
    cumulants = point.moments.cumulants
    reaction = _reaction(point.gaussian.inverse() if covariance is None else covariance, cumulants)
    if reaction is None:
        return None
    back = point.problem.diagonal - point.r
    found = factor(_stiffness(point.problem.off, back, cumulants, reaction), overwrite=True)
    return None if found is None else MeanResponse(found, reaction)


def _reaction(covariance: FloatArray, cumulants: FloatArray) -> FloatArray | None:
    """(n, n) -dr/dm of EP's fixed point."""
    # column by column, so that LAPACK works in place
    left, right = (np.empty(covariance.shape, order="F") for _ in range(2))
    _fill_reaction(covariance, cumulants, left, right)
    lu, pivots, info = lapack.dgetrf(left, overwrite_a=1)
    return lapack.dgetrs(lu, pivots, right, overwrite_b=1)[0] if info == 0 else None


@kernel(error_model="numpy")
def _fill_reaction(covariance: FloatArray, cumulants: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """P U + diag s², P K."""
    n = covariance.shape[0]
    for j in range(n):
        s, k3, k4 = cumulants[1, j], cumulants[2, j], cumulants[3, j]
        by_r, by_mean = 0.5 * (k3 * k3 / s - k4) / (s * s), k3 / (s * s * s)
        for i in range(n):
            square = covariance[j, i] * covariance[j, i]
            left[i, j], right[i, j] = square * by_r, square * by_mean
        left[j, j], right[j, j] = s * s, 0.0


@kernel(error_model="numpy")
def _stiffness(off: FloatArray, back: FloatArray, cumulants: FloatArray, reaction: FloatArray) -> FloatArray:
    """G - diag(k3/2s) reaction, its symmetric part's lower triangle, column by column."""
    n = back.size
    pull = 0.5 * cumulants[2] / cumulants[1]
    matrix = np.empty((n, n))
    for j in range(n):
        matrix[j, j] = back[j] + 1.0 / cumulants[1, j] - pull[j] * reaction[j, j]
        for i in range(j + 1, n):
            matrix[j, i] = off[j, i] - 0.5 * (pull[i] * reaction[i, j] + pull[j] * reaction[j, i])
    return matrix.T

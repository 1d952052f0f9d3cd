"""The leading cumulant correction of EP (EQ 12): what third and fourth cumulants still change of ln Z and of the means.

R = 1/12 sum_ij k3_i k3_j Q_ij³ + 1/48 sum_ij k4_i k4_j Q_ij⁴, Q_ij = S_ij / (S_ii S_jj), i != j, S = G^{-1};
<x> ~ m + dR/db, the total derivative through EP's fixed point. Opper, Paquet & Winther (2013). Here it judges EP and
I-SusP against each other.
"""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.ep import mean_response
from nnbm.inference.problem import Point

__all__ = ["correction", "mean_correction"]


def correction(point: Point) -> float:
    """R (12.1) at a solution of EP."""
    ratio, k3, k4 = _ratio(point), point.moments.third_cumulant, point.moments.fourth_cumulant
    return float(k3 @ (ratio**3 @ k3) / 12.0 + k4 @ (ratio**4 @ k4) / 48.0)


def mean_correction(point: Point) -> FloatArray | None:
    """(n,) dR/db at a solution of EP; None where EP's linear response does not exist.

    R depends on b through k3, k4 of each site (its l and r) and through the diagonal 1/s - r of G; these follow the
    means by dr = -T dm and dl = (dm - m_r dr)/s, and the means follow b by EP's response M: one adjoint chain.
    """
    response = mean_response(point)
    if response is None or point.gaussian is None:
        return None
    moments, ratio = point.moments, _ratio(point)
    s, k3, k4 = moments.cumulants[1:4]
    by_k3, by_k4 = ratio**3 @ k3 / 6.0, ratio**4 @ k4 / 24.0
    by_ratio = np.outer(k3, k3) * ratio**2 / 4.0 + np.outer(k4, k4) * ratio**3 / 12.0
    by_stiffness = _by_diagonal_of_precision(point.gaussian.inverse(), by_ratio)
    up, side = moments.by_l, moments.by_r
    by_l = by_k3 * up.third_cumulant + by_k4 * up.fourth_cumulant - by_stiffness * up.variance / s**2
    by_r = by_k3 * side.third_cumulant + by_k4 * side.fourth_cumulant - by_stiffness * (side.variance / s**2 + 1.0)
    by_mean = by_l / s
    by_mean -= response.reaction.T @ (by_r - by_l * side.mean / s)
    return response.covariance @ by_mean


def _ratio(point: Point) -> FloatArray:
    """(n, n) Q with a zero diagonal."""
    if point.gaussian is None:
        return np.full((point.l.size, point.l.size), np.nan)
    covariance = point.gaussian.inverse()
    variance = np.diagonal(covariance)
    ratio = covariance / np.outer(variance, variance)
    np.fill_diagonal(ratio, 0.0)
    return ratio


def _by_diagonal_of_precision(covariance: FloatArray, by_ratio: FloatArray) -> FloatArray:
    """(n,) dR/dG_kk from dR/dQ: dS = -S dG S, and Q_ij = S_ij / (S_ii S_jj)."""
    variance = np.diagonal(covariance)
    by_covariance = by_ratio / np.outer(variance, variance)
    np.fill_diagonal(by_covariance, 0.0)
    lost = -2.0 * np.sum(by_covariance * covariance, axis=1) / variance
    by_covariance.flat[:: variance.size + 1] = lost
    return -np.einsum("ki,ij,jk->k", covariance, by_covariance, covariance, optimize=True)

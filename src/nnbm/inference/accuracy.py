"""How wrong a converged solution may be: what the better closures would still change, to first order."""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.ep import EP, mean_response
from nnbm.inference.isusp import ISusP
from nnbm.inference.problem import Closure, Point

__all__ = ["expected_error"]

# how far from the sites' standard deviations to the response's the truth lies: 0.55 to 1 where they differ most
_RESPONSE_SHARE = 0.6
_JUDGES: tuple[Closure, ...] = (ISusP(), EP())


def expected_error(point: Point) -> float:
    """Largest expected error of a mean or of a standard deviation, in units of that standard deviation.

    I-SusP and EP make errors of different kinds, so the shift that either of them asks for at the other's solution,
    or at any, tells what the closure is worth; EP's third-cumulant correction of the means (EQ 12) joins them, and
    so do the variances of EP's linear response, which part from the sites' where two modes begin to form.
    """
    if point.gaussian is None:
        return np.inf
    s, k3, k4 = point.moments.cumulants[1:4]
    determinant = s * k4 + 2.0 * s**3 - k3 * k3
    shifts = [_cumulant_shift(point, point.gaussian.inverse()) / np.sqrt(s)]
    for judge in _JUDGES:
        target = judge.target(point)
        mean_shift = None if target is None else point.mean_shift(target - point.r)
        if target is None or mean_shift is None:
            continue
        # ds = k3 dl + s_r dr, with dl from dm = s dl + m_r dr
        variance_shift = (k3 * mean_shift - 0.5 * determinant * (target - point.r)) / s
        shifts += [mean_shift / np.sqrt(s), 0.5 * variance_shift / s]
    response = mean_response(point)
    if response is not None:
        shifts.append(_RESPONSE_SHARE * 0.5 * (np.diagonal(response.covariance) / s - 1.0))
    return float(max(np.abs(shift).max() for shift in shifts))


def _cumulant_shift(point: Point, covariance: FloatArray) -> FloatArray:
    """(n,) how far the leading correction of ln Z_EP, 1/12 sum_ij k3_i k3_j Q_ij³, moves the means."""
    _, s, k3, k4 = point.moments.cumulants[:4]
    variance = np.diagonal(covariance)
    cubes = (covariance / np.outer(variance, variance)) ** 3
    np.fill_diagonal(cubes, 0.0)
    return covariance @ (k4 / s * (cubes @ k3)) / 6.0

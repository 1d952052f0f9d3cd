"""How wrong a converged solution may be: what the better closures would still change, to first order."""

from __future__ import annotations

import math

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.ep import mean_response
from nnbm.inference.problem import Point
from nnbm.kernels import kernel
from nnbm.linalg.dense import solve_in_place

__all__ = ["expected_error"]

# how far from the sites' standard deviations to the response's the truth lies: 0.55 to 1 where they differ most
_RESPONSE_SHARE = 0.6


def expected_error(point: Point) -> float:
    """Largest expected error of a mean or of a standard deviation, in units of that standard deviation.

    I-SusP and EP make errors of different kinds, so the shift that either of them asks for at the other's solution,
    or at any, tells what the closure is worth; EP's third-cumulant correction of the means (EQ 12) joins them, and
    so do the variances of EP's linear response, which part from the sites' where two modes begin to form.
    """
    if point.gaussian is None:
        return math.inf
    covariance, cumulants = point.gaussian.inverse(), point.moments.cumulants
    largest = _largest_cumulant_shift(covariance, cumulants)
    # both closures ask for r + 1/M_ii - 1/s_i (EQ 5.2, 6), each with the response that it believes in
    beliefs = [covariance.diagonal()]
    if point.second_order is not None:
        beliefs.append(point.second_order.covariance.diagonal())
    for believed in beliefs:
        shift = _largest_closure_shift(point.gaussian.lower, point.field_error, cumulants, believed)
        largest = max(largest, shift)
    response = mean_response(point, covariance)
    if response is not None:
        spread = response.means.inverse_diagonal() / point.variance - 1.0
        largest = max(largest, 0.5 * _RESPONSE_SHARE * float(np.abs(spread).max()))
    return largest


@kernel(error_model="numpy")
def _largest_cumulant_shift(covariance: FloatArray, cumulants: FloatArray) -> float:
    """How far the leading correction of ln Z_EP, 1/12 sum_ij k3_i k3_j Q_ij³, moves a mean, in its sd."""
    n = covariance.shape[0]
    scaled, pushed = np.empty(n), np.empty(n)
    for j in range(n):
        scaled[j] = cumulants[2, j] / covariance[j, j] ** 3
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += covariance[i, j] * covariance[i, j] * covariance[i, j] * scaled[j]
        total -= cumulants[2, i]
        pushed[i] = cumulants[3, i] / cumulants[1, i] * total / covariance[i, i] ** 3 / 6.0
    return _largest(covariance @ pushed / np.sqrt(cumulants[1]))


@kernel(error_model="numpy")
def _largest_closure_shift(
    lower: FloatArray, field_error: FloatArray, cumulants: FloatArray, believed: FloatArray
) -> float:
    """How far the step to r + 1/believed - 1/s, restoring (5.1), moves a mean or an sd, in that sd."""
    n = believed.size
    r_shift, mean_shift, shifts = np.empty(n), np.empty(n), np.empty((2, n))
    for i in range(n):
        s, k3 = cumulants[1, i], cumulants[2, i]
        r_shift[i] = 1.0 / believed[i] - 1.0 / s
        mean_shift[i] = -field_error[i] - 0.5 * k3 / s * r_shift[i]
    solve_in_place(lower, mean_shift)
    for i in range(n):
        s, k3, k4 = cumulants[1, i], cumulants[2, i], cumulants[3, i]
        # ds = k3 dl + s_r dr, with dl from dm = s dl + m_r dr
        variance_shift = (k3 * mean_shift[i] - 0.5 * (s * k4 + 2.0 * s * s * s - k3 * k3) * r_shift[i]) / s
        shifts[0, i], shifts[1, i] = mean_shift[i] / math.sqrt(s), 0.5 * variance_shift / s
    return _largest(shifts)


@kernel()
def _largest(values: FloatArray) -> float:
    """The largest size; inf, that is nothing known, where one is not a number."""
    found = 0.0
    for value in values.flat:
        if not abs(value) <= found:
            found = abs(value) if abs(value) < np.inf else np.inf  # noqa: FURB136 (min would keep NaN)
    return found

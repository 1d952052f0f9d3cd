"""The (l, r) on x >= 0 that have a given mean and variance: one root per site in z = l/sqrt r (EQ 2)."""

from __future__ import annotations

import math

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.site.half_line_statistics import (
    GAP_LIMIT,
    INVERSE,
    NODES_PER_UNIT,
    TABLE_END,
    TABLE_START,
    TAYLOR,
    from_hazard,
    from_table,
    tail_polynomial,
)
from nnbm.site.rounding import product

__all__ = [
    "fill_from_second",
    "fill_from_variance",
    "natural_from_scaled",
    "natural_from_second",
    "natural_from_variance",
    "second_minus_square",
]

_NODE_SHARE: FloatArray = TAYLOR[:, 2] / TAYLOR[:, 1] ** 2  # variance / mean², falling with z
_SHARE_AT_TABLE_END = float(_NODE_SHARE[-1])
_NEWTON_STEPS, _LAST_STEP = 6, 1e-8  # convergence is quadratic: after a step below 1e-8 rounding is reached
_NORMAL_SHARE = 1e-100  # of variance in mean²: below it r = 1/variance and l = mean/variance to the last digit


@kernel()
def second_minus_square(second: float, mean: float, times: float) -> float:
    """Times mean² - second without rounding the square; times is 1 or 2."""
    square, rest = product(mean, mean)
    return (times * square - second) + times * rest


@kernel()
def _start_in_table(share: float) -> float:
    """Linear interpolation of z between the two nodes around `share`: right to about 1e-3."""
    low, high = 0, _NODE_SHARE.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if _NODE_SHARE[middle] > share:
            low = middle
        else:
            high = middle
    part = (_NODE_SHARE[low] - share) / (_NODE_SHARE[low] - _NODE_SHARE[high])
    return TABLE_START + (low + part) / NODES_PER_UNIT


@kernel()
def _root_in_table(share: float) -> tuple[float, float]:
    """The z in [-8, 4] whose variance / mean² is `share`, and the mean there at r = 1."""
    z = _start_in_table(share)
    k1 = 0.0
    for _ in range(_NEWTON_STEPS):
        _, k1, k2, k3, _, _, _ = from_table(z)
        inverse = 1.0 / k1
        value = k2 * inverse * inverse
        step = (share - value) / ((k3 * inverse - 2.0 * value * k2) * inverse)
        moved = min(max(z + step, TABLE_START), TABLE_END)
        k1 += k2 * (moved - z)
        z = moved
        if abs(step) < _LAST_STEP:
            break
    return z, k1


@kernel()
def _root_beyond_table(share: float) -> tuple[float, float]:
    """The same for z > 4, where mean / sd is z but for a hazard below 1e-3."""
    target = 1.0 / math.sqrt(share)
    z, k1 = target, target
    for _ in range(_NEWTON_STEPS):
        _, k1, k2, k3, _, _, _ = from_hazard(z)
        root = math.sqrt(k2)
        step = (target - k1 / root) / (root - 0.5 * k1 * k3 / (k2 * root))
        k1 += k2 * step
        z += step
        if abs(step) < _LAST_STEP:
            break
    return z, k1


@kernel()
def natural_from_scaled(mean: float, variance: float, gap: float) -> tuple[float, float]:
    """(l, r) on x >= 0 from the mean, the variance and gap = mean² - variance, all positive.

    The three are given apart because near either limit, variance -> 0 or gap -> 0, the small one carries all
    the information and must not come from a difference of the other two.
    """
    square = mean * mean
    if gap < GAP_LIMIT * square:
        g = gap / square
        t = g / GAP_LIMIT
        total = 0.0
        for j in range(INVERSE.size - 1, -1, -1):
            total = total * t + INVERSE[j]
        u = g * total
        first = tail_polynomial(1, 64.0 * u)
        return -first / mean, u * (first / mean) ** 2
    share = variance / square
    if share < _SHARE_AT_TABLE_END:
        z, k1 = _root_beyond_table(share)
    else:
        z, k1 = _root_in_table(share)
    root = k1 / mean
    return z * root, root * root


@kernel()
def _in_units(mean: float, variance: float, gap: float, exponent: int) -> tuple[float, float]:
    """`natural_from_scaled` where x = 2^exponent y, so that l_x = 2^-exponent l_y and r_x = 4^-exponent r_y."""
    if not (mean > 0.0 and variance > 0.0 and gap > 0.0):
        return np.nan, np.nan
    l, r = natural_from_scaled(mean, variance, gap)
    return math.ldexp(l, -exponent), math.ldexp(r, -2 * exponent)


@kernel()
def natural_from_second(mean: float, second: float) -> tuple[float, float]:
    """(l, r) on x >= 0 from mean and second moment; NaN if there is none. Beyond floats inf or 0.

    In units of a power of two the mean lies between 1/2 and 1, so that no square leaves the floats.
    """
    m, exponent = math.frexp(mean)
    v = math.ldexp(second, -2 * exponent)
    return _in_units(m, -second_minus_square(v, m, 1.0), second_minus_square(v, m, 2.0), exponent)


@kernel(error_model="numpy")
def natural_from_variance(mean: float, variance: float) -> tuple[float, float]:
    """The same from mean and variance."""
    m, exponent = math.frexp(mean)
    s = math.ldexp(variance, -2 * exponent)
    if mean > 0.0 and variance > 0.0 and s < _NORMAL_SHARE:
        # as narrow as this it is a normal, and the scaled variance may have lost digits to underflow
        return mean / variance, 1.0 / variance
    return _in_units(m, s, second_minus_square(s, m, 1.0), exponent)


@kernel()
def fill_from_second(mean: FloatArray, second: FloatArray, l: FloatArray, r: FloatArray) -> None:
    """`natural_from_second` of all."""
    for k in range(mean.size):
        l[k], r[k] = natural_from_second(mean[k], second[k])


@kernel()
def fill_from_variance(mean: FloatArray, variance: FloatArray, l: FloatArray, r: FloatArray) -> None:
    """`natural_from_variance` of all."""
    for k in range(mean.size):
        l[k], r[k] = natural_from_variance(mean[k], variance[k])

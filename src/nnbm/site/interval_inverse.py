"""The (l, r) on 0 <= x <= width that have a given mean and variance.

On the unit interval, with the mean in its lower half, exp(l x - r x²/2) = exp(l x(1 - x) + tilt x²), tilt = l - r/2:
the features x(1 - x) and x² have positive means that stay precise in every limit, a normal, an exponential at the
wall, two points. Newton's method solves for their logarithms, from one of three starts: the half line's answer
where the far wall hardly matters, two exponential spikes where most of the mass is close to an end, and else Stein's
identity for the moments that a Beta law would have.
"""

from __future__ import annotations

import math

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.site.half_line_inverse import natural_from_variance
from nnbm.site.interval_statistics import FAR, far_depth, unit_nodes
from nnbm.site.rounding import product, slope_at

__all__ = ["gap_below_two_points", "interval_natural"]

_STEPS, _SOLVED = 60, 1e-13
_GOOD_ENOUGH = 1e-9  # where rounding keeps Newton from getting further
_SPIKES = 0.05  # of <x (1 - x)>: below it most of the mass is close to an end
_HARDLY_SEEN = 8.0  # depth of the far end for which the half line is a start
_STEEP = 10.0  # beyond it Newton's step is one in ln(-l)
_LARGEST = 4e9  # -l, where the far end matters: floats l and r then tell its weight to 1e-6


@kernel()
def gap_below_two_points(near: float, variance: float, width: float) -> float:
    """near (width - near) - variance without rounding the products; near <= width/2."""
    high, low = product(near, width)
    square, rest = product(near, near)
    return ((high - variance) - square) + (low - rest)


@kernel(error_model="numpy")
def _from_spikes(mean: float, variance: float, gap: float) -> tuple[float, float]:
    """(l, tilt) of exponentials at the ends: exp(-a x) with weight 1 - p and exp(-c (1 - x)), to first order in 1/a."""
    rate = 1.0 / (gap * (1.0 + 2.0 * gap))
    second = variance + mean * mean
    weight = (second - 2.0 / (rate * rate)) / (1.0 - 2.0 / rate)
    if weight * rate * rate > 1.0:
        a, tilt = rate, 0.0
        for _ in range(3):
            odds = math.log(weight / (1.0 - weight))
            far = max(a + 2.0 * tilt, 0.1 * a)
            tilt = odds + math.log(far / a)
            a = rate * (1.0 - weight + weight * a / far)
            weight = (second - (1.0 - weight) * 2.0 / (a * a)) / (1.0 - 2.0 / far)
        return -a, min(tilt, 0.0)
    # the far end has a share below 1/a², which a steep exponential's own excess variance may outweigh
    a, excess = 1.0 / mean, variance / (mean * mean) - 1.0
    fall = 0.5 * excess * a * a
    if fall > a:
        fall = min(fall, 2.0 * a + 2.0 * math.log(excess / (a * a)))
    return -a, 0.5 * fall - a


@kernel(error_model="numpy")
def _from_beta(mean: float, variance: float, gap: float) -> tuple[float, float]:
    """(l, tilt) from <f' + f (l - r x)> = 0, f = x (1 - x) and x² (1 - x), with a Beta third and fourth moments."""
    size = gap / variance
    third = gap * (mean * size + 1.0) / (size + 2.0)
    fourth = third * (mean * size + 2.0) / (size + 3.0)
    one, other = 1.0 - 2.0 * mean, 2.0 * mean - 3.0 * (variance + mean * mean)
    determinant = third * third - gap * fourth
    l = (one * fourth - third * other) / determinant
    r = (third * one - gap * other) / determinant
    return l, min(l - 0.5 * r, 0.0)


@kernel(error_model="numpy")
def _start(mean: float, variance: float, gap: float) -> tuple[float, float]:
    """(l, tilt) to start from."""
    if variance < mean * mean:
        l, r = natural_from_variance(mean, variance)
        if l < 0.7 * r and far_depth(l, r, 1.0) > _HARDLY_SEEN:
            return l, l - 0.5 * r
    elif gap < _SPIKES:
        return _from_spikes(mean, variance, gap)
    return _from_beta(mean, variance, gap)


@kernel(error_model="numpy")
def _unit_features(l: float, tilt: float, nodes: FloatArray) -> tuple[float, float, float, float, float]:
    """<x (1 - x)>, <x²>, and the variances and covariance (11, 12, 22) of both divided by these means."""
    count, _ = unit_nodes(-l, 2.0 * tilt - l, 2.0 * (l - tilt), tilt, nodes)
    total, first, second = 0.0, 0.0, 0.0
    for m in range(count):
        x, mass = nodes[0, m], nodes[1, m]
        total += mass
        first += mass * x * nodes[2, m]
        second += mass * x * x
    first, second = first / total, second / total
    v11, v12, v22 = 0.0, 0.0, 0.0
    for m in range(count):
        x, mass = nodes[0, m], nodes[1, m]
        one, other = x * nodes[2, m] / first - 1.0, x * x / second - 1.0
        v11 += mass * one * one
        v12 += mass * one * other
        v22 += mass * other * other
    return first, second, v11 / total, v12 / total, v22 / total


@kernel(error_model="numpy")
def _solve(mean: float, variance: float, gap: float, nodes: FloatArray) -> tuple[float, float]:
    """(l, tilt) on the unit interval; inf where Newton's method does not get there."""
    second = variance + mean * mean
    l, tilt = _start(mean, variance, gap)
    error = np.inf
    for _ in range(_STEPS):
        first_now, second_now, v11, v12, v22 = _unit_features(l, tilt, nodes)
        one, other = math.log(gap / first_now), math.log(second / second_now)
        last, error = error, max(abs(one), abs(other))
        if error < _SOLVED or (error < _GOOD_ENOUGH and error > 0.5 * last):
            return l, tilt
        determinant = v11 * v22 - v12 * v12
        step = (v22 * one - v12 * other) / (determinant * first_now)
        tilt = min(tilt + (v11 * other - v12 * one) / (determinant * second_now), 0.5)
        l = l * math.exp(min(max(step / l, -1.0), 1.0)) if l < -_STEEP else l + step
    return np.inf, np.inf


@kernel(error_model="numpy")
def _natural_near(near: float, variance: float, width: float, nodes: FloatArray) -> tuple[float, float]:
    """`interval_natural` where the mean `near` is in the lower half."""
    if not (near > 0.0 and variance > 0.0):
        return np.nan, np.nan
    if variance < near * near:
        l, r = natural_from_variance(near, variance)
        if far_depth(l, r, width) > FAR:
            return l, r
    # in a unit that is a power of two, so that no product leaves the floats
    size, exponent = math.frexp(width)
    near, variance = math.ldexp(near, -exponent), math.ldexp(variance, -2 * exponent)
    gap = gap_below_two_points(near, variance, size)
    if not gap > 0.0:
        return np.nan, np.nan
    square = size * size
    l, tilt = _solve(near / size, variance / square, gap / square, nodes)
    if -l > _LARGEST and tilt > -100.0:
        return np.inf, np.inf
    return math.ldexp(l / size, -exponent), math.ldexp(2.0 * (l - tilt) / square, -2 * exponent)


@kernel(error_model="numpy")
def interval_natural(mean: float, variance: float, width: float, nodes: FloatArray) -> tuple[float, float]:
    """(l, r) on 0 <= x <= width from mean and variance; NaN where there is none, inf where floats cannot tell it.

    They exist iff 0 < mean < width and 0 < variance < mean (width - mean); the upper limit, r -> -inf, is two points.
    `nodes` is a `workspace`. Moments of the answer are those asked for to 1e-10, or to the rounding of r itself
    where the mass is at both ends: its weights follow from l - r width/2, a difference.
    """
    if mean <= 0.5 * width:
        return _natural_near(mean, variance, width, nodes)
    l, r = _natural_near(width - mean, variance, width, nodes)
    if not -np.inf < r < np.inf:
        return l, r
    return -slope_at(width, l, r), r

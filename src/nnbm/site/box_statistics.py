"""One variable on [lower, upper], either end possibly infinite: which kernel answers, moved to where the variable is.

A half line that does not begin at 0 is moved, one that is bounded above is reflected, the whole line is a normal. So
are all others whose ends are out of sight, unless one of them is 0, from where nothing is lost; an interval is seen
from the end that is nearer to 0.

Products with the place of a wall are rounded once (Dekker), so that a wall at 0 changes no bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.site.half_line_inverse import natural_from_second, natural_from_variance, second_minus_square
from nnbm.site.half_line_statistics import higher, statistics
from nnbm.site.interval_inverse import interval_natural
from nnbm.site.interval_statistics import interval_higher, interval_statistics_in, workspace
from nnbm.site.moments import Statistics
from nnbm.site.rounding import log_density_at, slope_at

__all__ = [
    "box_statistics",
    "ends_are_out_of_sight",
    "fill_from_second",
    "fill_from_variance",
    "fill_higher",
    "fill_statistics",
    "find_refused",
    "is_seen_from_below",
]

_OUT_OF_SIGHT = 40.0  # standard deviations from a normal's mean to where its density is below all floats
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel(error_model="numpy")
def _is_refused(l: float, r: float, lower: float, upper: float) -> bool:
    """Whether the density has no norm, or numbers its kernel needs are not floats."""
    if not (-np.inf < l < np.inf and -np.inf < r < np.inf):
        return True
    if lower == -np.inf and upper == np.inf:
        return not (r > 0.0 and abs(l / r) < np.inf)
    if upper == np.inf:
        return not (r > 0.0 and -np.inf < slope_at(lower, l, r) and slope_at(lower, l, r) / r < np.inf)
    if lower == -np.inf:
        return not (r > 0.0 and slope_at(upper, l, r) < np.inf and -slope_at(upper, l, r) / r < np.inf)
    width, slope = upper - lower, slope_at(lower, l, r)
    if r > 0.0:
        return not abs(slope) < np.inf
    return not (abs(slope * width) < np.inf and abs(r * width * width) < np.inf)


@kernel(error_model="numpy")
def ends_are_out_of_sight(l: float, r: float, lower: float, upper: float) -> bool:
    """Whether the density is a normal, its ends infinite or so far away that no float tells, and none of them 0."""
    rise, fall = l - r * lower, r * upper - l  # towards the peak from either end
    if not (rise > 0.0 and fall > 0.0 and r > 0.0) or lower == 0.0 or upper == 0.0:
        return False
    far = _OUT_OF_SIGHT * _OUT_OF_SIGHT * r
    return rise * rise > far and fall * fall > far


@kernel()
def is_seen_from_below(lower: float, upper: float) -> bool:
    """Whether the lower end is the one to measure from: the only one, or of two the nearer to 0."""
    return lower > -np.inf and (upper == np.inf or abs(lower) <= abs(upper))


@kernel(error_model="numpy")
def _normal(l: float, r: float) -> Statistics:
    """On the whole line."""
    mean = l / r
    return Statistics(_HALF_LOG_2PI - 0.5 * math.log(r) + 0.5 * l * mean, mean, 1.0 / r, 0.0, 0.0, 0.0, 0.0)


@kernel()
def _moved(found: Statistics, log_factor: float, place: float, sign: float) -> Statistics:
    """Of place + sign x, sign = 1 or -1, instead of x; the density has been multiplied by exp(log_factor)."""
    return Statistics(
        found.log_partition + log_factor,
        place + sign * found.k1,
        found.k2,
        sign * found.k3,
        found.k4,
        sign * found.k5,
        found.k6,
    )


@kernel(error_model="numpy")
def box_statistics(l: float, r: float, lower: float, upper: float, nodes: FloatArray) -> Statistics:
    """Ln Z1 and the first six cumulants of q(x; l, r) on lower <= x <= upper; `nodes` is a `workspace`."""
    below, above = lower > -np.inf, upper < np.inf
    if ends_are_out_of_sight(l, r, lower, upper):
        return _normal(l, r)
    sign, end = (1.0, lower) if is_seen_from_below(lower, upper) else (-1.0, upper)
    slope = sign * slope_at(end, l, r)
    found = interval_statistics_in(slope, r, upper - lower, nodes) if below and above else statistics(slope, r)
    return _moved(found, log_density_at(end, l, r), end, sign)


@kernel(error_model="numpy")
def _higher(l: float, r: float, lower: float, upper: float, nodes: FloatArray, out: FloatArray) -> None:
    """Into out (2,): the seventh and the eighth cumulant in units of the standard deviation."""
    below, above = lower > -np.inf, upper < np.inf
    if ends_are_out_of_sight(l, r, lower, upper):
        out[0], out[1] = 0.0, 0.0
        return
    sign, end = (1.0, lower) if is_seen_from_below(lower, upper) else (-1.0, upper)
    slope = sign * slope_at(end, l, r)
    if below and above:
        interval_higher(slope, r, upper - lower, nodes, out)
    else:
        higher(slope, r, out)
    out[0] *= sign


@kernel(error_model="numpy")
def _natural(mean: float, variance: float, lower: float, upper: float, nodes: FloatArray) -> tuple[float, float]:
    """(l, r) from mean and variance: NaN where there is none, beyond floats inf or 0."""
    below, above = lower > -np.inf, upper < np.inf
    if variance > 0.0 and ends_are_out_of_sight(mean / variance, 1.0 / variance, lower, upper):
        return mean / variance, 1.0 / variance
    if not (below or above):
        return np.nan, np.nan
    sign, end = (1.0, lower) if is_seen_from_below(lower, upper) else (-1.0, upper)
    distance = sign * (mean - end)
    if below and above:
        l, r = interval_natural(distance, variance, upper - lower, nodes)
    else:
        l, r = natural_from_variance(distance, variance)
    return -slope_at(end, -sign * l, r), r


@kernel(error_model="numpy")
def _natural_from_second(
    mean: float, second: float, lower: float, upper: float, nodes: FloatArray
) -> tuple[float, float]:
    """The same from mean and second moment."""
    if lower == 0.0 and upper == np.inf:
        return natural_from_second(mean, second)
    m, exponent = math.frexp(mean)
    variance = -second_minus_square(math.ldexp(second, -2 * exponent), m, 1.0)
    return _natural(mean, math.ldexp(variance, 2 * exponent), lower, upper, nodes)


@kernel()
def fill_statistics(l: FloatArray, r: FloatArray, lower: FloatArray, upper: FloatArray, out: FloatArray) -> bool:
    """Into out (7, l.size); r and the ends repeat themselves along l. False, and out unfinished, at what is refused."""
    nodes = workspace()
    for k in range(l.size):
        j, i = k % r.size, k % lower.size
        if _is_refused(l[k], r[j], lower[i], upper[i]):
            return False
        found = box_statistics(l[k], r[j], lower[i], upper[i], nodes)
        out[0, k] = found.log_partition
        out[1, k] = found.k1
        out[2, k] = found.k2
        out[3, k] = found.k3
        out[4, k] = found.k4
        out[5, k] = found.k5
        out[6, k] = found.k6
    return True


@kernel()
def find_refused(l: FloatArray, r: FloatArray, lower: FloatArray, upper: FloatArray, out: NDArray[np.bool_]) -> None:
    """Into out: where `fill_statistics` would stop; all of one size."""
    for k in range(l.size):
        out[k] = _is_refused(l[k], r[k], lower[k], upper[k])


@kernel()
def fill_higher(l: FloatArray, r: FloatArray, lower: FloatArray, upper: FloatArray, out: FloatArray) -> None:
    """Into out (2, l.size): the seventh and the eighth in units of the standard deviation."""
    nodes, found = workspace(), np.empty(2)
    for k in range(l.size):
        i = k % lower.size
        _higher(l[k], r[k], lower[i], upper[i], nodes, found)
        out[0, k], out[1, k] = found[0], found[1]


@kernel()
def fill_from_variance(
    mean: FloatArray, variance: FloatArray, lower: FloatArray, upper: FloatArray, l: FloatArray, r: FloatArray
) -> None:
    """Into l and r: those of every mean and variance, NaN where there are none."""
    nodes = workspace()
    for k in range(mean.size):
        i = k % lower.size
        l[k], r[k] = _natural(mean[k], variance[k], lower[i], upper[i], nodes)


@kernel()
def fill_from_second(
    mean: FloatArray, second: FloatArray, lower: FloatArray, upper: FloatArray, l: FloatArray, r: FloatArray
) -> None:
    """The same from second moments."""
    nodes = workspace()
    for k in range(mean.size):
        i = k % lower.size
        l[k], r[k] = _natural_from_second(mean[k], second[k], lower[i], upper[i], nodes)

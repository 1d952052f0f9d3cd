"""ln Z1 and the cumulants of q(x; l, r) ∝ exp(l x - r x²/2) on 0 <= x <= width, r of any sign, as numba kernels.

Everything is seen from the end at which the density is larger (the variable is reflected if that is the upper one).
Where the other end is out of sight the half line's kernels answer. Elsewhere a Gauss-Legendre rule does: over the
whole interval, or, for r << 0 where the mass sits at both ends, over one panel at each. Its number of nodes follows
from the variation of the log-density over the panel. Central moments are sums of positive terms, so that nothing
cancels in the variance; ends of panels, tilt and slope at the far end are rounded once (Dekker's product).
"""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.site.half_line_statistics import higher, statistics
from nnbm.site.moments import Statistics
from nnbm.site.rounding import tilt_and_slope

__all__ = [
    "FAR",
    "far_depth",
    "interval_higher",
    "interval_statistics",
    "interval_statistics_in",
    "unit_nodes",
    "workspace",
]

with (files("nnbm.site") / "interval_table.npz").open("rb") as _file, np.load(_file, allow_pickle=False) as _table:
    _COUNTS, _STARTS = _table["counts"], _table["starts"]
    _NODES: FloatArray = _table["nodes"]
    _WEIGHTS: FloatArray = _table["weights"]

FAR = 55.0  # -ln of the density, relative to its peak, at a wall that is out of sight for r > 0
_DEEP = 75.0  # where a panel of a density with mass at both ends is cut
_ONE_PANEL = 64.0  # variation of the log-density that one panel with mass at both ends may have
_MOST_NODES = 2 * int(_COUNTS[-1])


def _rule_by_variation() -> FloatArray:
    variation = np.arange(128)
    return np.searchsorted(_COUNTS, 10.0 + 4.6 * np.sqrt(variation + 1.0))


_RULE = _rule_by_variation()


@kernel(error_model="numpy")
def _add_panel(
    slope: float, r: float, length: float, variation: float, log_size: float, first: int, nodes: FloatArray
) -> int:
    """Into nodes (3, ...) from `first` on: distances from the panel's end, masses, distances from the other end."""
    rule = _RULE[int(variation)] if variation < _RULE.size else _COUNTS.size - 1
    start, count = _STARTS[rule], _COUNTS[rule]
    for m in range(count):
        x = length * _NODES[start + m]
        nodes[0, first + m] = x
        nodes[2, first + m] = 1.0 - x
        nodes[1, first + m] = length * _WEIGHTS[start + m] * math.exp(log_size + x * (slope - 0.5 * r * x))
    return first + count


@kernel(error_model="numpy")
def _cut(slope: float, r: float, length: float) -> tuple[float, float]:
    """Where log-density -slope x - r x²/2, r < 0, first is below -_DEEP or `length` ends; and its fall up to there."""
    square = slope * slope + 2.0 * r * _DEEP
    if square > 0.0:
        end = 2.0 * _DEEP / (slope + math.sqrt(square))
        if end < length:
            return end, _DEEP
    return length, length * (slope + 0.5 * r * length)


@kernel(error_model="numpy")
def unit_nodes(near: float, far: float, r: float, tilt: float, nodes: FloatArray) -> tuple[int, float]:
    """nodes (3, count): x, masses and 1 - x on the unit interval; count, and ln of the masses' unit.

    near, far: how fast the log-density falls inwards at x = 0 and x = 1; tilt = (far - near)/2 <= 0, its value at 1.
    """
    if r >= 0.0:
        top = 0.5 * near * near / r if near < 0.0 else 0.0
        return _add_panel(-near, r, 1.0, 2.0 * top - tilt, -top, 0, nodes), top
    if far <= 0.0 or (near * near + far * far) < 2.0 * _ONE_PANEL * -r:
        end, fall = _cut(near, r, 1.0)
        variation = fall if far <= 0.0 else 0.5 * (near * near + far * far) / -r
        return _add_panel(-near, r, end, variation, 0.0, 0, nodes), 0.0
    end, fall = _cut(near, r, near / -r)
    count = _add_panel(-near, r, end, fall, 0.0, 0, nodes)
    if tilt + 8.0 * math.log(near) > -45.0:  # else not even an eighth moment in units of 1/near sees the far end
        end, fall = _cut(far, r, far / -r)
        first, count = count, _add_panel(-far, r, end, fall, tilt, count, nodes)
        for m in range(first, count):
            nodes[0, m], nodes[2, m] = nodes[2, m], nodes[0, m]
    return count, 0.0


@kernel(error_model="numpy")
def _unit_statistics(near: float, far: float, r: float, tilt: float, nodes: FloatArray) -> Statistics:
    """Of the unit interval, by `unit_nodes`."""
    count, top = unit_nodes(near, far, r, tilt, nodes)
    total, mean = 0.0, 0.0
    for m in range(count):
        total += nodes[1, m]
        mean += nodes[1, m] * nodes[0, m]
    mean /= total
    m2, m3, m4, m5, m6 = 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(count):
        d = nodes[0, m] - mean
        d2 = d * d
        second = nodes[1, m] * d2
        third, fourth = second * d, second * d2
        m2 += second
        m3 += third
        m4 += fourth
        m5 += third * d2
        m6 += fourth * d2
    m2, m3, m4, m5, m6 = m2 / total, m3 / total, m4 / total, m5 / total, m6 / total
    return Statistics(
        top + math.log(total),
        mean,
        m2,
        m3,
        m4 - 3.0 * m2 * m2,
        m5 - 10.0 * m2 * m3,
        m6 - 15.0 * m2 * m4 - 10.0 * m3 * m3 + 30.0 * m2 * m2 * m2,
    )


@kernel(error_model="numpy")
def far_depth(l: float, r: float, width: float) -> float:
    """-ln of the density at `width`, relative to its peak, for l < r width; 0 for r < 0, where no half line has it."""
    if not r >= 0.0:
        return 0.0
    rest = width - l / r if l > 0.0 else width
    return rest * (0.5 * r * rest - min(l, 0.0))


@kernel(error_model="numpy")
def _from_near_end(l: float, r: float, width: float, tilt: float, far: float, nodes: FloatArray) -> Statistics:
    """Where the density is larger at 0 than at `width`: tilt = l - r width/2 <= 0; far = l - r width."""
    if far_depth(l, r, width) > FAR:
        return statistics(l, abs(r))  # -0.0 has no square root of use
    found = _unit_statistics(-l * width, far * width, r * width * width, tilt * width, nodes)
    # a factor at a time: 0 times a power of the width that is inf would be NaN
    return Statistics(
        found.log_partition + math.log(width),
        found.k1 * width,
        found.k2 * width * width,
        found.k3 * width * width * width,
        found.k4 * width * width * width * width,
        found.k5 * width * width * width * width * width,
        found.k6 * width * width * width * width * width * width,
    )


@kernel()
def workspace() -> FloatArray:
    """Where the kernels of this file keep their nodes: (3, nodes), to be made once for many sites."""
    return np.empty((3, _MOST_NODES))


@kernel(error_model="numpy")
def interval_statistics_in(l: float, r: float, width: float, nodes: FloatArray) -> Statistics:
    """`interval_statistics` with a `workspace`."""
    tilt, far = tilt_and_slope(width, l, r)
    reflected = tilt > 0.0
    if reflected:
        l, far = -far, -l
    found = _from_near_end(l, r, width, -abs(tilt), far, nodes)
    if not reflected:
        return found
    return Statistics(
        found.log_partition + tilt * width,
        width - found.k1,
        found.k2,
        -found.k3,
        found.k4,
        -found.k5,
        found.k6,
    )


@kernel()
def interval_statistics(l: float, r: float, width: float) -> Statistics:
    """Ln Z1 and the first six cumulants of q(x; l, r) on 0 <= x <= width.

    k_n to 1e-12 of itself or of sd^n, whichever is larger, but for the rounding of the mean near `width`. Any
    finite l and r; l width and r width² have to be floats where r <= 0.
    """
    return interval_statistics_in(l, r, width, workspace())


@kernel(error_model="numpy")
def _unit_higher(near: float, far: float, r: float, tilt: float, nodes: FloatArray, out: FloatArray) -> None:
    """Into out (2,): the seventh and the eighth cumulant in units of the standard deviation, of the unit interval."""
    count, _ = unit_nodes(near, far, r, tilt, nodes)
    total, mean, variance = 0.0, 0.0, 0.0
    for m in range(count):
        total += nodes[1, m]
        mean += nodes[1, m] * nodes[0, m]
    mean /= total
    for m in range(count):
        variance += nodes[1, m] * (nodes[0, m] - mean) ** 2
    scale = math.sqrt(total / variance)
    moments = np.zeros(9)
    for m in range(count):
        d, power = (nodes[0, m] - mean) * scale, nodes[1, m] / total
        for k in range(9):
            moments[k] += power
            power *= d
    m3, m4, m5, m6, m7, m8 = moments[3], moments[4], moments[5], moments[6], moments[7], moments[8]
    out[0] = m7 - 21.0 * m5 - 35.0 * m4 * m3 + 210.0 * m3
    out[1] = m8 - 28.0 * m6 - 56.0 * m5 * m3 - 35.0 * m4 * m4 + 420.0 * m4 + 560.0 * m3 * m3 - 630.0


@kernel(error_model="numpy")
def interval_higher(l: float, r: float, width: float, nodes: FloatArray, out: FloatArray) -> None:
    """Into out (2,): the seventh and the eighth cumulant in units of the standard deviation."""
    tilt, far = tilt_and_slope(width, l, r)
    reflected = tilt > 0.0
    if reflected:
        l, far = -far, -l
    if far_depth(l, r, width) > FAR:
        higher(l, abs(r), out)
    else:
        _unit_higher(-l * width, far * width, r * width * width, -abs(tilt) * width, nodes, out)
    if reflected:
        out[0] = -out[0]

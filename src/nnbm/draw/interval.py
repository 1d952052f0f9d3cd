"""Exact draws from q(x; l, r) ∝ exp(l x - r x²/2) on 0 <= x <= width, r of any sign.

Everything is seen from the end at which the density is larger. Three proposals, none of which is accepted less often
than one time in two: the half line's draw where r > 0 and the interval is not short, a truncated exponential (a
uniform for l >= 0) where it is, and for r < 0, where the log-density is convex, its chords over both halves.
"""

from __future__ import annotations

import math

import numpy as np

from nnbm.draw.half_line import half_line_draw
from nnbm.kernels import kernel
from nnbm.site.rounding import tilt_and_slope
from nnbm.stream import Stream, uniform

__all__ = ["interval_draw"]

_SHORT = 1.5  # in units of 1/sqrt r: below it the half line would be refused too often
_FLAT = 1e-300  # fall over the interval below which an exponential is a uniform


@kernel(error_model="numpy")
def exponential_below(rate: float, width: float, stream: Stream) -> tuple[float, Stream]:
    """A draw from exp(-rate x) on 0 <= x <= width; the rate may have any sign."""
    u, stream = uniform(stream)
    fall = abs(rate) * width
    if fall < _FLAT:
        return u * width, stream
    x = min(-math.log1p(u * math.expm1(-fall)) / abs(rate), width)
    return (x if rate > 0.0 else width - x), stream


@kernel(error_model="numpy")
def _beside_one_end(l: float, r: float, width: float, stream: Stream) -> tuple[float, Stream]:
    """r >= 0 and the peak in the lower half."""
    if math.sqrt(r) * width > _SHORT:
        x, stream = half_line_draw(l, r, stream)
        while width < x < np.inf:
            x, stream = half_line_draw(l, r, stream)
        return (x if x < np.inf else np.nan), stream
    rise = max(l, 0.0)
    top = 0.5 * rise * rise / r if rise > 0.0 else 0.0
    while True:
        x, stream = exponential_below(rise - l, width, stream)
        u, stream = uniform(stream)
        if not u > math.exp(x * (rise - 0.5 * r * x) - top):
            return x, stream


@kernel(error_model="numpy")
def chord_mass(rate: float, length: float, log_size: float) -> float:
    """The integral of exp(log_size - rate x) over 0 <= x <= length; its largest value is a float."""
    fall = abs(rate) * length
    largest = math.exp(log_size if rate > 0.0 else log_size + fall)
    return largest * (-math.expm1(-fall) / abs(rate) if fall > _FLAT else length)


@kernel(error_model="numpy")
def _beside_both_ends(
    near: float, far: float, bend: float, half: float, log_size: float, stream: Stream
) -> tuple[float, bool, Stream]:
    """r = -bend < 0: the distance from one end, whether that is 0, and the stream.

    near, far: how fast the chords fall inwards from the ends; log_size: ln of the density at the far one, at 0 it is 1.
    """
    below, above = chord_mass(near, half, 0.0), chord_mass(far, half, log_size)
    while True:
        u, stream = uniform(stream)
        is_near = not u * (below + above) > below
        x, stream = exponential_below(near if is_near else far, half, stream)
        u, stream = uniform(stream)
        if not u > math.exp(-0.5 * bend * x * (half - x)):
            return x, is_near, stream


@kernel(error_model="numpy")
def interval_draw(l: float, r: float, width: float, stream: Stream) -> tuple[float, Stream]:
    """A draw on 0 <= x <= width, exact in law; NaN where l or r are not finite (for r < 0, times the width)."""
    tilt, slope = tilt_and_slope(width, l, r)
    reflected = tilt > 0.0
    if reflected:
        l, slope, tilt = -slope, -l, -tilt
    is_near = True
    if not (abs(l) < np.inf and abs(r) < np.inf):
        x = np.nan
    elif r >= 0.0:
        x, stream = _beside_one_end(l, r, width, stream)
    elif not (abs(l * width) < np.inf and abs(r * width * width) < np.inf):
        x = np.nan
    else:
        half, sag = 0.5 * width, 0.25 * r * width
        x, is_near, stream = _beside_both_ends(sag - l, slope + sag, -r, half, tilt * width, stream)
    return (x if is_near != reflected else width - x), stream

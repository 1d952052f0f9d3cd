"""Exact draws of one variable: q(x; l, r) ∝ exp(l x - r x²/2) on x >= 0, in every tail.

Strips of equal area around the normal density (Chopin, Fast simulation of truncated Gaussian distributions, 2011),
closed by Marsaglia's exponential tails of that same area: a piece to the right of the wall is chosen uniformly and
accepted but for about one draw in two hundred. The draw is kept as the *excess* over the wall, never as
mu + sigma z, so nothing cancels however deep the wall lies.
"""

from __future__ import annotations

import math

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.stream import Stream, exponential, next_bits, uniform

__all__ = ["excess", "half_line_draw", "normal"]

_STRIPS = 512  # on each side of the mode
_AREA = 0.0024545866509354908  # of one piece under exp(-x²/2); closes the strips with the tail (tests/draw)
_FAR_WALL = 2.3  # beyond it a plain exponential proposal accepts 87% and better
_GUIDE_CELLS = 2048

_32, _63 = np.uint64(32), np.uint64(63)
_LOW_HALF, _TWO_TO_32 = np.uint64(2**32 - 1), np.uint64(2**32)


def _strip_edges() -> FloatArray:
    """(2 * _STRIPS + 1,) edges such that each strip's width times its highest exp(-x²/2) is _AREA."""
    right = [0.0]
    for _ in range(_STRIPS):
        right.append(right[-1] + _AREA * math.exp(0.5 * right[-1] ** 2))
    half = np.array(right)
    return np.concatenate([-half[:0:-1], half])


_EDGES = _strip_edges()
_EDGE_HEIGHTS = np.exp(-0.5 * _EDGES**2)
_TOPS: FloatArray = np.maximum(_EDGE_HEIGHTS[:-1], _EDGE_HEIGHTS[1:])
_REACH = float(_EDGES[-1])
# sure acceptance below lowest / highest, as 32-bit thresholds rounded down
_SURE = np.floor(np.minimum(_EDGE_HEIGHTS[:-1], _EDGE_HEIGHTS[1:]) / _TOPS * 2.0**32 - 1.0).astype(np.uint64)
_GUIDE_SCALE = _GUIDE_CELLS / (2.0 * _REACH)
# the strip at each cell's left end, one less where rounding could overstate it
_GUIDE = np.maximum(
    np.searchsorted(_EDGES, np.arange(_GUIDE_CELLS + 1) / _GUIDE_SCALE - _REACH, side="right") - 1, 1
).astype(np.int16)


@kernel()
def _strip_of(wall: float) -> np.int64:
    """The strip, 1 .. 2 * _STRIPS, that holds -_REACH <= wall < _REACH."""
    strip = np.int64(_GUIDE[np.uint64((wall + _REACH) * _GUIDE_SCALE)])
    while _EDGES[strip] <= wall:
        strip += 1
    return strip


@kernel(error_model="numpy")
def _tail_trial(wall: float, stream: Stream) -> tuple[float, Stream]:
    """One exponential proposal of rate wall > 0 for x - wall, x a standard normal beyond it; -1 if refused."""
    e, stream = exponential(stream)
    e /= wall
    u, stream = uniform(stream)
    half = 0.5 * e * e
    if u <= 1.0 - half or u <= math.exp(-half):
        return e, stream
    return -1.0, stream


@kernel(error_model="numpy")
def _strip_trial(
    strip: np.int64, wall: float, wall_strip: np.int64, coin: np.uint64, stream: Stream
) -> tuple[float, Stream]:
    """x - wall for a uniform x of this strip if it survives both the wall and the density; else -1."""
    left, right = _EDGES[strip - 1], _EDGES[strip]
    place, stream = uniform(stream)
    if strip == wall_strip:
        u, stream = uniform(stream)
        if u * (right - left) > right - wall:
            return -1.0, stream
        over = (right - wall) * place
    else:
        over = (left - wall) + (right - left) * place
    if coin < _SURE[strip - 1]:
        return over, stream
    x = wall + over
    u, stream = uniform(stream)
    if (float(coin) + u) * 2.0**-32 * _TOPS[strip - 1] <= math.exp(-0.5 * x * x):
        return over, stream
    return -1.0, stream


@kernel(error_model="numpy")
def excess(wall: float, stream: Stream) -> tuple[float, Stream]:
    """x - wall for a standard normal x conditioned on x > wall; any finite wall, exact in law.

    Of a wall that is no number, or beyond all of them, NaN comes back; of -inf, inf. Such a state of a chain stays
    not finite: every neighbour of it becomes so before it is drawn again.
    """
    if wall > _FAR_WALL:
        if wall == np.inf:
            return np.nan, stream
        over, stream = _tail_trial(wall, stream)
        while over < 0.0:
            over, stream = _tail_trial(wall, stream)
        return over, stream
    wall_strip = _strip_of(wall) if wall >= -_REACH else np.int64(-1)
    first = np.uint64(max(wall_strip, np.int64(0)))
    pieces = np.uint64(2 * _STRIPS + 2) - first
    while True:
        bits, stream = next_bits(stream)
        scaled = (bits >> _32) * pieces
        if (scaled & _LOW_HALF) < pieces and (scaled & _LOW_HALF) < _TWO_TO_32 % pieces:
            continue  # Lemire's rejection: without it some pieces would be chosen 1e-7 too often
        piece = np.int64(first + (scaled >> _32))
        if 0 < piece <= 2 * _STRIPS:
            over, stream = _strip_trial(piece, wall, wall_strip, bits & _LOW_HALF, stream)
        else:
            # a refused tail proposal must choose its piece anew, or the tails would weigh too much
            beyond, stream = _tail_trial(_REACH, stream)
            x = _REACH + beyond if piece else -_REACH - beyond
            over = x - wall if beyond > 0.0 else -1.0
        if not over <= 0.0:  # NaN is handed on; asking for over > 0 would wait for ever
            return over, stream


@kernel(error_model="numpy")
def half_line_draw(l: float, r: float, stream: Stream) -> tuple[float, Stream]:
    """A draw from q(x; l, r) on x >= 0."""
    scale = 1.0 / math.sqrt(r)
    wall = -l * scale
    if wall < np.inf:
        over, stream = excess(wall, stream)
        return over * scale, stream
    # r/l² is below all floats: an exponential of rate -l, exactly
    over, stream = exponential(stream)
    return over / -l, stream


@kernel()
def normal(stream: Stream) -> tuple[float, Stream]:
    """A standard normal: a half-normal with a fair sign."""
    size, stream = excess(0.0, stream)
    bits, stream = next_bits(stream)
    return (size if bits >> _63 else -size), stream

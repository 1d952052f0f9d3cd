"""Exact draws of one variable: q(x; l, r) ∝ exp(l x - r x²/2) on x >= 0, in every tail.

A piece of equal area (`strips`) to the right of the wall is chosen uniformly and accepted but for about one draw in two
hundred. The draw is kept as the *excess* over the wall, never as mu + sigma z, so nothing cancels however deep the wall
lies.
"""

from __future__ import annotations

import math

import numpy as np

from nnbm.draw.strips import EDGES, REACH, STRIPS, SURE, TOPS, strip_of
from nnbm.kernels import kernel
from nnbm.stream import Stream, exponential, next_bits, uniform

__all__ = ["FAR_WALL", "excess", "half_line_draw", "normal"]

FAR_WALL = 2.3  # beyond it a plain exponential proposal accepts 87% and better

_32, _63 = np.uint64(32), np.uint64(63)
_LOW_HALF, _TWO_TO_32 = np.uint64(2**32 - 1), np.uint64(2**32)


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
    left, right = EDGES[strip - 1], EDGES[strip]
    place, stream = uniform(stream)
    if strip == wall_strip:
        u, stream = uniform(stream)
        if u * (right - left) > right - wall:
            return -1.0, stream
        over = (right - wall) * place
    else:
        over = (left - wall) + (right - left) * place
    if coin < SURE[strip - 1]:
        return over, stream
    x = wall + over
    u, stream = uniform(stream)
    if (float(coin) + u) * 2.0**-32 * TOPS[strip - 1] <= math.exp(-0.5 * x * x):
        return over, stream
    return -1.0, stream


@kernel(error_model="numpy")
def excess(wall: float, stream: Stream) -> tuple[float, Stream]:
    """x - wall for a standard normal x conditioned on x > wall; any finite wall, exact in law.

    Of a wall that is no number, or beyond all of them, NaN comes back; of -inf, inf. Such a state of a chain stays
    not finite: every neighbour of it becomes so before it is drawn again.
    """
    if wall > FAR_WALL:
        if wall == np.inf:
            return np.nan, stream
        over, stream = _tail_trial(wall, stream)
        while over < 0.0:
            over, stream = _tail_trial(wall, stream)
        return over, stream
    wall_strip = strip_of(wall) if wall >= -REACH else np.int64(-1)
    first = np.uint64(max(wall_strip, np.int64(0)))
    pieces = np.uint64(2 * STRIPS + 2) - first
    while True:
        bits, stream = next_bits(stream)
        scaled = (bits >> _32) * pieces
        if (scaled & _LOW_HALF) < pieces and (scaled & _LOW_HALF) < _TWO_TO_32 % pieces:
            continue  # Lemire's rejection: without it some pieces would be chosen 1e-7 too often
        piece = np.int64(first + (scaled >> _32))
        if 0 < piece <= 2 * STRIPS:
            over, stream = _strip_trial(piece, wall, wall_strip, bits & _LOW_HALF, stream)
        else:
            # a refused tail proposal must choose its piece anew, or the tails would weigh too much
            beyond, stream = _tail_trial(REACH, stream)
            x = REACH + beyond if piece else -REACH - beyond
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

"""Exact draws of one variable: q(x; l, r) ∝ exp(l x - r x²/2) on x >= 0, in every tail.

Strips of equal area around the normal density (Chopin, Fast simulation of truncated Gaussian distributions, 2011),
closed by Marsaglia's exponential tails of that same area: a piece to the right of the wall is chosen uniformly and
accepted but for about one draw in two hundred. The draw is kept as the *excess* over the wall, never as
mu + sigma z, so nothing cancels however deep the wall lies.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_floats, broadcast, forbid
from nnbm.kernels import kernel
from nnbm.stream import Seed, Stream, StreamArray, exponential, load, next_bits, store, streams, uniform

__all__ = ["excess", "truncated_normal"]

_STRIPS = 512  # on each side of the mode
_AREA = 0.0024545866509354908  # of one piece under exp(-x²/2); closes the strips with the tail (tests/draw)
_FAR_WALL = 2.3  # beyond it a plain exponential proposal accepts 87% and better
_GUIDE_CELLS = 2048

_32 = np.uint64(32)
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
def _fill(l: FloatArray, r: FloatArray, row: StreamArray, out: FloatArray) -> None:
    stream = load(row)
    for k in range(out.size):
        scale = 1.0 / math.sqrt(r[k])
        wall = -l[k] * scale
        if wall < np.inf:
            over, stream = excess(wall, stream)
            out[k] = over * scale
        else:
            # r/l² is below all floats: an exponential of rate -l, exactly
            over, stream = exponential(stream)
            out[k] = over / -l[k]
    store(stream, row)


def truncated_normal(
    l: ArrayLike, r: ArrayLike, size: int | tuple[int, ...] | None = None, *, seed: Seed = None
) -> FloatArray:
    """Independent draws from q(x; l, r) ∝ exp(l x - r x²/2) on x >= 0, l and r > 0 broadcast to `size`.

    In other words: normal of mean l/r and variance 1/r, truncated to x >= 0 (EQ 2). Refused where l/r is not a float.

    >>> import numpy as np
    >>> x = truncated_normal([-1e6, 0.0, 3.0], 1.0, size=(1000, 3), seed=0)
    >>> bool((x > 0).all()), np.round(x.mean(axis=0)[1:], 1)
    (True, array([0.8, 3. ]))
    """
    slope, curvature = broadcast(l=as_floats("l", l), r=as_floats("r", r))
    forbid("r", curvature, curvature <= 0, "r must be positive", "Without it the density has no norm.")
    with np.errstate(over="ignore", under="ignore"):
        forbid("l", slope, slope / curvature == np.inf, "l/r must be a float", "Measure x in a larger unit.")
    out = np.empty(slope.shape if size is None else size)
    try:
        slope, curvature = np.broadcast_to(slope, out.shape), np.broadcast_to(curvature, out.shape)
    except ValueError as error:
        raise ValueError(
            f"size: l and r must broadcast to it, but size = {size} and their common shape is {slope.shape}. "
            "Its last axes are theirs."
        ) from error
    _fill(slope.ravel(), curvature.ravel(), streams(seed, 1)[0], out.reshape(-1))
    return out

"""Moves of one variable that leave its law alone: draws, and two that lead further, overrelaxation by area.

The area beneath the envelope to the left of x, counted in pieces (`strips`), is a coordinate in which the envelope is
flat between the walls. A point chosen uniformly beneath the density at x is carried there: FLIP turns the coordinate
round between the walls, SHIFT moves it by half their distance, and where the point would lie above the density x stays
as it is. Both undo themselves and keep areas, so the law does not move. FLIP is all but x -> F^-1(1 - F(x)), Neal's
ordered overrelaxation (1998) in its limit, and SHIFT F^-1(F(x) ± 1/2), for no more than the price of a draw and without
special functions. They do not mix on their own: draws have to come between.
"""

from __future__ import annotations

import math

import numpy as np

from nnbm.draw.box import box_draw
from nnbm.draw.half_line import FAR_WALL, excess
from nnbm.draw.strips import EDGES, REACH, STRIPS, SURE, TOPS, strip_of
from nnbm.kernels import kernel
from nnbm.stream import Stream, next_bits

__all__ = ["DRAW", "FLIP", "SHIFT", "moved", "moved_excess"]

DRAW, FLIP, SHIFT = 0, 1, 2  # the kinds of move

_LAST = float(2 * STRIPS + 2)  # the area of all pieces
_WIDTHS = np.diff(EDGES)
_PER_WIDTH = 1.0 / _WIDTHS
_11, _32 = np.uint64(11), np.uint64(32)


@kernel(error_model="numpy")
def _area(x: float) -> float:
    """The area to the left of x in pieces; the whole number in it is the piece that holds x."""
    if abs(x) < REACH:
        strip = strip_of(x)
        return strip + (x - EDGES[strip - 1]) * _PER_WIDTH[strip - 1]
    tail = math.exp(-REACH * (abs(x) - REACH))
    return tail if x < 0.0 else _LAST - tail


@kernel(error_model="numpy")
def _at_area(area: float, piece: np.int64) -> float:
    """The x of an area, which lies in this piece; NaN of one outside (0, _LAST)."""
    if 0 < piece <= 2 * STRIPS:
        return EDGES[piece - 1] + (area - piece) * _WIDTHS[piece - 1]
    tail = area if piece <= 0 else _LAST - area
    return math.copysign(REACH - math.log(tail) / REACH, area - 1.0) if tail > 0.0 else np.nan


@kernel(error_model="numpy")
def _height(x: float, piece: np.int64) -> float:
    """The density at x over the envelope of the piece it lies in."""
    if 0 < piece <= 2 * STRIPS:
        return math.exp(-0.5 * x * x) / TOPS[piece - 1]
    beyond = abs(x) - REACH
    return math.exp(-0.5 * beyond * beyond)


@kernel(error_model="numpy")
def _carried(move: int, first: float, last: float, x: float, stream: Stream) -> tuple[float, Stream]:
    """Where FLIP or SHIFT lead from x between walls at the areas `first` and `last`; NaN if it has to stay."""
    bits, stream = next_bits(stream)
    here = _area(x)
    if move == FLIP:
        there = first + (last - here)
    else:
        half = 0.5 * (last - first)
        there = here + (half if here - first < half else -half)
    piece = np.int64(there)
    y = _at_area(there, piece)
    if 0 < piece <= 2 * STRIPS and (bits >> _32) < SURE[piece - 1]:
        return y, stream
    share = float(bits >> _11) * 2.0**-53
    return (y if share * _height(x, np.int64(here)) <= _height(y, piece) else np.nan), stream


@kernel(error_model="numpy")
def moved_excess(move: int, over: float, wall: float, stream: Stream) -> tuple[float, Stream]:
    """The excess over the wall (see `half_line.excess`) after a move.

    It is a draw where the wall lies far out, and where anything is not finite: that must not be lost (see `excess`).
    """
    if move == DRAW or not (-np.inf < wall <= FAR_WALL and over < np.inf):
        return excess(wall, stream)
    y, stream = _carried(move, _area(wall), _LAST, wall + over, stream)
    return (y - wall if y > wall else over), stream


@kernel(error_model="numpy")
def moved(move: int, x: float, l: float, r: float, lower: float, upper: float, stream: Stream) -> tuple[float, Stream]:
    """The x of q(x; l, r) on lower <= x <= upper after a move.

    It is a draw where both walls lie far out on one side, for r that is not positive, and where anything is not finite.
    """
    if move == DRAW or not r > 0.0:
        return box_draw(l, r, lower, upper, stream)
    root, centre = math.sqrt(r), l / r
    low, high = (lower - centre) * root, (upper - centre) * root
    if not (low <= FAR_WALL and high >= -FAR_WALL and abs(x) < np.inf):
        return box_draw(l, r, lower, upper, stream)
    y, stream = _carried(move, _area(low), _area(high), (x - centre) * root, stream)
    return (min(max(centre + y / root, lower), upper) if low < y < high else x), stream

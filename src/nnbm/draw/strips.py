"""Pieces of equal area around the normal density exp(-x²/2), which draws and moves of one variable are made of.

Strips as wide as their highest density allows (Chopin, Fast simulation of truncated Gaussian distributions, 2011), and
on either side an exponential tail of that same area (Marsaglia). Pieces are numbered from the left: 0 and
2 STRIPS + 1 are the tails, piece k between them lies on EDGES[k - 1] <= x < EDGES[k].
"""

from __future__ import annotations

import math

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel

__all__ = ["EDGES", "REACH", "STRIPS", "SURE", "TOPS", "strip_of"]

STRIPS = 512  # on each side of the mode
_AREA = 0.0024545866509354908  # of one piece under exp(-x²/2); closes the strips with the tail (tests/draw)
_GUIDE_CELLS = 4096  # narrower than the narrowest strip: no cell holds two edges


def _strip_edges() -> FloatArray:
    """(2 * STRIPS + 1,) edges such that each strip's width times its highest exp(-x²/2) is _AREA."""
    right = [0.0]
    for _ in range(STRIPS):
        right.append(right[-1] + _AREA * math.exp(0.5 * right[-1] ** 2))
    half = np.array(right)
    return np.concatenate([-half[:0:-1], half])


EDGES = _strip_edges()
_HEIGHTS = np.exp(-0.5 * EDGES**2)
TOPS: FloatArray = np.maximum(_HEIGHTS[:-1], _HEIGHTS[1:])  # of piece k at k - 1: the highest density
REACH = float(EDGES[-1])
# sure acceptance below lowest / highest, as 32-bit thresholds rounded down
SURE = np.floor(np.minimum(_HEIGHTS[:-1], _HEIGHTS[1:]) / TOPS * 2.0**32 - 1.0).astype(np.uint64)
_GUIDE_SCALE = _GUIDE_CELLS / (2.0 * REACH)
# the strip at each cell's left end, and a little before it, so that rounding cannot overstate it
_GUIDE = np.maximum(
    np.searchsorted(EDGES, np.arange(_GUIDE_CELLS + 1) / _GUIDE_SCALE - REACH - 1e-12, side="right"), 1
).astype(np.int16)


@kernel()
def strip_of(x: float) -> np.int64:
    """The strip, 1 .. 2 * STRIPS, that holds -REACH <= x < REACH."""
    strip = np.int64(_GUIDE[np.uint64((x + REACH) * _GUIDE_SCALE)])
    return strip + np.int64(EDGES[strip] <= x)

"""Triangular solves with a factor that lies in fronts."""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import IndexArray

__all__ = ["substitute"]

_FAST = {"contract", "reassoc"}  # sums of products may be taken in any order


@kernel(fastmath=_FAST)
def substitute(
    columns: IntArray, starts: IntArray, border: IndexArray, panels: IntArray, parent: IntArray, largest: int,
    factor: FloatArray, pivots: FloatArray, right: FloatArray,
) -> None:  # fmt: skip
    """right (k, n) becomes (L D L')^{-1} right, row by row; a front's panel serves all rows while it is at hand."""
    held = np.empty(largest)
    for f in range(parent.size):
        panel = factor[panels[f] : panels[f + 1]]
        rows = border[starts[f] : starts[f + 1]]
        for c in range(right.shape[0]):
            _forward(panel, rows, right[c], right[c, columns[f] : columns[f + 1]], held[: rows.size])
    for c in range(right.shape[0]):
        for i in range(pivots.size):
            right[c, i] /= pivots[i]
    for f in range(parent.size - 1, -1, -1):
        panel = factor[panels[f] : panels[f + 1]]
        rows = border[starts[f] : starts[f + 1]]
        for c in range(right.shape[0]):
            _backward(panel, rows, right[c], right[c, columns[f] : columns[f + 1]], held[: rows.size])


@kernel(fastmath=_FAST)
def _forward(panel: FloatArray, rows: IndexArray, y: FloatArray, own: FloatArray, held: FloatArray) -> None:
    """Take the front's own unknowns off its own later rows and off those of its border."""
    k, rest = own.size, rows.size
    for i in range(rest):
        held[i] = 0.0
    for j in range(k):
        value = own[j]
        column = panel[j * (k + rest) : (j + 1) * (k + rest)]
        for i in range(j + 1, k):
            own[i] -= column[i] * value
        below = column[k:]
        for i in range(rest):
            held[i] += below[i] * value
    for i in range(rest):
        y[rows[i]] -= held[i]


@kernel(fastmath=_FAST)
def _backward(panel: FloatArray, rows: IndexArray, y: FloatArray, own: FloatArray, held: FloatArray) -> None:
    """The front's own unknowns, from those after them."""
    k, rest = own.size, rows.size
    for i in range(rest):
        held[i] = y[rows[i]]
    for j in range(k - 1, -1, -1):
        column = panel[j * (k + rest) : (j + 1) * (k + rest)]
        below = column[k:]
        total = 0.0
        for i in range(rest):
            total += below[i] * held[i]
        for i in range(j + 1, k):
            total += column[i] * own[i]
        own[j] -= total

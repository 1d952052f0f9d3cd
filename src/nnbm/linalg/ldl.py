"""The numerical factorisation P S A S P' = L D L', front by front (Duff & Reid 1983), with pivots that cannot blow up.

S are powers of two, so that scaling does not round; no entry of S A S is above 2. D is diagonal. Eliminating a pivot d
with the largest entry c below it adds up to c²/|d| to what is left; positive definite matrices never exceed their own
diagonal. Where more than `growth` would be added, and where d is no more than rounding, d is *boosted* by a number
of the order of c or 1 that is written down: the factor is then that of A + a few diagonal entries, which `boosts` takes
back exactly.
"""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.linalg.blas import PLAN, combine, subtract_product
from nnbm.linalg.graph import IndexArray

__all__ = ["CROWDED", "SINGULAR", "decompose"]

SINGULAR, CROWDED = -1, -2  # why there is no factor

_LEAST_PIVOT = 1e-12  # of entries of order 1: less is rounding

_STRIP = 32  # columns eliminated before the rest of their block hears of it
_BLOCK = 128  # columns eliminated before the rest of the front hears of it
_SLAB = 96  # columns of a symmetric product done at once: the triangle's upper half is done in vain within a slab
_SMALL = 12_000.0  # multiplications up to which BLAS costs more to call than it saves


@kernel()
def decompose(
    columns: IntArray, starts: IntArray, border: IndexArray, panels: IntArray, parent: IntArray, room: int,
    largest: int, indptr: IntArray, indices: IndexArray, values: FloatArray, scale: FloatArray, order: IntArray,
    place: IndexArray, growth: float, factor: FloatArray, pivots: FloatArray, boosted: IntArray, boosts: FloatArray,
) -> int:  # fmt: skip
    """Fill the panels of L, the pivots (n,) of D and the boosted columns; the number of these, or why there is none.

    boosted, boosts (most,): column in the order of elimination, and what was added to its pivot.
    """
    n = pivots.size
    update = np.empty(room)
    local = np.empty(n, dtype=np.int32)
    rows = np.empty(largest, dtype=np.int32)
    scaled = np.empty(largest * _BLOCK)
    plan = np.empty(PLAN, dtype=np.int32)
    factors = np.empty(2)
    last_child, sibling = np.full(parent.size, -1), np.full(parent.size, -1)
    top = 0
    count = 0
    for f in range(parent.size):
        begin, end = columns[f], columns[f + 1]
        k, rest = end - begin, starts[f + 1] - starts[f]
        m = k + rest
        panel = factor[panels[f] : panels[f + 1]]
        for i in range(panel.size):
            panel[i] = 0.0
        for i in range(rest):
            local[border[starts[f] + i]] = k + i
        _assemble(panel, m, begin, end, local, indptr, indices, values, scale, order, place)
        own = update[top : top + rest * rest]
        for i in range(rest * rest):
            own[i] = 0.0
        base = top
        c = last_child[f]
        while c != -1:
            size = starts[c + 1] - starts[c]
            base -= size * size
            for i in range(size):
                row = border[starts[c] + i]
                rows[i] = row - begin if row < end else local[row]
            _extend(panel, m, k, own, rest, update[base : base + size * size], size, rows)
            c = sibling[c]
        count = _eliminate(panel, m, k, pivots, begin, growth, boosted, boosts, count, scaled, plan, factors)
        if count < 0:
            return count
        for left in range(0, k, _BLOCK):
            right = min(left + _BLOCK, k)
            _subtract(panel, m, k, m, left, right, own, 0, rest, pivots, begin, scaled, plan, factors)
        for i in range(rest * rest):
            update[base + i] = own[i]
        top = base + rest * rest
        if parent[f] >= 0:
            sibling[f] = last_child[parent[f]]
            last_child[parent[f]] = f
    return count


@kernel()
def _assemble(
    panel: FloatArray, m: int, begin: int, end: int, local: IndexArray, indptr: IntArray, indices: IndexArray,
    values: FloatArray, scale: FloatArray, order: IntArray, place: IndexArray,
) -> None:  # fmt: skip
    """Write the entries of S A S into the panel (m, end - begin) of the front that eliminates them."""
    for column in range(begin, end):
        i = order[column]
        into = m * (column - begin)
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            row = place[j]
            if row >= column:
                panel[into + (row - begin if row < end else local[row])] = values[q] * scale[i] * scale[j]


@kernel()
def _extend(
    panel: FloatArray, m: int, k: int, own: FloatArray, rest: int, child: FloatArray, size: int, rows: IndexArray
) -> None:
    """Add what a child left (size, size), lower triangle, whose rows are these of the front."""
    for a in range(size):
        column = rows[a]
        source = child[a * size : (a + 1) * size]
        if column < k:
            into = panel[column * m : (column + 1) * m]
            for b in range(a, size):
                into[rows[b]] += source[b]
        else:
            into = own[(column - k) * rest : (column - k + 1) * rest]
            for b in range(a, size):
                into[rows[b] - k] += source[b]


@kernel()
def _eliminate(
    panel: FloatArray, m: int, k: int, pivots: FloatArray, begin: int, growth: float, boosted: IntArray,
    boosts: FloatArray, count: int, scaled: FloatArray, plan: IndexArray, factors: FloatArray,
) -> int:  # fmt: skip
    """Turn a panel (m, k) into that of L, strip by strip; the number of boosted pivots so far, or why it ends here."""
    for block in range(0, k, _BLOCK):
        stop = min(block + _BLOCK, k)
        for left in range(block, stop, _STRIP):
            right = min(left + _STRIP, stop)
            for j in range(left, right):
                for p in range(left, j):
                    scaled[p - left] = panel[p * m + j] * pivots[begin + p]
                column = panel[j * m + j : (j + 1) * m]
                combine(column, panel, left * m + j, m, scaled, 0, 1, j - left)
                count = _pivot(column, pivots, begin + j, growth, boosted, boosts, count)
                if count < 0:
                    return count
            _subtract(
                panel, m, right, stop, left, right, panel, right * m + right, m, pivots, begin, scaled, plan, factors
            )
        _subtract(panel, m, stop, k, block, stop, panel, stop * m + stop, m, pivots, begin, scaled, plan, factors)
    return count


@kernel()
def _pivot(
    column: FloatArray, pivots: FloatArray, at: int, growth: float, boosted: IntArray, boosts: FloatArray, count: int
) -> int:
    """Divide what is left of a column by its pivot, boosted where it must be; how many were so far, or why it ends."""
    below = 0.0
    for i in range(1, column.size):
        below = max(below, abs(column[i]))
    pivot = column[0]
    if not (below * below <= growth * abs(pivot) and abs(pivot) > _LEAST_PIVOT):
        if count == 0 and max(below, abs(pivot)) <= _LEAST_PIVOT:
            return SINGULAR
        if count == boosted.size:
            return CROWDED
        raised = np.copysign(max(1.0, below), pivot)
        boosted[count], boosts[count] = at, raised - pivot
        count += 1
        pivot = raised
    pivots[at] = pivot
    column[0] = 1.0
    inverse = 1.0 / pivot
    for i in range(1, column.size):
        column[i] *= inverse
    return count


@kernel()
def _subtract(
    panel: FloatArray, m: int, first: int, last: int, left: int, right: int, into: FloatArray, at: int, lead: int,
    pivots: FloatArray, begin: int, scaled: FloatArray, plan: IndexArray, factors: FloatArray,
) -> None:  # fmt: skip
    """Take columns left : right off columns first : last of the front, which begin at a place of `into`; lower half."""
    cols, depth = last - first, right - left
    if cols == 0:
        return
    for p in range(depth):
        for j in range(cols):
            scaled[p * cols + j] = panel[(left + p) * m + first + j] * pivots[begin + left + p]
    rows = m - first
    start = left * m + first
    if float(rows) * cols * depth <= _SMALL:
        for j in range(cols):
            column = into[at + j * lead + j : at + j * lead + rows]
            combine(column, panel, start + j, m, scaled, j, cols, depth)
        return
    for j in range(0, cols, _SLAB):
        subtract_product(
            into, at + j * lead + j, lead, rows - j, min(_SLAB, cols - j), panel, start + j, m, False,
            scaled, j, cols, True, depth, plan, factors,
        )  # fmt: skip

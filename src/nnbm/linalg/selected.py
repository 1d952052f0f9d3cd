"""Selected inverse: the entries of A^{-1} where L has entries, from the root of the tree down (Erisman & Tinney 1975).

Of Z = A^{-1} and the columns J of a front, R the rows below them: Z_RJ = -Z_RR Y and
Z_JJ = L_JJ^{-T} D_J^{-1} L_JJ^{-1} - Y' Z_RJ with Y = L_RJ L_JJ^{-1}. All of Z_RR lies in the parent's front. An error
of Z_RR reaches Z_JJ as Y' error Y: harmless for definite matrices, but far inside a spectrum |Y| > 1 on every level.
"""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.linalg.blas import PLAN, combine, subtract_product
from nnbm.linalg.graph import IndexArray

__all__ = ["mirror_later", "selected_inverse"]

_STRIP = 32  # columns done at once; the triangle of a strip is small enough for plain loops
_SMALL = 12_000.0  # multiplications up to which BLAS costs more to call than it saves


@kernel()
def selected_inverse(
    columns: IntArray, starts: IntArray, border: IndexArray, panels: IntArray, parent: IntArray, room: int,
    largest: int, indptr: IntArray, indices: IndexArray, scale: FloatArray, order: IntArray, place: IndexArray,
    factor: FloatArray, pivots: FloatArray, noise: float, values: FloatArray, diagonal: FloatArray,
) -> None:  # fmt: skip
    """Fill values (entries of the pattern,) and diagonal (n,) with A^{-1}, from the factor of P S A S P'.

    noise: relative changes of random sign made to everything found, to see what becomes of rounding errors.
    """
    inverse = np.empty(room)
    local = np.empty(pivots.size, dtype=np.int32)
    rows = np.empty(largest, dtype=np.int32)
    work = np.empty((2 * largest + _STRIP) * _STRIP)
    plan, factors = np.empty(PLAN, dtype=np.int32), np.empty(2)
    begins = np.zeros(parent.size + 1, dtype=np.int64)  # of each front in `inverse`: right behind its parent's
    for f in range(parent.size - 1, -1, -1):
        begin, end = columns[f], columns[f + 1]
        k, rest = end - begin, starts[f + 1] - starts[f]
        m = k + rest
        p = parent[f]
        if p >= 0:
            size = columns[p + 1] - columns[p] + starts[p + 1] - starts[p]
            begins[f] = begins[p] + size * size
            _place_rows(border, starts, f, columns, p, rows)
            above = inverse[begins[p] : begins[p] + size * size]
            _gather(above, size, rows, inverse[begins[f] : begins[f] + m * m], m, k)
        own = inverse[begins[f] : begins[f] + m * m]
        panel = factor[panels[f] : panels[f + 1]]
        for right in range(k, 0, -_STRIP):
            _strip(own, panel, m, max(0, right - _STRIP), right, pivots[begin:end], work, plan, factors)
        if noise > 0:
            _disturb(own, noise, f)
        for i in range(rest):
            local[border[starts[f] + i]] = k + i
        _write(own, m, begin, end, local, indptr, indices, scale, order, place, values, diagonal)
    mirror_later(indptr, indices, place, values)


@kernel()
def _place_rows(border: IndexArray, starts: IntArray, f: int, columns: IntArray, p: int, rows: IndexArray) -> None:
    """Where the border of front f lies among the rows of its parent p: both are sorted."""
    begin, end = columns[p], columns[p + 1]
    q = starts[p]
    for i in range(starts[f + 1] - starts[f]):
        row = border[starts[f] + i]
        if row < end:
            rows[i] = row - begin
        else:
            while border[q] != row:
                q += 1
            rows[i] = end - begin + q - starts[p]


@kernel()
def _gather(above: FloatArray, size: int, rows: IndexArray, own: FloatArray, m: int, k: int) -> None:
    """Copy the parent's (size, size) at these rows to the end of a front (m, m)."""
    for a in range(m - k):
        source = above[rows[a] * size : (rows[a] + 1) * size]
        into = own[(k + a) * m + k : (k + a + 1) * m]
        for b in range(m - k):
            into[b] = source[rows[b]]


@kernel()
def _strip(
    own: FloatArray, panel: FloatArray, m: int, left: int, right: int, pivots: FloatArray, work: FloatArray,
    plan: IndexArray, factors: FloatArray,
) -> None:  # fmt: skip
    """Columns left : right of a front (m, m) of the inverse, from those to their right."""
    wide, rest = right - left, m - right
    turned = work[: rest * wide]  # Y
    for j in range(wide - 1, -1, -1):
        column = turned[j * rest : (j + 1) * rest]
        at = (left + j) * m
        for i in range(rest):
            column[i] = panel[at + right + i]
        combine(column, turned, (j + 1) * rest, rest, panel, at + left + j + 1, 1, wide - 1 - j)
    for j in range(left, right):
        for i in range(left, m):
            own[j * m + i] = 0.0
    # Z_RJ, then Z_JJ
    if float(rest) * rest * wide <= _SMALL:
        for j in range(wide):
            at = (left + j) * m + right
            combine(own[at : at + rest], own, right * m + right, m, turned, j * rest, 1, rest)
    elif rest:
        subtract_product(
            own, left * m + right, m, rest, wide, own, right * m + right, m, False, turned, 0, rest, False, rest,
            plan, factors,
        )  # fmt: skip
    _corner(own, panel, m, left, right, pivots, work[rest * wide :])
    if rest:
        subtract_product(
            own, left * m + left, m, wide, wide, turned, 0, rest, True, own, left * m + right, m, False, rest,
            plan, factors,
        )  # fmt: skip
    for j in range(left, right):
        for i in range(right, m):
            own[i * m + j] = own[j * m + i]


@kernel()
def _corner(
    own: FloatArray, panel: FloatArray, m: int, left: int, right: int, pivots: FloatArray, work: FloatArray
) -> None:
    """L_JJ^{-T} D_J^{-1} L_JJ^{-1} of columns J = left : right, into the front, both halves."""
    wide = right - left
    for j in range(wide):  # column j of L_JJ^{-1} is row j of this
        for i in range(wide):
            work[j * wide + i] = 0.0
        work[j * wide + j] = 1.0
        for p in range(j, wide):
            value = work[j * wide + p]
            for i in range(p + 1, wide):
                work[j * wide + i] -= value * panel[(left + p) * m + left + i]
    for j in range(wide):
        for i in range(j + 1):
            total = 0.0
            for p in range(j, wide):
                total += work[i * wide + p] * work[j * wide + p] / pivots[left + p]
            own[(left + j) * m + left + i] = total
            own[(left + i) * m + left + j] = total


@kernel()
def _disturb(own: FloatArray, noise: float, seed: int) -> None:
    """Change every number by a relative `noise` of random sign (a linear congruential generator does)."""
    state = np.uint64(seed) * np.uint64(2654435761) + np.uint64(1)
    for i in range(own.size):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        own[i] *= 1.0 + (noise if state >> np.uint64(63) else -noise)


@kernel()
def _write(
    own: FloatArray, m: int, begin: int, end: int, local: IndexArray, indptr: IntArray, indices: IndexArray,
    scale: FloatArray, order: IntArray, place: IndexArray, values: FloatArray, diagonal: FloatArray,
) -> None:  # fmt: skip
    """Read the pattern's entries, and the diagonal, off a front of the inverse, in A's own units."""
    for column in range(begin, end):
        i = order[column]
        at = m * (column - begin)
        diagonal[i] = own[at + column - begin] * scale[i] * scale[i]
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            row = place[j]
            if row >= column:
                values[q] = own[at + (row - begin if row < end else local[row])] * scale[i] * scale[j]


@kernel()
def mirror_later(indptr: IntArray, indices: IndexArray, place: IndexArray, values: FloatArray) -> None:
    """Copy entries on the pattern from columns eliminated earlier to their mirror images."""
    mirror = indptr[:-1].copy()
    for i in range(place.size):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if place[j] < place[i]:
                values[k] = values[mirror[j]]
            mirror[j] += 1

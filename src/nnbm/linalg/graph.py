"""The graph of a symmetric matrix: what ordering and symbolic analysis work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import IntArray
from nnbm.kernels import kernel

__all__ = ["Graph", "IndexArray", "compressed", "first_asymmetric"]

IndexArray: TypeAlias = NDArray[np.int32]  # half the memory of int64, and what SciPy takes for itself


@dataclass(frozen=True)
class Graph:
    """Vertices with weights (n,); those next to vertex i are neighbours[starts[i] : starts[i + 1]], without i."""

    starts: IntArray
    neighbours: IndexArray
    weights: IntArray

    @property
    def n(self) -> int:
        """How many vertices."""
        return self.weights.size

    def renumbered(self, order: IntArray) -> Graph:
        """The same graph, its vertex order[k] now called k."""
        place = np.empty(self.n, dtype=np.int32)
        place[order] = np.arange(self.n, dtype=np.int32)
        starts = np.zeros(self.n + 1, dtype=np.int64)
        np.cumsum(np.diff(self.starts)[order], out=starts[1:])
        return Graph(starts, _renumber(self.starts, self.neighbours, order, place), self.weights[order])


@kernel()
def _renumber(starts: IntArray, neighbours: IndexArray, order: IntArray, place: IndexArray) -> IndexArray:
    found = np.empty_like(neighbours)
    top = 0
    for i in order:
        for k in range(starts[i], starts[i + 1]):
            found[top] = place[neighbours[k]]
            top += 1
    return found


@kernel()
def first_asymmetric(indptr: IntArray, indices: IndexArray) -> int:
    """The first entry of a CSR pattern with sorted rows whose mirror image is missing, or -1."""
    n = indptr.size - 1
    mirror = indptr[:-1].copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if mirror[j] == indptr[j + 1] or indices[mirror[j]] > i:
                return k
            if indices[mirror[j]] < i:
                return mirror[j]
            mirror[j] += 1
    return -1


def compressed(indptr: IntArray, indices: IndexArray) -> tuple[Graph, IndexArray]:
    """The graph of a symmetric CSR pattern with equal columns merged, and the vertex (n,) each column went into.

    Columns i and j are equal if i and j are neighbours and have the same neighbours, like the columns of one block of a
    matrix of 2 x 2 blocks. A vertex weighs as much as it has columns.
    """
    n = indptr.size - 1
    salt = np.random.default_rng(0).integers(0, 2**63, n).astype(np.uint64)
    signature = _signatures(indptr, indices, salt)
    vertex, count = _merge(indptr, indices, signature, np.argsort(signature, kind="stable"))
    weights = np.bincount(vertex, minlength=count).astype(np.int64)
    starts, neighbours = _quotient(indptr, indices, vertex, weights)
    return Graph(starts, neighbours, weights), vertex


@kernel()
def _signatures(indptr: IntArray, indices: IndexArray, salt: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) a number that is the same for equal columns, and hardly ever for others."""
    found = salt.copy()
    for i in range(salt.size):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                found[i] += salt[indices[k]]
    return found


@kernel()
def _merge(
    indptr: IntArray, indices: IndexArray, signature: NDArray[np.uint64], by_signature: IntArray
) -> tuple[IndexArray, int]:
    """The vertex (n,) of each column, counted in the order of each vertex's first column; and how many there are."""
    n = signature.size
    leader = np.arange(n)
    seen = np.full(n, -1)
    first = -1
    for i in by_signature:
        if first >= 0 and signature[i] == signature[first] and _same(indptr, indices, first, i, seen):
            leader[i] = first
        else:
            first = i
            seen[i] = first
            for k in range(indptr[i], indptr[i + 1]):
                seen[indices[k]] = first
    vertex = np.empty(n, dtype=np.int32)
    count = 0
    for i in range(n):
        if leader[i] == i:
            vertex[i] = count
            count += 1
        else:
            vertex[i] = vertex[leader[i]]
    return vertex, count


@kernel()
def _same(indptr: IntArray, indices: IndexArray, first: int, i: int, seen: IntArray) -> bool:
    """Whether column i has the neighbours of column first, which are marked in `seen`; each counts as its own."""
    if seen[i] != first:
        return False
    size, own = 1, 1
    for k in range(indptr[first], indptr[first + 1]):
        size += indices[k] != first
    for k in range(indptr[i], indptr[i + 1]):
        if seen[indices[k]] != first:
            return False
        own += indices[k] != i
    return size == own


@kernel()
def _quotient(
    indptr: IntArray, indices: IndexArray, vertex: IndexArray, weights: IntArray
) -> tuple[IntArray, IndexArray]:
    """The neighbours of every vertex, each once, read off its first column."""
    count = weights.size
    starts = np.zeros(count + 1, dtype=np.int64)
    neighbours = np.empty(indices.size, dtype=np.int32)
    seen = np.full(count, -1)
    top = 0
    done = 0
    for i in range(vertex.size):
        if vertex[i] != done:
            continue
        seen[done] = done
        for k in range(indptr[i], indptr[i + 1]):
            v = vertex[indices[k]]
            if seen[v] != done:
                seen[v] = done
                neighbours[top] = v
                top += 1
        done += 1
        starts[done] = top
    return starts, neighbours[:top].copy()

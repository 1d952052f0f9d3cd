"""Moments of one chain in constant memory, and the batch means from which their errors come.

One step does everything: merging a group of draws into a larger one (Chan, Golub & LeVeque 1983; Welford's for a group
of one) adds count weight / (count + weight) times the squared difference of their means to a sum of squares. Draws are
merged into batches, two batches into one of twice the size, those into the halves of the chain. With one sum of squares
a level, their total is the draws' variance, and each level's is the variance of its batch means.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.model import Coupling
from nnbm.sampling.update import Indices

__all__ = ["Accumulator", "Pattern"]

_BUFFER = 2**17  # numbers in the rows that a chain writes to: they stay in the cache until they are merged
_MOST_BATCHES = 1024  # larger ones of a chain; more say nothing more about an error
_APART = 16  # numbers between two chains' arrays: threads that share a cache line slow each other down
_BATCH, _LARGE, _FIRST, _SECOND, _CLOSED, _LARGE_CLOSED, _TOTAL, _PLACE = range(8)  # in an accumulator's counts


class Pattern:
    """Which products x_i x_j, i < j, are summed: all of a dense coupling, the edges of a sparse one; row by row."""

    def __init__(self, coupling: Coupling) -> None:
        self.n = coupling.shape[0]
        if isinstance(coupling, np.ndarray):
            self.pointers, self.neighbours = np.empty(0, np.int32), np.empty(0, np.int32)
            self.size = self.n * (self.n - 1) // 2
        else:
            self.pointers, self.neighbours = coupling.indptr, coupling.indices
            self.size = _above_diagonal(self.pointers, self.neighbours)

    def matrix(self, diagonal: FloatArray, products: FloatArray) -> Coupling:
        """(n, n) symmetric with these entries, of the coupling's kind; a sparse one on its pattern and diagonal."""
        if self.pointers.size == 0:
            dense = np.zeros((self.n, self.n))
            dense[np.triu_indices(self.n, 1)] = products
            dense += dense.T
            np.fill_diagonal(dense, diagonal)
            return dense
        data, without = np.empty(self.neighbours.size), np.ones(self.n, np.bool_)
        _spread(self.pointers, self.neighbours, diagonal, products, data, without)
        found = sparse.csr_array((data, self.neighbours, self.pointers), shape=(self.n, self.n))
        if not without.any():
            return found
        lacking, entries = np.flatnonzero(without), found.tocoo()  # a w_ii between two ends may be zero
        i, j = (np.concatenate([old, lacking]) for old in entries.coords)
        return sparse.csr_array((np.concatenate([entries.data, diagonal[lacking]]), (i, j)), shape=found.shape)


@kernel()
def _above_diagonal(pointers: Indices, neighbours: Indices) -> int:
    count = 0
    for i in range(pointers.size - 1):
        for e in range(pointers[i], pointers[i + 1]):
            count += neighbours[e] > i
    return count


@kernel()
def _spread(
    pointers: Indices, neighbours: Indices, diagonal: FloatArray, products: FloatArray, data: FloatArray,
    without: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Fill CSR data; rows are sorted, so what lies left of row j's diagonal arrives in order. without: no diagonal."""
    place = pointers[:-1].copy()
    k = 0
    for i in range(place.size):
        for e in range(pointers[i], pointers[i + 1]):
            j = neighbours[e]
            if j > i:
                data[e] = products[k]
                data[place[j]] = products[k]
                place[j] += 1
                k += 1
            elif j == i:
                data[e] = diagonal[i]
                without[i] = False


@kernel()
def _add_products(
    apart: FloatArray, factor: float, pointers: Indices, neighbours: Indices, products: FloatArray
) -> None:
    """products += factor apart_i apart_j on the pattern."""
    k = 0
    if pointers.size == 0:
        for i in range(apart.size):
            scaled, right = factor * apart[i], apart[i + 1 :]
            part = products[k : k + right.size]
            for j in range(right.size):
                part[j] += scaled * right[j]
            k += right.size
        return
    for i in range(apart.size):
        scaled = factor * apart[i]
        for e in range(pointers[i], pointers[i + 1]):
            j = neighbours[e]
            if j > i:
                products[k] += scaled * apart[j]
                k += 1


@kernel()
def _merge(
    mean: FloatArray, count: int, other: FloatArray, weight: int, squares: FloatArray, pointers: Indices,
    neighbours: Indices, products: FloatArray,
) -> None:  # fmt: skip
    """`weight` draws, mean `other` (n,), join `count` draws of mean `mean` (0 of none); `other` ends less `mean`."""
    share = weight / (count + weight)
    factor = count * share
    for i in range(mean.size):
        apart = other[i] - mean[i]
        mean[i] += share * apart
        squares[i] += factor * apart * apart
        other[i] = apart
    if count > 0:
        _add_products(other, factor, pointers, neighbours, products)


@kernel()
def _close(
    half: int, counts: IntArray, means: FloatArray, squares: FloatArray, pointers: Indices, neighbours: Indices,
    products: FloatArray,
) -> None:  # fmt: skip
    """The open batch joins the larger one, and that, unless half < 0, this half of the chain (_FIRST or _SECOND)."""
    if counts[_BATCH] > 0:
        batch, large = means[_BATCH], means[_LARGE]
        _merge(large, counts[_LARGE], batch, counts[_BATCH], squares[1], pointers, neighbours, products)
        counts[_LARGE] += counts[_BATCH]
        counts[_CLOSED] += 1
        counts[_BATCH] = 0
        batch[:] = 0.0
    if half >= 0 and counts[_LARGE] > 0:
        large = means[_LARGE]
        _merge(means[half], counts[half], large, counts[_LARGE], squares[2], pointers, neighbours, products)
        counts[half] += counts[_LARGE]
        counts[_LARGE_CLOSED] += 1
        counts[_LARGE] = 0
        large[:] = 0.0


@kernel()
def _take(
    rows: FloatArray, draws: int, batches: int, counts: IntArray, means: FloatArray, squares: FloatArray,
    pointers: Indices, neighbours: Indices, products: FloatArray,
) -> None:  # fmt: skip
    """Merge rows (count, n), which are used up; batch s of `batches` ends after (s + 1) draws // batches draws."""
    for k in range(rows.shape[0]):
        _merge(means[_BATCH], counts[_BATCH], rows[k], 1, squares[0], pointers, neighbours, products)
        counts[_BATCH] += 1
        counts[_TOTAL] += 1
        s = counts[_PLACE]
        while s < batches and counts[_TOTAL] >= (s + 1) * draws // batches:
            half = -1 if s % 2 == 0 else (_FIRST if s < batches // 2 else _SECOND)
            _close(half, counts, means, squares, pointers, neighbours, products)
            s += 1
        counts[_PLACE] = s


class Accumulator:
    """A sink that sums up one chain's draws: some nine numbers a variable and one a product, however many draws.

    draws: how many are meant to come; batches and halves are laid out for them. squares: (3, n) the sums of squares
    within batches, of batches within larger ones, of those within the chain's halves. halves: (2, n) their means.
    """

    def __init__(self, pattern: Pattern, draws: int) -> None:
        n, size = pattern.n, pattern.size
        self._draws, self._pattern = draws, pattern
        self._batches = 4 * max(1, min(math.isqrt(draws), _MOST_BATCHES) // 2)  # so that larger ones number sqrt(draws)
        memory = np.zeros(7 * n + size + _APART)
        self._means = memory[: 4 * n].reshape(4, n)
        self.squares = memory[4 * n : 7 * n].reshape(3, n)
        self.products = memory[7 * n : 7 * n + size]
        self._counts = np.zeros(8 + _APART, np.int64)
        self._rows = np.empty((max(1, min(draws, _BUFFER // n)), n))

    @property
    def recorded(self) -> int:
        """Draws so far."""
        return int(self._counts[_TOTAL])

    @property
    def complete(self) -> bool:
        """Whether all draws came, so that the halves are halves."""
        return self.recorded == self._draws

    @property
    def closed(self) -> tuple[int, int]:
        """How many batches, and larger batches, there were."""
        return int(self._counts[_CLOSED]), int(self._counts[_LARGE_CLOSED])

    @property
    def halves(self) -> FloatArray:
        """(2, n)."""
        return self._means[_FIRST : _SECOND + 1]

    @property
    def counts(self) -> tuple[int, int]:
        """Draws in each half."""
        return int(self._counts[_FIRST]), int(self._counts[_SECOND])

    @property
    def mean(self) -> FloatArray:
        """(n,) once the halves are joined."""
        return self._means[_FIRST]

    def rows(self, most: int) -> FloatArray:
        """Memory of its own, used again and again."""
        return self._rows[:most]

    def keep(self, count: int) -> None:
        """Sum them up."""
        _take(
            self._rows[:count], self._draws, self._batches, self._counts, self._means, self.squares, *self._where,
            self.products,
        )  # fmt: skip

    def pause(self, sweeps: int) -> None:
        """Sums need no notes."""

    def finish(self) -> None:
        """No more draws: close what is open, where the chain ended before its last one."""
        self._rows = self._rows[:0].copy()  # memory that nobody needs any more
        half = _FIRST if self._counts[_PLACE] < self._batches // 2 else _SECOND
        _close(half, self._counts, self._means, self.squares, *self._where, self.products)

    def join_halves(self) -> None:
        """One mean for the chain; the squares of the halves' difference count as those between larger batches."""
        first, second = self.counts
        if second > 0:
            self._absorb(self.halves[1], second, first)
            self._counts[_FIRST], self._counts[_SECOND] = first + second, 0

    def join(self, other: Accumulator) -> None:
        """Add another chain's draws, both with their halves joined; the other one is used up."""
        self.squares += other.squares
        self.products += other.products
        self._absorb(other.mean, other.recorded, self.recorded)
        for place in (_TOTAL, _CLOSED, _LARGE_CLOSED):
            self._counts[place] += other._counts[place]

    def _absorb(self, mean: FloatArray, weight: int, count: int) -> None:
        _merge(self.mean, count, mean, weight, self.squares[2], *self._where, self.products)

    @property
    def _where(self) -> tuple[Indices, Indices]:
        return self._pattern.pointers, self._pattern.neighbours

"""Which couplings are free: a set of edges, and the order of the parameters that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nnbm.arrays import FloatArray, IntArray

__all__ = ["EdgeSet", "checked_edges"]


@dataclass(frozen=True, eq=False)
class EdgeSet:
    """Distinct pairs (i, j), i < j, in row order, of n variables.

    Parameters come as one vector (2n + edges): b_i, then w_ii, then w_ij in this order.

    >>> EdgeSet.complete(3).size, EdgeSet.complete(3).parameters
    (3, 9)
    """

    n: int
    i: IntArray
    j: IntArray

    @classmethod
    def complete(cls, n: int) -> EdgeSet:
        """All pairs."""
        i, j = np.triu_indices(n, k=1)
        return cls(n, i.astype(np.int64), j.astype(np.int64))

    def same(self, other: EdgeSet) -> bool:
        """Whether these are the same edges of as many variables."""
        return self.n == other.n and np.array_equal(self.i, other.i) and np.array_equal(self.j, other.j)

    @property
    def size(self) -> int:
        """Number of edges."""
        return self.i.size

    @property
    def parameters(self) -> int:
        """Length of the parameter vector."""
        return 2 * self.n + self.size

    @property
    def is_complete(self) -> bool:
        """Whether every pair is an edge."""
        return 2 * self.size == self.n * (self.n - 1)

    @cached_property
    def neighbours(self) -> tuple[IntArray, ...]:
        """Per variable: its neighbours, (degree,) each."""
        return self._by_variable(np.concatenate([self.j, self.i]))

    @cached_property
    def own_edges(self) -> tuple[IntArray, ...]:
        """Per variable: the positions of its edges, in the order of `neighbours`."""
        return self._by_variable(np.tile(np.arange(self.size), 2))

    def _by_variable(self, values: IntArray) -> tuple[IntArray, ...]:
        owner = np.concatenate([self.i, self.j])
        order = np.argsort(owner, kind="stable")
        ends = np.cumsum(np.bincount(owner, minlength=self.n))[:-1]
        return tuple(np.split(values[order], ends))

    def symmetric(self, values: FloatArray, diagonal: FloatArray | float = 0.0) -> FloatArray:
        """(n, n) dense, with `values` on the edges and `diagonal` on the diagonal."""
        matrix = np.zeros((self.n, self.n))
        matrix[self.i, self.j] = values
        matrix[self.j, self.i] = values
        np.fill_diagonal(matrix, diagonal)
        return matrix

    def sums(self, values: FloatArray) -> FloatArray:
        """(n,) per variable, the sum of its edges' values."""
        return self._to_ends(values, values)

    def pulls(self, couplings: FloatArray, x: FloatArray) -> FloatArray:
        """(n,) sum_j w_ij x_j over the edges, for one point x (n,)."""
        return self._to_ends(couplings * x[self.j], couplings * x[self.i])

    def _to_ends(self, at_i: FloatArray, at_j: FloatArray) -> FloatArray:
        return np.bincount(self.i, at_i, self.n).astype(np.float64) + np.bincount(self.j, at_j, self.n)


def checked_edges(edges: Any, n: int) -> EdgeSet:
    """None -> all pairs; (i, j) -> these, each once and sorted; or an error that names the first bad one.

    >>> checked_edges(([2, 0], [0, 1]), 3).j
    array([1, 2])
    """
    if edges is None:
        return EdgeSet.complete(n)
    try:
        i, j = (np.asarray(part) for part in edges)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "edges: None (all pairs) or two equally long arrays (i, j) of variables are meant. Of a list of pairs make "
            "them by zip(*pairs)."
        ) from error
    if i.ndim != 1 or i.shape != j.shape or (i.size and not (i.dtype.kind in "iu" and j.dtype.kind in "iu")):
        raise ValueError(
            f"edges: i and j must be equally long rows of whole numbers; they are {i.dtype} of shape {i.shape} and "
            f"{j.dtype} of shape {j.shape}."
        )
    low, high = np.minimum(i, j), np.maximum(i, j)
    outside = (low < 0) | (high >= n)
    if outside.any():
        k = int(np.argmax(outside))
        raise ValueError(f"edges: variables are numbered 0 to {n - 1}, but edge {k} is ({i[k]}, {j[k]}).")
    if (low == high).any():
        k = int(np.argmax(low == high))
        raise ValueError(f"edges: an edge joins two variables, but edge {k} is ({i[k]}, {j[k]}). Drop it.")
    code = np.unique(low.astype(np.int64) * n + high.astype(np.int64))
    return EdgeSet(n, code // n, code % n)

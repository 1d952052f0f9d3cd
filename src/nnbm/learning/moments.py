"""Moments of data in one pass: weighted, mergeable, on all pairs or on the edges alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.learning.edges import EdgeSet
from nnbm.learning.rows import Rows

__all__ = ["Moments", "moments"]


@dataclass(frozen=True, eq=False)
class Moments:
    """total: rows, repeats counted. mean, variance: (n,). covariance: (edges,). Central, so nothing cancels."""

    edges: EdgeSet
    total: float
    mean: FloatArray
    variance: FloatArray
    covariance: FloatArray

    @property
    def second_moment(self) -> FloatArray:
        """(n,) <x_i²>."""
        return self.variance + self.mean**2

    @property
    def dense_covariance(self) -> FloatArray:
        """(n, n); 0 where there is no edge."""
        return self.edges.symmetric(self.covariance, self.variance)

    def merged(self, other: Moments) -> Moments:
        """The moments of both sets of rows together (Chan, Golub & LeVeque 1983)."""
        total = self.total + other.total
        share, apart = other.total / total, other.mean - self.mean
        between = share * (1.0 - share)
        e = self.edges
        return Moments(
            e,
            total,
            self.mean + share * apart,
            (1.0 - share) * self.variance + share * other.variance + between * apart**2,
            (1.0 - share) * self.covariance + share * other.covariance + between * apart[e.i] * apart[e.j],
        )


def moments(rows: Rows, edges: EdgeSet) -> Moments:
    """The moments of a table; batches of rows are merged, so that a long table needs no copy.

    >>> found = moments(Rows.checked([[1.0, 2.0], [3.0, 1.0]]), EdgeSet.complete(2))
    >>> found.mean, found.variance, found.covariance
    (array([2. , 1.5]), array([1.  , 0.25]), array([-0.5]))
    """
    parts = (_of_batch(batch, edges) for batch in rows.batches())
    return reduce(Moments.merged, parts)


def _of_batch(rows: Rows, edges: EdgeSet) -> Moments:
    mean = rows.average(rows.columns)
    apart = rows.columns - mean[:, None]
    weighted = apart * rows.shares
    if edges.is_complete:
        products = weighted @ apart.T
        return Moments(edges, rows.total, mean, products.diagonal().copy(), products[edges.i, edges.j])
    variance = np.einsum("ik,ik->i", weighted, apart)
    # edge by edge in slices, so that no (edges, rows) array is built
    covariance = np.empty(edges.size)
    for start in range(0, edges.size, 256):
        part = slice(start, start + 256)
        covariance[part] = np.einsum("ek,ek->e", weighted[edges.i[part]], apart[edges.j[part]])
    return Moments(edges, rows.total, mean, variance, covariance)

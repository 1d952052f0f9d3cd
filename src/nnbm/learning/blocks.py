"""Sums of node-wise quadratic forms, tied by the symmetry of W: the linear algebra of composite likelihoods.

Node i speaks of its own parameters only, in this order: b_i, w_ii, then w_ij of its neighbours; every w_ij is spoken of
by two nodes. Pieces from several batches of rows add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import blas
from scipy.sparse.linalg import cg

from nnbm.arrays import FloatArray, IntArray
from nnbm.learning.edges import EdgeSet
from nnbm.linalg.dense import balanced

__all__ = ["DENSE_PARAMETERS", "Blocks", "weighted_gram"]

DENSE_PARAMETERS = 5_000  # 200 MB as one matrix
_CG_TOLERANCE, _CG_STEPS = 1e-10, 5_000


@dataclass(frozen=True, eq=False)
class Blocks:
    """Averages over `total` rows. value: the objective's. gradient: per node (degree + 2,). curvature: per node
    (degree + 2, degree + 2), or none at all.
    """  # fmt: skip

    edges: EdgeSet
    total: float
    value: float
    gradient: tuple[FloatArray, ...]
    curvature: tuple[FloatArray, ...]

    def merged(self, other: Blocks) -> Blocks:
        """The averages over both sets of rows."""
        total = self.total + other.total
        share = other.total / total
        rest = 1.0 - share
        return Blocks(
            self.edges,
            total,
            rest * self.value + share * other.value,
            tuple(rest * a + share * b for a, b in zip(self.gradient, other.gradient, strict=True)),
            tuple(rest * a + share * b for a, b in zip(self.curvature, other.curvature, strict=True)),
        )

    @cached_property
    def places(self) -> tuple[IntArray, ...]:
        """Per node: where its parameters stand in the whole vector."""
        n = self.edges.n
        return tuple(
            np.concatenate([[node, n + node], 2 * n + own]).astype(np.int64)
            for node, own in enumerate(self.edges.own_edges)
        )

    def total_gradient(self) -> FloatArray:
        """(parameters,)."""
        total = np.zeros(self.edges.parameters)
        for place, part in zip(self.places, self.gradient, strict=True):
            total[place] += part  # a node's places are distinct
        return total

    def matrix(self) -> FloatArray:
        """(parameters, parameters) the whole curvature, dense."""
        total = np.zeros((self.edges.parameters,) * 2)
        for place, part in zip(self.places, self.curvature, strict=True):
            total[np.ix_(place, place)] += part
        return total

    def sparse_matrix(self) -> sparse.csr_array:
        """The same, sparse."""
        rows = np.concatenate([np.repeat(place, place.size) for place in self.places])
        columns = np.concatenate([np.tile(place, place.size) for place in self.places])
        values = np.concatenate([part.ravel() for part in self.curvature])
        return sparse.csr_array((values, (rows, columns)), shape=(self.edges.parameters,) * 2)

    def solve(self, right: FloatArray, ridge: FloatArray | float = 0.0) -> FloatArray | None:
        """(curvature + diag ridge)^{-1} right; None where that is not positive definite."""
        if self.edges.parameters <= DENSE_PARAMETERS:
            matrix = self.matrix()
            matrix.flat[:: right.size + 1] += ridge
            found = balanced(matrix)
            return None if found is None else found.solve(right)
        return self._solve_iteratively(right, ridge)

    def _solve_iteratively(self, right: FloatArray, ridge: FloatArray | float) -> FloatArray | None:
        matrix = self.sparse_matrix()
        matrix += sparse.diags_array(np.broadcast_to(ridge, right.shape))
        diagonal = matrix.diagonal()
        if not (diagonal > 0).all():
            return None
        found, info = cg(matrix, right, rtol=_CG_TOLERANCE, maxiter=_CG_STEPS, M=sparse.diags_array(1.0 / diagonal))
        return np.asarray(found) if info == 0 and float(found @ right) >= 0.0 else None


def weighted_gram(design: FloatArray, root_weights: FloatArray) -> FloatArray:
    """(k, k) sum over rows of weight d d', from the roots of nonnegative weights (rows,) and the design (k, rows)."""
    half = blas.dsyrk(1.0, (design * root_weights).T, trans=1, lower=1)
    return np.tril(half) + np.tril(half, -1).T

"""Taking boosted pivots back exactly: the factor is that of M = B + U E U', the question is B = S A S.

U are unit vectors of a few columns, E = diag(what was added to their pivots). With V = M^{-1} U and the capacity
C = E^{-1} - U'V: B^{-1} = M^{-1} + V C^{-1} V' (Woodbury), det B = det M det E det C, and, both Schur complements of
[[M, U], [U', E^{-1}]] having the same total, inertia(B) = inertia(M) + inertia(C) - inertia(E) (Haynsworth 1968).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import IndexArray

__all__ = ["Boosts", "boosts"]

_LEAST = 1e-12  # of the largest eigenvalue of E C: less is rounding, and A singular


@dataclass(frozen=True)
class Boosts:
    """Boosted columns (p,), V' (p, n), C^{-1} (p, p), and what they change in ln |det| and the number of negatives."""

    columns: IntArray
    response: FloatArray
    inverse: FloatArray
    log_determinant: float
    negative: int

    def correct(self, solution: FloatArray) -> None:
        """Rows (k, n) of M^{-1} b become rows of B^{-1} b."""
        solution += (solution[:, self.columns] @ self.inverse) @ self.response

    def correct_inverse(
        self, indptr: IntArray, indices: IndexArray, place: IndexArray, scale: FloatArray, values: FloatArray,
        diagonal: FloatArray,
    ) -> None:  # fmt: skip
        """Entries and diagonal of S M^{-1} S become those of A^{-1}."""
        response = np.ascontiguousarray(self.response.T)
        _correct(indptr, indices, place, scale, response, response @ self.inverse, values, diagonal)


def boosts(columns: IntArray, added: FloatArray, response: FloatArray) -> Boosts | None:
    """What boosting pivots by `added` (p,) did, from V' (p, n); None if A is singular to rounding."""
    root = np.sqrt(np.abs(added))
    values, vectors = linalg.eigh(np.diag(np.sign(added)) - response[:, columns] * root * root[:, None])
    if np.abs(values).min() <= _LEAST * max(1.0, np.abs(values).max()):
        return None
    vectors *= root[:, None]
    # E^(1/2) C E^(1/2) has these eigenvalues, and its determinant is that of E C
    negative = int((values < 0).sum()) - int((added < 0).sum())
    return Boosts(columns, response, (vectors / values) @ vectors.T, float(np.log(np.abs(values)).sum()), negative)


@kernel()
def _correct(
    indptr: IntArray, indices: IndexArray, place: IndexArray, scale: FloatArray, response: FloatArray,
    weighted: FloatArray, values: FloatArray, diagonal: FloatArray,
) -> None:  # fmt: skip
    for i in range(diagonal.size):
        own = weighted[place[i]] * scale[i]
        diagonal[i] += (own * response[place[i]]).sum() * scale[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j >= i:
                values[k] += (own * response[place[j]]).sum() * scale[j]
    mirror = indptr[:-1].copy()
    for i in range(diagonal.size):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j < i:
                values[k] = values[mirror[j]]
            mirror[j] += 1

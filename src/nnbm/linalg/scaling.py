"""Powers of two that give a symmetric matrix entries of order 1, and the check that it is symmetric and finite."""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import IndexArray

__all__ = ["first_crooked", "scales"]

_CROOKED = 1e-10  # of the scaled matrix: halves that differ by more are not one matrix's


def scales(indptr: IntArray, indices: IndexArray, values: FloatArray) -> FloatArray:
    """S (n,), powers of two: the diagonal of S A S lies in [1/2, 2), unless that would leave entries above 2.

    Where it would, and where the diagonal is zero, the largest entries of the rows are brought to 1 instead. A positive
    definite matrix has no entry larger than the diagonal, so its pivots are 1 - R² of one variable on those before it.
    """
    diagonal = _diagonal(indptr, indices, values)
    scale = _roots(np.abs(diagonal))
    largest = _row_maxima(indptr, indices, values, scale)
    return scale * np.where((largest > 2) | (diagonal == 0), _roots(largest), 1.0)


def _roots(size: FloatArray) -> FloatArray:
    """2^k with 4^k size in [1/2, 2); 1 where size is 0."""
    return np.where(size > 0, np.ldexp(1.0, -(np.frexp(size)[1] // 2)), 1.0)


@kernel()
def _diagonal(indptr: IntArray, indices: IndexArray, values: FloatArray) -> FloatArray:
    """(n,) the diagonal, zero where the pattern has no entry."""
    found = np.zeros(indptr.size - 1)
    for i in range(found.size):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                found[i] = values[k]
    return found


@kernel()
def _row_maxima(indptr: IntArray, indices: IndexArray, values: FloatArray, scale: FloatArray) -> FloatArray:
    """(n,) the largest |entry| of each row of S A S."""
    n = scale.size
    maxima = np.zeros(n)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            maxima[i] = max(maxima[i], abs(values[k]) * scale[i] * scale[indices[k]])
    return maxima


@kernel()
def first_crooked(indptr: IntArray, indices: IndexArray, values: FloatArray, scale: FloatArray) -> int:
    """The first entry of a matrix with a symmetric pattern that differs from its mirror image, or -1."""
    n = scale.size
    mirror = indptr[:-1].copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if abs(values[k] - values[mirror[j]]) * scale[i] * scale[j] > _CROOKED:
                return k
            mirror[j] += 1
    return -1

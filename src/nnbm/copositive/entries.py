"""The entries of a CSR matrix as flat arrays."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nnbm.arrays import FloatArray, IntArray

__all__ = ["row_of_each_entry", "with_data"]


def row_of_each_entry(matrix: sparse.csr_array) -> IntArray:
    """The row, (nnz,), that each stored entry stands in."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def with_data(matrix: sparse.csr_array, data: FloatArray) -> sparse.csr_array:
    """Other `data` (nnz,) on the pattern of the matrix, which is shared."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)

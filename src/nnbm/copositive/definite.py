"""Positive definiteness that rounding cannot fake, of a matrix or of a part of it."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky_banded
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nnbm.arrays import FloatArray
from nnbm.copositive.entries import row_of_each_entry

__all__ = [
    "DENSE_VARIABLES", "EPS", "SPLIT_VARIABLES", "has_positive_definite_part", "is_banded_positive_definite",
    "is_positive_definite", "without_positive_couplings",
]  # fmt: skip

EPS = float(np.finfo(np.float64).eps)
DENSE_VARIABLES = 2_000  # up to here a sparse matrix, or a block of one, is examined as a dense one
SPLIT_VARIABLES = 500  # one eigendecomposition per step of the search for a positive definite part
_BAND_VARIABLES, _BAND_ENTRIES, _BAND_WORK = 50_000, 25_000_000, 20_000_000_000  # a second, 200 MB


def is_positive_definite(unit: FloatArray) -> bool:
    """True only if the matrix (m, m), of diagonal at most 1, is positive definite whatever the rounding.

    The shift exceeds the backward error of the factorisation (Rump 2006, BIT 46:433; the trace is at most m)
    and that of the scaling to unit diagonal.
    """
    size = len(unit)
    shifted = unit.copy()
    shifted.flat[:: size + 1] -= EPS * size * (size + 8)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def without_positive_couplings(unit: FloatArray) -> FloatArray:
    """The matrix (m, m) of unit diagonal with its positive couplings set to zero."""
    kept = np.minimum(unit, 0.0)
    np.fill_diagonal(kept, 1.0)
    return kept


def has_positive_definite_part(unit: FloatArray) -> bool:
    """Is there a positive definite P <= W? Accelerated projections between {P >= floor * I} and {P <= W}."""
    size = len(unit)
    # Entries beyond 1 never matter (x'Wx is concave along e_i - e_j) and would slow the projections down.
    ceiling = np.minimum(unit, 1.0)
    steps = int(np.clip(1_000_000_000 // size**3, 8, 100))
    for floor in (0.1, 0.01, 0.001):
        part, momentum = ceiling, 1.0
        ahead = part
        for _ in range(steps):
            values, vectors = np.linalg.eigh(ahead)
            low = vectors[:, values < floor]
            lift = (low * (floor - values[values < floor])) @ low.T
            moved = np.minimum(ceiling, ahead + 0.5 * (lift + lift.T))
            if is_positive_definite(moved):
                return True
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead = moved + (momentum - 1.0) / following * (moved - part)
            part, momentum = moved, following
    return False


def is_banded_positive_definite(unit: sparse.csr_array) -> bool:
    """As `is_positive_definite`, where a reordering makes the band narrow enough for it; else False."""
    size = unit.shape[0]
    if size > _BAND_VARIABLES:
        return False
    place = np.empty(size, np.int64)
    place[reverse_cuthill_mckee(unit, symmetric_mode=True)] = np.arange(size)
    rows, columns = place[row_of_each_entry(unit)], place[unit.indices]
    width = int((rows - columns).max())
    if size * (width + 1) > _BAND_ENTRIES or size * width**2 > _BAND_WORK:
        return False
    band = np.zeros((width + 1, size))
    lower = rows >= columns
    band[rows[lower] - columns[lower], columns[lower]] = unit.data[lower]
    band[0] -= EPS * size * (width + 8)
    try:
        cholesky_banded(band, overwrite_ab=True, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True

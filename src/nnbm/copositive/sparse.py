"""The verdict on a large sparse matrix: linear time where that can be, never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from nnbm.arrays import FloatArray, IntArray
from nnbm.copositive.definite import DENSE_VARIABLES, EPS, is_banded_positive_definite
from nnbm.copositive.dense import examine_block
from nnbm.copositive.descent import lowest_vectors, rounding_tolerance
from nnbm.copositive.entries import row_of_each_entry, with_data
from nnbm.copositive.verdict import (
    BY_CHOLESKY,
    BY_DROPPING,
    PAIR_LIMIT,
    Copositivity,
    Verdict,
    combined,
    refuted,
    refuted_by_pair,
    undecided,
)

__all__ = ["examine_sparse"]

_LANCZOS_VARIABLES = 200_000
_CONTRACTION_ROUNDS = 50


def _nonzeros(matrix: sparse.csr_array, data: FloatArray) -> sparse.csr_array:
    """Other `data` on the pattern of the matrix, less its zeros; a copy: the pattern may be the caller's."""
    kept = with_data(matrix, data).copy()
    kept.eliminate_zeros()
    return kept


def examine_sparse(unit: sparse.csr_array) -> Copositivity:
    """The verdict on a large sparse matrix (n, n) of unit diagonal; the witness is in its coordinates."""
    size = unit.shape[0]
    rows = row_of_each_entry(unit)
    couplings = np.where(rows == unit.indices, 0.0, unit.data)
    if _contracting_blocks(with_data(unit, np.abs(couplings)), np.zeros(size, np.int64))[0]:
        return Copositivity(Verdict.POSITIVE_DEFINITE, "it is diagonally dominant after a scaling", None)
    if is_banded_positive_definite(unit):
        return Copositivity(Verdict.POSITIVE_DEFINITE, BY_CHOLESKY, None)
    if couplings.min() >= 0.0:
        return Copositivity(Verdict.COPOSITIVE, "all couplings are nonnegative", None)
    lowest = int(couplings.argmin())
    if couplings[lowest] <= PAIR_LIMIT:
        return refuted_by_pair(size, int(rows[lowest]), int(unit.indices[lowest]))
    pull = _nonzeros(unit, np.maximum(-couplings, 0.0))
    labels = connected_components(pull, directed=False)[1]
    certified = _contracting_blocks(pull, labels)
    return combined(size, _blocks_of_sparse(unit, labels, certified))


def _contracting_blocks(couplings: sparse.csr_array, labels: IntArray) -> NDArray[np.bool_]:
    """Blocks b of nonnegative `couplings` B (n, n) for which I - B is certified to be positive definite.

    So it is iff some v > 0 has Bv < v (Collatz & Wielandt; diagonal dominance is v = 1). Tried: (I + B)^k 1.
    """
    blocks = int(labels.max()) + 1
    certified = np.zeros(blocks, np.bool_)
    if couplings.max() >= 1.0:
        return certified
    below_one = 1.0 - EPS * (int(np.diff(couplings.indptr).max()) + 8)
    vector = np.ones(labels.size)
    for _ in range(_CONTRACTION_ROUNDS):
        image = couplings @ vector
        growth = np.zeros(blocks)
        np.maximum.at(growth, labels, image / vector)
        certified |= growth < below_one
        hopeless = np.bincount(labels, vector * image) >= np.bincount(labels, vector * vector)
        if (certified | hopeless).all():
            break
        vector += image
        peak = np.zeros(blocks)
        np.maximum.at(peak, labels, vector)
        vector /= peak[labels]
    return certified


def _blocks_of_sparse(
    unit: sparse.csr_array, labels: IntArray, certified: NDArray[np.bool_]
) -> Iterator[tuple[IntArray, Copositivity]]:
    """The verdicts on the blocks: one for all that are certified, then block by block for the others."""
    if certified.any():
        yield np.empty(0, np.int64), Copositivity(Verdict.COPOSITIVE, BY_DROPPING, None)
    members = np.argsort(labels, kind="stable")
    members = members[~certified[labels[members]]]
    if not members.size:
        return
    gathered = unit[members][:, members]
    rows = row_of_each_entry(gathered)
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(labels[members])) + 1, [members.size]])
    for begin, end in pairwise(bounds):
        if end - begin > DENSE_VARIABLES:
            yield members[begin:end], _examine_large_block(gathered[begin:end, begin:end])
            continue
        # by hand: slicing a sparse matrix costs more than a whole small block does
        entries = slice(gathered.indptr[begin], gathered.indptr[end])
        row, column, data = rows[entries] - begin, gathered.indices[entries] - begin, gathered.data[entries]
        inside = (column >= 0) & (column < end - begin)
        block = np.zeros((end - begin, end - begin))
        block[row[inside], column[inside]] = data[inside]
        yield members[begin:end], examine_block(block)


def _examine_large_block(unit: sparse.csr_array) -> Copositivity:
    """The verdict on a sparse block (m, m) that the graph of its negative couplings connects."""
    diagonal = row_of_each_entry(unit) == unit.indices
    negative = _nonzeros(unit, np.where(diagonal, 1.0, np.minimum(unit.data, 0.0)))
    if is_banded_positive_definite(negative):
        return Copositivity(Verdict.COPOSITIVE, BY_DROPPING, None)
    if is_banded_positive_definite(unit):
        return Copositivity(Verdict.COPOSITIVE, "the block is positive definite", None)
    point = _violation_by_scaling(unit, negative)
    if point is not None:
        return refuted(point, "local minimisation")
    return undecided(unit.shape[0], ["positive definiteness", "local minimisation"])


def _violation_by_scaling(unit: sparse.csr_array, negative: sparse.csr_array) -> FloatArray | None:
    """A point (m,) with x'Wx <= 0 within rounding, if multiplicative updates from any of the starts meet one.

    With W = A - B, A and B >= 0: x <- x * Bx / Ax never raises x'Wx (Sha, Saul & Lee 2002, NIPS 15).
    """
    size, tolerance = unit.shape[0], rounding_tolerance(unit)
    pull = sparse.eye_array(size, format="csr") - negative
    rounds = int(np.clip(300_000_000 // unit.nnz, 20, 300))
    for start in _sparse_starts(unit, negative):
        point = start
        for _ in range(rounds):
            against, total = pull @ point, unit @ point
            if point @ total <= tolerance * (point @ point):
                return point
            point = point * (against / np.maximum(total + against, np.finfo(np.float64).tiny))
            point /= point.max()
    return None


def _sparse_starts(unit: sparse.csr_array, negative: sparse.csr_array) -> Iterator[FloatArray]:
    """Positive vectors (m,): constant, then near lowest eigenvectors without and with positive couplings."""
    size = unit.shape[0]
    yield np.ones(size)
    if size > _LANCZOS_VARIABLES:
        return
    for vector in lowest_vectors(negative, 1).T:
        yield np.abs(vector)
    for vector in lowest_vectors(unit.minimum(1.0), 3).T:
        for side in (vector, -vector):
            yield np.maximum(side, 1e-3 * np.abs(vector).max())

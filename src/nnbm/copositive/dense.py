"""The verdict on a dense matrix: cheap certificates first, the exact search last."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from nnbm.arrays import FloatArray
from nnbm.copositive.definite import (
    SPLIT_VARIABLES,
    has_positive_definite_part,
    is_positive_definite,
    without_positive_couplings,
)
from nnbm.copositive.descent import decide_by_descent
from nnbm.copositive.exact import EXACT_VARIABLES, OUT_OF_BUDGET, REFUTED, search_all_supports
from nnbm.copositive.verdict import (
    BY_CHOLESKY,
    BY_DROPPING,
    BY_PROJECTING,
    BY_SEARCH,
    PAIR_LIMIT,
    Copositivity,
    Verdict,
    combined,
    refuted,
    refuted_by_pair,
    undecided,
)

__all__ = ["examine_block", "examine_dense"]

_EXACT_FIRST_VARIABLES = 20  # up to here the exact search takes milliseconds and always ends


def examine_dense(unit: FloatArray) -> Copositivity:
    """The verdict on a dense matrix (n, n) of unit diagonal; the witness is in its coordinates."""
    if is_positive_definite(unit):
        return Copositivity(Verdict.POSITIVE_DEFINITE, BY_CHOLESKY, None)
    negative = unit < 0.0
    if not negative.any():
        return Copositivity(Verdict.COPOSITIVE, "all couplings are nonnegative", None)
    i, j = np.unravel_index(int(unit.argmin()), unit.shape)
    if unit[i, j] <= PAIR_LIMIT:
        return refuted_by_pair(len(unit), int(i), int(j))
    labels = connected_components(sparse.csr_array(negative), directed=False)[1]
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    blocks = [block for block in members if block.size > 1]
    return combined(len(unit), ((block, examine_block(unit[np.ix_(block, block)])) for block in blocks))


def examine_block(unit: FloatArray) -> Copositivity:
    """The verdict on one dense block (m, m), m >= 2, that the graph of its negative couplings connects."""
    if is_positive_definite(without_positive_couplings(unit)):
        return Copositivity(Verdict.COPOSITIVE, BY_DROPPING, None)
    if is_positive_definite(unit):
        return Copositivity(Verdict.COPOSITIVE, "the block is positive definite", None)
    size = len(unit)
    tried = ["positive definiteness"]
    if size > _EXACT_FIRST_VARIABLES:
        decided = decide_by_descent(unit)
        if decided is not None:
            return decided
        tried.append("local minimisation")
    if _EXACT_FIRST_VARIABLES < size <= SPLIT_VARIABLES:
        if has_positive_definite_part(unit):
            return Copositivity(Verdict.COPOSITIVE, BY_PROJECTING, None)
        tried.append("alternating projections")
    if size <= EXACT_VARIABLES:
        ending, point = search_all_supports(unit)
        if ending != OUT_OF_BUDGET:
            return refuted(point, BY_SEARCH) if ending == REFUTED else Copositivity(Verdict.COPOSITIVE, BY_SEARCH, None)
        tried.append(f"an {BY_SEARCH} up to its budget")
    return undecided(size, tried)

"""The exhaustive search: every support that could carry a violation, without visiting most of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray, IntArray
from nnbm.copositive.definite import EPS
from nnbm.copositive.descent import rounding_tolerance
from nnbm.kernels import kernel

__all__ = ["EXACT_VARIABLES", "OUT_OF_BUDGET", "PROVED", "REFUTED", "search_all_supports"]

EXACT_VARIABLES = 128  # memory of the search: one matrix per level
PROVED, REFUTED, OUT_OF_BUDGET = 0, 1, 2  # how it ends
_EXACT_WORK = 1_000_000_000  # multiplications, some 2 seconds


@kernel(error_model="numpy")
def _has_cholesky_factor(schur: FloatArray, candidates: IntArray, factor: FloatArray, negative_only: bool) -> bool:
    """True if `schur` is positive definite on the candidates, on demand without its positive couplings."""
    for a in range(candidates.size):
        for b in range(a + 1):
            value = schur[candidates[a], candidates[b]]
            if negative_only and a != b and value > 0.0:
                value = 0.0
            for c in range(b):
                value -= factor[a, c] * factor[b, c]
            if a != b:
                factor[a, b] = value / factor[b, b]
            elif value > 4.0 * EPS:
                factor[a, a] = math.sqrt(value)
            else:
                return False
    return True


@kernel(error_model="numpy")
def _branch(schur: FloatArray, candidates: IntArray, linked: NDArray[np.bool_]) -> int:
    """Position of the linked candidate of most negative couplings; -1 if none is or nothing is negative."""
    best, most, any_negative = -1, -1.0, False
    for a in range(candidates.size):
        i = candidates[a]
        negative = 0.0
        for b in range(candidates.size):
            if a != b and schur[i, candidates[b]] < 0.0:
                negative -= schur[i, candidates[b]]
        any_negative = any_negative or negative > 0.0
        negative /= math.sqrt(schur[i, i])
        if linked[i] and negative > most:
            best, most = a, negative
    return best if any_negative else -1


@kernel(error_model="numpy")
def _stationary(schurs: FloatArray, pivots: IntArray, count: int, last: int, point: FloatArray) -> bool:
    """Solve (Wx)_i = 0 for the pivots, x_last = 1, into `point`; True if x >= 0 within rounding."""
    point[:] = 0.0
    point[last] = 1.0
    for level in range(count - 1, -1, -1):
        pivot = pivots[level]
        pull = schurs[level, pivot, last]
        for above in range(level + 1, count):
            pull += schurs[level, pivot, pivots[above]] * point[pivots[above]]
        point[pivot] = -pull / schurs[level, pivot, pivot]
        if point[pivot] < -1e-7:
            return False
    for k in range(point.size):
        point[k] = max(point[k], 0.0)
    return True


@kernel(error_model="numpy")
def _is_violation(unit: FloatArray, point: FloatArray, tolerance: float) -> bool:
    """True if x'Wx <= tolerance * x'x, whose meaning `descent` shares."""
    form, square = 0.0, 0.0
    for i in range(point.size):
        square += point[i] * point[i]
        for j in range(point.size):
            form += point[i] * unit[i, j] * point[j]
    return form <= tolerance * square


@kernel(error_model="numpy")
def _eliminate(parent: FloatArray, child: FloatArray, pivot: int, candidates: IntArray) -> int:
    """Schur complement on the candidates; those of positive pivots are moved to the front and counted."""
    kept = candidates.size
    a = 0
    while a < kept:
        i = candidates[a]
        child[i, i] = parent[i, i] - parent[i, pivot] * parent[i, pivot] / parent[pivot, pivot]
        if child[i, i] > 4.0 * EPS:
            a += 1
        else:
            kept -= 1
            candidates[a], candidates[kept] = candidates[kept], i
    for a in range(kept):
        i = candidates[a]
        ratio = parent[i, pivot] / parent[pivot, pivot]
        for b in range(a):
            j = candidates[b]
            child[i, j] = parent[i, j] - ratio * parent[j, pivot]
            child[j, i] = child[i, j]
    return kept


@kernel(error_model="numpy")
def _walk(unit: FloatArray, tolerance: float, schurs: FloatArray, candidates: IntArray, point: FloatArray) -> int:
    """Walk the tree of `search_all_supports`; a violation is left in `point`."""
    size = point.size
    factor, pivots, counts = np.empty((size, size)), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    linked = np.empty((size + 1, size), np.bool_)
    linked[0, :] = True
    counts[0] = size
    level, work = 0, 0
    while level >= 0:
        schur, count = schurs[level], counts[level]
        open_ = candidates[level, :count]
        place = _branch(schur, open_, linked[level])
        work += count * count + count * count * count // 3
        if work > _EXACT_WORK:
            return OUT_OF_BUDGET
        if (
            place < 0
            or _has_cholesky_factor(schur, open_, factor, True)
            or _has_cholesky_factor(schur, open_, factor, False)
        ):
            level -= 1
            continue
        pivot = open_[place]
        open_[place] = open_[count - 1]
        counts[level] = count - 1
        pivots[level] = pivot
        below = candidates[level + 1, : count - 1]
        for k in range(count - 1):
            below[k] = open_[k]
        kept = _eliminate(schur, schurs[level + 1], pivot, below)
        for k in range(kept, count - 1):
            if _stationary(schurs, pivots, level + 1, below[k], point) and _is_violation(unit, point, tolerance):
                return REFUTED
        for k in range(size):
            linked[level + 1, k] = unit[pivot, k] < 0.0 or (level > 0 and linked[level, k])
        level += 1
        counts[level] = kept
    return PROVED


def search_all_supports(unit: FloatArray) -> tuple[int, FloatArray]:
    """Depth-first search for a smallest violating support, along sets S with positive definite W[S, S].

    A node is a set S of pivots, connected by negative couplings, and the candidates that may still join it,
    with the Schur complement of S on them. A violation on S + {j} shows in a pivot d_j <= 0 (fact 2); a j of
    such a pivot and no violation can not join S. A node ends where the complement is plainly copositive (fact
    3). The branching variable is first taken in, then excluded for good.
    """
    size, tolerance = len(unit), rounding_tolerance(unit)
    schurs = np.empty((size + 1, size, size))
    # Half of the tolerance goes here: boundary cases fall on the side of refusal.
    schurs[0] = unit - 0.5 * tolerance * np.eye(size)
    candidates = np.tile(np.arange(size), (size + 1, 1))
    point = np.zeros(size)
    return _walk(unit, tolerance, schurs, candidates, point), point

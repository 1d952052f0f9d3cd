"""A violation by local minimisation over the simplex, or what the lowest point found certifies."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, eigsh

from nnbm.arrays import FloatArray
from nnbm.copositive.definite import EPS, SPLIT_VARIABLES, is_positive_definite
from nnbm.copositive.verdict import BY_SLOPE, Copositivity, Verdict, refuted
from nnbm.kernels import kernel

__all__ = ["decide_by_descent", "lowest_vectors", "rounding_tolerance", "slope_certifies"]


def rounding_tolerance(unit: FloatArray | sparse.csr_array) -> float:
    """The x'Wx / x'x that rounding can hide; no smallest violation has couplings beyond 1: not counted."""
    magnitude = abs(unit).minimum(1.0) if sparse.issparse(unit) else np.minimum(np.abs(unit), 1.0)
    return 10.0 * EPS * float(magnitude.sum(axis=1).max())


def _violates(unit: FloatArray | sparse.csr_array, point: FloatArray, tolerance: float) -> bool:
    return bool(point @ (unit @ point) <= tolerance * (point @ point))


def decide_by_descent(unit: FloatArray) -> Copositivity | None:
    """A violation if descent from one of the starts meets it; else what the lowest point certifies."""
    tolerance = rounding_tolerance(unit)
    # The descent adds and subtracts couplings: a huge one would leave nothing but its rounding.
    bounded = np.minimum(unit, 2.0)
    steps = min(5 * len(unit) + 500, 20_000_000 // len(unit))
    lowest, least = np.empty(0), math.inf
    for start in _starts(bounded):
        reached = start.copy()
        _descend(bounded, reached, bounded @ start, steps)
        for point in (start, reached, _lowest_on_support(unit, reached)):
            if _violates(unit, point, tolerance):
                return refuted(point, "local minimisation")
        value = float(reached @ (bounded @ reached))
        if value < least:
            lowest, least = reached, value
    if slope_certifies(np.minimum(unit, 1.0), lowest):
        return Copositivity(Verdict.COPOSITIVE, BY_SLOPE, None)
    return None


def slope_certifies(unit: FloatArray, point: FloatArray) -> bool:
    """True if the slope c = Wx > 0 at a minimiser x splits W into positive definite plus nonnegative.

    N = cc' / x'Wx - t I is nonnegative up to t = min(c)^2 / x'Wx; if W is positive semidefinite, so is
    W - N - t I (Cauchy & Schwarz). This certifies singular W, as from fewer measurements than unknowns.
    """
    slope = unit @ point
    form = float(point @ slope)
    if form <= 0.0 or slope.min() <= 0.0:
        return False
    part = unit - np.outer(slope, slope / form)
    part.flat[:: len(unit) + 1] += slope.min() ** 2 / form
    return is_positive_definite(part)


def _starts(unit: FloatArray) -> Iterator[FloatArray]:
    """Points (m,) of the simplex: most negative pairs, the centre, lowest eigenvectors, a few at random."""
    size = len(unit)
    partner = unit.argmin(axis=1)
    strength = unit[np.arange(size), partner]
    for row in np.argsort(strength, kind="stable")[: max(16, min(64, 20_000 // size))]:
        pair = np.zeros(size)
        pair[[row, partner[row]]] = 0.5
        yield pair
    yield np.full(size, 1.0 / size)
    for vector in lowest_vectors(unit, 3).T:
        for side in (vector, -vector):
            positive = np.maximum(side, 0.0)
            if positive.any():
                yield positive / positive.sum()
    generator = np.random.default_rng(0)
    for _ in range(4):
        yield generator.dirichlet(np.ones(size))


def lowest_vectors(unit: FloatArray | sparse.csr_array, count: int) -> FloatArray:
    """Eigenvectors (m, <= count) of the lowest eigenvalues, as good as a limited effort gets them."""
    size = unit.shape[0]
    if size <= 500:
        return np.linalg.eigh(unit)[1][:, :count]
    reach = float(abs(unit).sum(axis=1).max())
    identity = sparse.eye_array(size, format="csr") if sparse.issparse(unit) else np.eye(size)
    start = np.random.default_rng(0).standard_normal(size)
    restarts = int(np.clip(50_000_000 // unit.nnz, 10, 300)) if not isinstance(unit, np.ndarray) else 20
    vectors: FloatArray
    try:
        # the mirrored spectrum: a relative tolerance asks too much of a lowest value near 0
        _, vectors = eigsh(reach * identity - unit, count, which="LA", v0=start, maxiter=restarts, tol=1e-6)
    except ArpackError as failure:
        vectors = getattr(failure, "eigenvectors", np.empty((size, 0)))  # those that converged
    return vectors


def _lowest_on_support(unit: FloatArray, point: FloatArray) -> FloatArray:
    """Lowest eigenvector (m,) on the support of `point`: where min x'Wx = 0, that is the minimiser."""
    support = np.flatnonzero(point > 1e-9 * point.max())
    if support.size > SPLIT_VARIABLES:
        return point
    vector = np.linalg.eigh(unit[np.ix_(support, support)])[1][:, 0]
    polished = np.zeros_like(point)
    polished[support] = np.maximum(vector if vector.sum() > 0.0 else -vector, 0.0)
    return polished


@kernel(error_model="numpy")
def _descend(unit: FloatArray, point: FloatArray, slope: FloatArray, steps: int) -> None:
    """Lower x'Wx on the simplex, in place: each step moves weight between two variables; slope = Wx."""
    for _ in range(steps):
        gain, lose = 0, -1
        for k in range(point.size):
            if slope[k] < slope[gain]:
                gain = k
            if point[k] > 0.0 and (lose < 0 or slope[k] > slope[lose]):
                lose = k
        gap = slope[lose] - slope[gain]
        if gap <= 1e-13 * (abs(slope[lose]) + abs(slope[gain])):
            break
        weight = point[lose]
        curvature = 2.0 - 2.0 * unit[gain, lose]
        if weight * curvature > gap:
            weight = gap / curvature
            point[lose] -= weight
        else:
            point[lose] = 0.0
        point[gain] += weight
        for k in range(point.size):
            slope[k] += weight * (unit[gain, k] - unit[lose, k])

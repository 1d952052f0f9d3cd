"""Proofs that there is nothing to look for: free energies that are convex wherever a solution can lie."""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Point, Problem
from nnbm.linalg.dense import factor

__all__ = ["only_mode"]

_ROUNDS = 3


def only_mode(problem: Problem, main: Point) -> bool:
    """Whether relaxations at the r of `main` can end nowhere else.

    Where W is positive definite the density is log-concave. Otherwise: with r and b given (the closure's field is part
    of b), solutions of (5.1) are stationary points of sum_i (site entropies at mean m_i) - b.m + m'(W - diag r)m / 2,
    whose Hessian is W + diag(1/s - r).
    """
    if _is_convex(problem, problem.diagonal):
        return True
    if main.problem is not problem:  # of weaker couplings
        return False
    most = _largest_variance(problem, problem.bias + main.field_error, main.r)
    return most is not None and _is_convex(problem, problem.diagonal - main.r + 1.0 / most)


def _is_convex(problem: Problem, diagonal: FloatArray) -> bool:
    """Whether off(w_ij) + diag(`diagonal`) is positive definite."""
    matrix = problem.off.copy()
    matrix.flat[:: diagonal.size + 1] = diagonal
    return factor(matrix.T, overwrite=True) is not None


def _largest_variance(problem: Problem, bias: FloatArray, r: FloatArray) -> FloatArray | None:
    """(n,) bounds on what s can be at a solution of (5.1) with these b and r; None where there are none.

    Every mean is largest where those that it competes with are smallest and those that attract it largest, so bounds on
    the means bound each other. They begin at the ends; where nothing attracts, the lower ones will do.
    """
    pull = problem.off.copy()
    pull.flat[:: r.size + 1] = problem.diagonal - r
    competing, attracting = np.maximum(pull, 0.0), np.minimum(pull, 0.0)
    low, high = (np.broadcast_to(end, r.shape) for end in (problem.site.lower, problem.site.upper))
    if not (np.isfinite(low).all() and (np.isfinite(high).all() or not attracting.any())):
        return None
    high = np.where(np.isfinite(high), high, 0.0)  # it counts only where something attracts
    for _ in range(_ROUNDS):
        most = bias - competing @ low - attracting @ high
        high = problem.site.moments(most, r).mean
        least = bias - competing @ high - attracting @ low
        low = problem.site.moments(least, r).mean
    return problem.site.largest_variance(least, bias - competing @ low - attracting @ high, r)

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

    Where W is positive definite the density is log-concave. Otherwise: with r given, solutions of (5.1) are stationary
    points of sum_i (site entropies at mean m_i) - b.m + m'(W - diag r)m / 2, whose Hessian is W + diag(1/s - r).
    """
    if _is_convex(problem, problem.diagonal):
        return True
    if main.problem is not problem:  # of weaker couplings
        return False
    most = _largest_variance(problem, main.r)
    return most is not None and _is_convex(problem, problem.diagonal - main.r + 1.0 / most)


def _is_convex(problem: Problem, diagonal: FloatArray) -> bool:
    """Whether off(w_ij) + diag(`diagonal`) is positive definite."""
    matrix = problem.off.copy()
    matrix.flat[:: diagonal.size + 1] = diagonal
    return factor(matrix.T, overwrite=True) is not None


def _largest_variance(problem: Problem, r: FloatArray) -> FloatArray | None:
    """(n,) bounds on what s can be at a solution of (5.1) with this r; None where couplings of both signs leave none.

    If all variables compete, every mean is largest where the others' are smallest, and these bound each other.
    """
    site, back = problem.site, problem.diagonal - r
    if not np.isfinite(site.lower).all() or problem.off.min() < 0.0 or back.min() < 0.0:
        return None
    low, least = np.full(r.size, site.lower), np.full(r.size, -np.inf)
    most = problem.bias - problem.off @ low - back * low
    for _ in range(_ROUNDS):
        high = site.moments(most, r).mean
        least = problem.bias - problem.off @ high - back * high
        low = site.moments(least, r).mean
        most = problem.bias - problem.off @ low - back * low
    return site.largest_variance(least, most, r)

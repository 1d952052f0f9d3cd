"""The variational free energies F2 and F-dagger as functions of (m, v), with gradient and Hessian (EQ 3, 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_floats
from nnbm.inference.problem import Problem

__all__ = ["gradient", "hessian", "second_order"]


def second_order(problem: Problem, mean: ArrayLike, second_moment: ArrayLike, reaction: ArrayLike = 0.0) -> float:
    """F2(m, v), or with a `reaction` Lambda (n,) F-dagger = F2 - 1/2 sum_i Lambda_i s_i; ln Z ~ -min F2."""
    m, v = as_floats("mean", mean), as_floats("second_moment", second_moment)
    l, r = problem.site.from_moments(m, v)
    s = v - m * m
    own = -problem.bias @ m + 0.5 * problem.diagonal @ v
    entropy = l @ m - 0.5 * r @ v - problem.site.moments(l, r).log_partition.sum()
    pairs = 0.5 * m @ (problem.off @ m) - 0.25 * s @ (problem.off_squared @ s)
    return float(own + entropy + pairs - 0.5 * np.sum(np.asarray(reaction) * s))


def gradient(
    problem: Problem, mean: ArrayLike, second_moment: ArrayLike, reaction: ArrayLike = 0.0
) -> tuple[FloatArray, FloatArray]:
    """(dF/dm, dF/dv), each (n,): zero where EQ 3 holds."""
    m, v = as_floats("mean", mean), as_floats("second_moment", second_moment)
    l, r = problem.site.from_moments(m, v)
    back = problem.off_squared @ (v - m * m) + np.asarray(reaction)
    return l - problem.bias + problem.off @ m + back * m, 0.5 * (problem.diagonal - r - back)


def hessian(problem: Problem, mean: ArrayLike, second_moment: ArrayLike, reaction: ArrayLike = 0.0) -> FloatArray:
    """(2n, 2n) second derivatives in (m, v): H_mm, H_mv, H_vv of EQ 4."""
    m, v = as_floats("mean", mean), as_floats("second_moment", second_moment)
    moments = problem.site.moments(*problem.site.from_moments(m, v))
    s, c, d = moments.variance, moments.covariance_x_xx, moments.variance_xx
    k3, k4 = moments.third_cumulant, moments.fourth_cumulant
    determinant = s * k4 + 2.0 * s**3 - k3 * k3  # = s d - c², without its cancellation
    square = problem.off_squared
    back = square @ (v - m * m) + np.asarray(reaction)
    by_mm = problem.off - 2.0 * square * np.outer(m, m) + np.diag(back + d / determinant)
    by_mv = square * m[:, None] - np.diag(c / determinant)
    by_vv = -0.5 * square + np.diag(s / determinant)
    return np.block([[by_mm, by_mv], [by_mv.T, by_vv]])

"""The model as an exponential family: p ∝ exp(theta.T(x)), T = (x_i, -x_i²/2, -x_i x_j), Fisher information Cov(T)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.learning.blocks import DENSE_PARAMETERS, weighted_gram
from nnbm.learning.edges import EdgeSet
from nnbm.learning.frame import Frame
from nnbm.learning.moments import Moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.rows import Rows
from nnbm.linalg.dense import balanced

_BATCH = 1 << 12  # rows at a time: some hundred statistics of each are held

__all__ = [
    "covariance_over",
    "errors_seen_back",
    "inverse_covariance",
    "mean_statistics",
    "require_dense",
    "sufficient_statistics",
]


def sufficient_statistics(rows: Rows, edges: EdgeSet) -> FloatArray:
    """(parameters, rows) T of every row."""
    x = rows.columns
    return np.concatenate([x, -0.5 * x * x, -x[edges.i] * x[edges.j]])


def mean_statistics(moments: Moments) -> FloatArray:
    """(parameters,) <T>."""
    m, e = moments.mean, moments.edges
    return np.concatenate([m, -0.5 * moments.second_moment, -(moments.covariance + m[e.i] * m[e.j])])


def covariance_over(rows: Rows, values: Callable[[Rows], FloatArray]) -> FloatArray:
    """(k, k) covariance of values(batch) (k, rows), batch by batch, merged as moments are."""

    def of(batch: Rows) -> tuple[float, FloatArray, FloatArray]:
        found, shares = values(batch), batch.shares
        mean = found @ shares
        return batch.total, mean, weighted_gram(found - mean[:, None], np.sqrt(shares))

    return reduce(_merged, map(of, rows.batches(_BATCH)))[2]


def _merged(
    one: tuple[float, FloatArray, FloatArray], other: tuple[float, FloatArray, FloatArray]
) -> tuple[float, FloatArray, FloatArray]:
    """(total, mean, covariance) of both sets of rows (Chan, Golub & LeVeque 1983)."""
    total = one[0] + other[0]
    share, apart = other[0] / total, other[1] - one[1]
    covariance = (1.0 - share) * one[2] + share * other[2] + share * (1.0 - share) * np.outer(apart, apart)
    return total, one[1] + share * apart, covariance


def inverse_covariance(covariance: FloatArray, count: int) -> FloatArray | None:
    """The inverse of a covariance that was estimated from `count` draws, without the bias that inverting brings.

    The mean of an inverse Wishart exceeds the inverse of the mean by (count - 1) / (count - k - 2).
    """
    left = (count - covariance.shape[0] - 2) / (count - 1)
    found = balanced(covariance) if left > 0.0 else None
    return None if found is None else found.inverse() * left


def errors_seen_back(edges: EdgeSet, covariance: FloatArray, frame: Frame) -> Parameters:
    """Standard errors of the parameters of x, from the covariance of those that the frame sees."""
    n, own, offset = edges.n, np.arange(edges.n), frame.offset
    by_bias = np.zeros((n, edges.parameters))
    by_bias[own, own], by_bias[own, n + own] = 1.0, offset
    for end, other in ((edges.i, edges.j), (edges.j, edges.i)):
        by_bias[end, 2 * n + np.arange(edges.size)] = offset[other]
    variances = covariance.diagonal().copy()
    variances[:n] = np.einsum("ik,ik->i", by_bias @ covariance, by_bias)
    return Parameters.from_vector(edges, np.sqrt(np.maximum(variances, 0.0))).in_units(frame.scale)


def require_dense(edges: EdgeSet, what: str) -> None:
    """Refuse what needs a matrix of parameters by parameters where that is too large."""
    if edges.parameters > DENSE_PARAMETERS:
        raise ValueError(
            f"{what}: matrices of {edges.parameters} x {edges.parameters} parameters are needed, but at most "
            f"{DENSE_PARAMETERS} are meant. Use fewer edges or variables."
        )

"""Downs 2001: second-order high-temperature expansion around exponentials of mean m_i (EQ 10).

The w_ii are part of what is expanded, so it holds where curvature matters little: b_i negative and large against
sqrt(w_ii). Elsewhere its equations often have no solution, and then it says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.errors import NoSite
from nnbm.inference.accuracy import expected_error
from nnbm.inference.closed import ACCURATE
from nnbm.inference.problem import Problem
from nnbm.inference.response import Susceptibilities
from nnbm.inference.result import Inference, Status
from nnbm.inference.solver import Options, iterate
from nnbm.linalg.dense import factor
from nnbm.site import HALF_LINE

__all__ = ["infer_downs"]


@dataclass(frozen=True)
class _Expansion:
    """G(m) of EQ 10 for one problem."""

    problem: Problem

    def free_energy(self, m: FloatArray) -> float:
        """G(m) ~ -ln Z at its minimum."""
        p, m2 = self.problem, m * m
        linear = -np.sum(1.0 + np.log(m)) - p.bias @ m + p.diagonal @ m2 + 0.5 * m @ (p.off @ m)
        return float(linear - 0.5 * (p.diagonal**2) @ (m2 * m2) - 0.25 * m2 @ (p.off_squared @ m2))

    def gradient(self, m: FloatArray) -> FloatArray:
        """(n,) dG/dm."""
        p = self.problem
        own = -1.0 / m - p.bias + 2.0 * p.diagonal * m - 2.0 * p.diagonal**2 * m**3
        return own + p.off @ m - m * (p.off_squared @ (m * m))

    def hessian(self, m: FloatArray) -> FloatArray:
        """(n, n) d²G/dm²."""
        p = self.problem
        matrix = p.off - 2.0 * p.off_squared * np.outer(m, m)
        matrix.flat[:: m.size + 1] = (
            1.0 / m**2 + 2.0 * p.diagonal - 6.0 * p.diagonal**2 * m**2 - p.off_squared @ (m * m)
        )
        return matrix

    def step(self, logarithm: FloatArray) -> tuple[FloatArray, float] | None:
        """Newton's step in ln m; None where G is not convex."""
        m = np.exp(logarithm)
        found = factor(self.hessian(m) * np.outer(m, m))
        if found is None:
            return None
        move = -found.solve(m * self.gradient(m))
        return move / max(1.0, float(np.abs(move).max())), float(np.abs(move).max())

    def covariance(self, m: FloatArray) -> FloatArray:
        """(n, n) EQ 10's second moments less m m'."""
        m2 = m * m
        matrix = -self.problem.off * np.outer(m2, m2)
        matrix.flat[:: m.size + 1] = m2 - 2.0 * self.problem.diagonal * m2 * m2
        return matrix


@dataclass(frozen=True)
class _FromMeans:
    expansion: _Expansion
    mean: FloatArray

    def covariance(self) -> FloatArray | None:
        return self.expansion.covariance(self.mean)

    def log_partition(self) -> float | None:
        return -self.expansion.free_energy(self.mean)

    def susceptibilities(self) -> Susceptibilities | None:
        return None


def infer_downs(problem: Problem, names: tuple[str, ...], options: Options) -> Inference:
    """Minimise G from exponentials that fit the independent sites' means; refused but for x >= 0."""
    if problem.site is not HALF_LINE:
        raise ValueError(
            "method: downs expands around exponentials on x >= 0, but some variable has other ends. Use auto or isusp."
        )
    expansion = _Expansion(problem)
    unit = np.sqrt(problem.diagonal)
    # a curvature w counts like a field of sqrt w: the exponentials' means start below 1/sqrt(2 w), where G is convex
    start = 1.0 / (np.maximum(-problem.bias, 0.0) + 3.0 * unit + np.abs(problem.off).sum(axis=1) / unit)
    found = iterate(expansion.step, np.log(start), options)
    m = np.exp(found.y)
    variance = np.diagonal(expansion.covariance(m))
    status, error = Status.NOT_CONVERGED, np.inf
    if found.converged:
        try:
            l, r = problem.site.from_mean_variance(m, variance)
            error = expected_error(problem.point(problem.state(l, r)))
            status = Status.CONVERGED if error <= ACCURATE else Status.INACCURATE
        except NoSite:
            status = Status.NO_SITE
    return Inference(
        "downs", names, status, m, variance, error, _FromMeans(expansion, m), history=found.history,
        detail="" if found.converged else "the expansion around exponentials has no minimum that was found",
    )  # fmt: skip

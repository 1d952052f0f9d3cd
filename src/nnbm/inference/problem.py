"""What every mean-field method here shares: one fixed-point equation, and how the couplings enter it.

Each site i is described by (l_i, r_i) of its q(x; l, r). For naive mean field, TAP, I-SusP and EP alike

    l_i = b_i - sum_j w_ij m_j - (w_ii - r_i) m_i                                                  (EQ 5.1)

they differ only in the *closure*, the rule for r: how a variable's fluctuations come back to it through the others.
With r given, Newton's step in the means solves G dm = -f + (m + m_r/s) dr, G = W + diag(1/s - r).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.linalg.dense import Factor, factor
from nnbm.site import Site, SiteMoments

__all__ = ["Closure", "Point", "Problem", "closed_step"]

_LEAST_FACTOR, _MOST_FACTOR = 0.3, 3.0  # of r in one sweep


@dataclass(frozen=True)
class Problem:
    """b (n,), w_ii (n,), the couplings (n, n) with a zero diagonal, and the sites' domain."""

    bias: FloatArray
    diagonal: FloatArray
    off: FloatArray
    site: Site

    @cached_property
    def off_squared(self) -> FloatArray:
        """(n, n) w_ij², i != j."""
        return self.off * self.off

    @cached_property
    def scale(self) -> FloatArray:
        """(n,) sqrt(w_ii): l / scale has no unit."""
        return np.sqrt(self.diagonal)

    def weakened(self, t: float) -> Problem:
        """The same sites with couplings t w_ij."""
        return self if t == 1.0 else Problem(self.bias, self.diagonal, t * self.off, self.site)

    @property
    def uncoupled(self) -> FloatArray:
        """(2n,) the state that solves t = 0."""
        return np.concatenate([self.bias / self.scale, np.zeros(self.bias.size)])

    def state(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2n,) the dimensionless (l / sqrt w_ii, ln r / w_ii)."""
        return np.concatenate([l / self.scale, np.log(r / self.diagonal)])

    def point(self, state: FloatArray) -> Point:
        """The sites at a state (2n,)."""
        n = self.bias.size
        l, r = state[:n] * self.scale, self.diagonal * np.exp(state[n:])
        return Point(self, l, r, self.site.moments(l, r))


@dataclass(frozen=True)
class Point:
    """The sites (l, r) with their moments, within a problem."""

    problem: Problem
    l: FloatArray
    r: FloatArray
    moments: SiteMoments

    @cached_property
    def mean(self) -> FloatArray:
        """(n,) m."""
        return self.moments.mean

    @cached_property
    def variance(self) -> FloatArray:
        """(n,) s."""
        return self.moments.variance

    @cached_property
    def field_error(self) -> FloatArray:
        """(n,) f = l - b + sum_j w_ij m_j + (w_ii - r_i) m_i, zero at a solution (EQ 5.1)."""
        p = self.problem
        return self.l - p.bias + p.off @ self.mean + (p.diagonal - self.r) * self.mean

    @cached_property
    def gaussian(self) -> Factor | None:
        """G = W + diag(1/s - r): EP's Gaussian precision and Newton's matrix for the means at given r."""
        p = self.problem
        matrix = p.off.copy()
        matrix.flat[:: p.bias.size + 1] = p.diagonal - self.r + 1.0 / self.variance
        return factor(matrix)

    def mean_shift(self, r_shift: FloatArray) -> FloatArray | None:
        """(n,) the change of the means when r changes by `r_shift` and (5.1) is restored, to first order."""
        if self.gaussian is None:
            return None
        # m + m_r/s = -k3 / 2s: the heat equation
        pull = -0.5 * self.moments.third_cumulant / self.variance
        return self.gaussian.solve(-self.field_error + pull * r_shift)


class Closure(Protocol):
    """The rule for r that makes a method."""

    def target(self, point: Point) -> FloatArray | None:
        """(n,) the r that the closure asks for at this point; None outside its domain."""
        ...


def closed_step(problem: Problem, closure: Closure, state: FloatArray) -> tuple[FloatArray, float] | None:
    """One sweep: r towards the closure's target, within a factor, and Newton's step in l that goes with it."""
    point = problem.point(state)
    target = closure.target(point)
    if target is None:
        return None
    r = np.clip(target, _LEAST_FACTOR * point.r, _MOST_FACTOR * point.r)
    shift = point.mean_shift(r - point.r)
    if shift is None:
        return None
    m_r = -0.5 * point.moments.covariance_x_xx
    l_shift = (shift - m_r * (r - point.r)) / point.variance
    move = np.concatenate([l_shift / problem.scale, np.log(r / point.r)])
    # far from the solution Newton overshoots: no site moves by more than a few of its own widths
    reach = 2.0 + 0.5 * np.abs(point.l) / np.sqrt(point.r)
    excess = float((np.abs(l_shift) / np.sqrt(point.r) / reach).max())
    move[: r.size] /= max(1.0, excess)
    residual = max(
        float((np.abs(l_shift) / np.sqrt(point.r) / reach).max()), float(np.abs(target / point.r - 1.0).max())
    )
    return move, residual

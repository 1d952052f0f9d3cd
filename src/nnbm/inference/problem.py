"""What every mean-field method here shares: one fixed-point equation, and how the couplings enter it.

Each site i is described by (l_i, r_i) of its q(x; l, r). For naive mean field, TAP, I-SusP and EP alike

    l_i = b_i - sum_j w_ij m_j - (w_ii - r_i) m_i                                                  (EQ 5.1)

they differ only in the *closure*, the rule for r: how a variable's fluctuations come back to it through the others.
What is skew in them comes back as a field h_i, too, which methods of third order add to b_i (EQ 11); for the others it
is 0. With r given, Newton's step in the means solves G dm = h - f + (m + m_r/s) dr, G = W + diag(1/s - r).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.chart import Chart, r_at, r_coordinate
from nnbm.inference.hessian import SecondOrderResponse, second_order
from nnbm.inference.third_order import MixedResponse, ThirdOrder
from nnbm.kernels import kernel
from nnbm.linalg.dense import Factor, factor, solve_in_place
from nnbm.site import Site, SiteMoments

__all__ = ["Closure", "Point", "Problem", "Sweep", "Target", "closed_step"]

_NEAR = 8.0  # standard deviations: from an end further away couplings are switched on along too long a path
_LEAST_FACTOR, _MOST_FACTOR = math.log(0.3), math.log(3.0)  # in the coordinate of r, in one sweep


@dataclass(frozen=True)
class Problem:
    """b (n,), w_ii (n,), the couplings (n, n) with a zero diagonal, and the sites between their ends."""

    bias: FloatArray
    diagonal: FloatArray
    off: FloatArray
    site: Site

    @cached_property
    def off_squared(self) -> FloatArray:
        """(n, n) w_ij², i != j."""
        return self.off * self.off

    @cached_property
    def chart(self) -> Chart:
        """The coordinates of a state."""
        return Chart.between(self.diagonal, self.site.lower, self.site.upper)

    @cached_property
    def origin(self) -> FloatArray:
        """(n,) the places from which couplings are switched on before anything is known of a solution."""
        return self.origin_about(self.site.moments(self.bias, self.diagonal))

    def origin_about(self, moments: SiteMoments) -> FloatArray:
        """(n,) a single end nearby; between two ends, of which either may be far away, and without any the mean."""
        end = self.single_end(moments, _NEAR)
        return np.where(end < np.inf, end, moments.mean)

    def single_end(self, moments: SiteMoments, reach: float) -> FloatArray:
        """(n,) the only end of a variable, if it is within `reach` standard deviations of its mean; else inf."""
        low, high = (np.broadcast_to(end, self.bias.shape) for end in (self.site.lower, self.site.upper))
        return _single_end(low, high, moments.mean, moments.variance, reach)

    def weakened(self, t: float, origin: FloatArray | None = None) -> Problem:
        """The same sites with t w_ij (x_i - o_i)(x_j - o_j) for every coupling, o an `origin`."""
        if t == 1.0:
            return self
        o = self.origin if origin is None else origin
        return Problem(self.bias - (1.0 - t) * (self.off @ o), self.diagonal, t * self.off, self.site)

    @property
    def uncoupled(self) -> FloatArray:
        """(2n,) the state that solves t = 0."""
        return self.state(self.bias - self.off @ self.origin, self.diagonal)

    def state(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2n,) the coordinates of sites (l, r)."""
        return self.chart.state(l, r)

    def point(self, state: FloatArray) -> Point:
        """The sites at a state (2n,)."""
        l, r = self.chart.natural(state)
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
        """(n,) f = l - b + sum_j w_ij m_j + (w_ii - r_i) m_i, at a solution the closure's field h (EQ 5.1)."""
        p = self.problem
        return _field_error(p.off, p.bias, p.diagonal, self.l, self.r, self.mean)

    @cached_property
    def gaussian(self) -> Factor | None:
        """G = W + diag(1/s - r): EP's Gaussian precision and Newton's matrix for the means at given r."""
        matrix = self.problem.off.copy()
        _set_diagonal(matrix, self.problem.diagonal, self.r, self.moments.cumulants)
        return factor(matrix.T, overwrite=True)

    @cached_property
    def second_order(self) -> SecondOrderResponse | None:
        """Factors of the second-order free energy's Hessian at any Lambda (EQ 5.2); None if it is not convex here."""
        p = self.problem
        return second_order(p.off, p.diagonal - self.r, self.moments.cumulants)

    @cached_property
    def third_order(self) -> ThirdOrder:
        """The third order of the free energy at these sites."""
        higher = self.problem.site.higher_cumulants(self.l, self.r)
        return ThirdOrder.at(self.problem.off, self.moments.cumulants, higher)

    @cached_property
    def third_response(self) -> MixedResponse | None:
        """Factors of the third-order free energy's Hessian at any Lambda; None if it is not convex here."""
        return self.third_order.response(self.problem.diagonal - self.r)

    def mean_shift(self, r_shift: FloatArray) -> FloatArray | None:
        """(n,) the change of the means when r changes by `r_shift` and (5.1) is restored, to first order."""
        if self.gaussian is None:
            return None
        # m + m_r/s = -k3 / 2s: the heat equation
        pull = -0.5 * self.moments.third_cumulant / self.variance
        return self.gaussian.solve(-self.field_error + pull * r_shift)


class Target(NamedTuple):
    """What comes back to the variables through the others: r (n,), and the field h (n,) that is added to b."""

    r: FloatArray
    field: FloatArray | float = 0.0


class Closure(Protocol):
    """The rule for what comes back, which makes a method."""

    def target(self, point: Point) -> Target | None:
        """The r and the field that the closure asks for at this point; None outside its domain."""
        ...


class Sweep:
    """One sweep after another: r towards the closure's target, within a factor, and Newton's step in l with it.

    point: the sites of the latest one, so that nothing known of a solution need be worked out again.
    """

    def __init__(self, problem: Problem, closure: Closure) -> None:
        self._problem, self._closure = problem, closure
        self.point: Point | None = None

    def __call__(self, state: FloatArray) -> tuple[FloatArray, float] | None:
        """The move (2n,) from `state` and its residual; None where the closure has no target or G is indefinite."""
        problem = self._problem
        self.point = point = problem.point(state)
        target = self._closure.target(point)
        if target is None or point.gaussian is None:
            return None
        move = np.empty(state.size)
        chart = problem.chart
        residual = _fill_move(
            chart.field, chart.curvature, chart.fold, point.l, point.r, point.moments.cumulants,
            point.field_error - target.field, target.r, point.gaussian.lower, move,
        )  # fmt: skip
        return move, residual


def closed_step(problem: Problem, closure: Closure, state: FloatArray) -> tuple[FloatArray, float] | None:
    """A single sweep."""
    return Sweep(problem, closure)(state)


@kernel()
def _single_end(
    lower: FloatArray, upper: FloatArray, mean: FloatArray, variance: FloatArray, reach: float
) -> FloatArray:
    found = np.full(mean.size, np.inf)
    for i in range(mean.size):
        if (lower[i] > -np.inf) != (upper[i] < np.inf):
            end = lower[i] if lower[i] > -np.inf else upper[i]
            if abs(end - mean[i]) < reach * math.sqrt(variance[i]):
                found[i] = end
    return found


@kernel()
def _field_error(
    off: FloatArray, bias: FloatArray, diagonal: FloatArray, l: FloatArray, r: FloatArray, mean: FloatArray
) -> FloatArray:
    error = off @ mean
    for i in range(l.size):
        error[i] += l[i] - bias[i] + (diagonal[i] - r[i]) * mean[i]
    return error


@kernel(error_model="numpy")
def _set_diagonal(matrix: FloatArray, diagonal: FloatArray, r: FloatArray, cumulants: FloatArray) -> None:
    """The diagonal of G."""
    for i in range(r.size):
        matrix[i, i] = diagonal[i] - r[i] + 1.0 / cumulants[1, i]


@kernel(error_model="numpy")
def _fill_move(
    field: FloatArray, curvature: FloatArray, fold: FloatArray, l: FloatArray, r: FloatArray, cumulants: FloatArray,
    field_error: FloatArray, target: FloatArray, lower: FloatArray, move: FloatArray,
) -> float:  # fmt: skip
    """Into move (2n,): r's step and the Newton step in l that goes with it, both without a unit; the residual."""
    n = l.size
    shift, r_step = np.empty(n), np.empty(n)
    excess, residual = 0.0, 0.0
    for i in range(n):
        here = r_coordinate(r[i], curvature[i], fold[i])
        step = r_coordinate(target[i], curvature[i], fold[i]) - here
        residual = _larger(residual, abs(step))
        move[n + i] = min(max(step, _LEAST_FACTOR), _MOST_FACTOR)
        r_step[i] = target[i] - r[i] if move[n + i] == step else r_at(here + move[n + i], curvature[i], fold[i]) - r[i]
        # m + m_r/s = -k3 / 2s: the heat equation
        shift[i] = -field_error[i] - 0.5 * cumulants[2, i] / cumulants[1, i] * r_step[i]
    solve_in_place(lower, shift)
    for i in range(n):
        # minus m_r, the derivative of the mean by r, is half of Cov(x, x²)
        m_r = -0.5 * cumulants[2, i] - cumulants[0, i] * cumulants[1, i]
        l_step, unit = (shift[i] - m_r * r_step[i]) / cumulants[1, i], math.sqrt(abs(r[i]) + fold[i] * curvature[i])
        move[i] = l_step / field[i]
        # far from the solution Newton overshoots: no site moves by more than a few of its own widths
        excess = _larger(excess, abs(l_step) / unit / (2.0 + 0.5 * abs(l[i]) / unit))
    move[:n] /= max(1.0, excess)
    return _larger(residual, excess)


@kernel()
def _larger(one: float, other: float) -> float:
    """The maximum, NaN if either is."""
    return other if one < other or other != other else one  # noqa: PLR0124 (only NaN differs from itself)

"""The free energy of pairwise expectation consistency: every edge's two variables exactly, all the rest as a Gaussian.

With means m, variances s and the covariances c of the edges E, d_i edges at i, and A the negative entropy of

    A_e    the pair of truncated variables that has these five moments          G_e the pair of normal ones
    A_i    the site that has these two                                          G_i the normal one
    G      the normal variables with these moments and no coupling but on the edges,

    F(m, s, c) = -b.m + 1/2 m'Wm + 1/2 sum_i w_ii s_i + sum_E w_ij c_ij
                 + sum_E (A_e - G_e) + sum_i (1 - d_i)(A_i - G_i) + G,         ln Z ~ -min F        (13.1)

Exact for two variables and without walls; on a tree G cancels against the G_e and G_i. The slope of A_e is its natural
parameters, its curvature the inverse covariance of its statistics, so Newton's step needs each pair at its present
parameters only and moves them along with the moments (13.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.errors import NoSite
from nnbm.inference.pair_density import STATISTICS, PairMoments, pair_moments, pair_span, span
from nnbm.inference.pair_sites import SiteEntropies
from nnbm.inference.pair_state import Edges, PairState
from nnbm.inference.problem import Problem
from nnbm.kernels import kernel
from nnbm.linalg.dense import Factor, factor

__all__ = ["PairPoint"]

_NARROW = 0.9  # of an exponential's variance, where a site is needed
_TRUSTED = 0.7  # relative change of a variance or a curvature in one step


@dataclass(frozen=True)
class PairPoint:
    """A state with all that Newton's step is made of.

    sites: A_i. pairs: A_e's moments. information: (E, 5, 5) the inverse covariances of their statistics. precision: the
    Gaussian's, of inverse `inverse` (n, n). gaussian: (n + E, n + E) the curvature of G. hessian: F's, positive
    definite, (2n + E, 2n + E). values: (2n + E,) m, s, and the pairs' own c. step: Newton's in these.
    """

    problem: Problem
    edges: Edges
    state: PairState
    sites: SiteEntropies
    pairs: PairMoments
    information: FloatArray
    precision: Factor
    inverse: FloatArray
    gaussian: FloatArray
    hessian: Factor
    values: FloatArray
    step: FloatArray

    @classmethod
    def at(cls, problem: Problem, edges: Edges, state: PairState) -> PairPoint | None:
        """None where a density does not exist, or F is not convex."""
        if not state.exists(problem.site, edges):
            return None
        truncated, normal = _truncated(problem, edges, state), _normal(edges, state)
        if truncated is None or normal is None:
            return None
        (sites, pairs, information), (precision, inverse, gaussian) = truncated, normal
        values = np.concatenate([state.mean, state.variance, pairs.values[4]])
        gradient, matrix = _energy(problem, edges, values)
        if not _add_local(
            matrix, gradient, values, edges.places, state.natural, pairs.values, information, edges.degree,
            sites.slope, sites.curvature,
        ):  # fmt: skip
            return None
        n = state.mean.size
        matrix[n:, n:] += gaussian
        own = inverse[edges.rows, edges.columns]
        gradient[n:] += gaussian @ (values[n:] - own) - _multiplicity(edges) * state.precision
        hessian = factor(matrix.T, overwrite=True)
        if hessian is None:
            return None
        step = -hessian.solve(gradient)
        return cls(
            problem, edges, state, sites, pairs, information, precision, inverse, gaussian, hessian, values, step
        )

    @property
    def move(self) -> tuple[FloatArray, float]:
        """Newton's direction in the state's vector (3n + 6E,), as far as it is to be trusted, and its residual."""
        n, state, edges = self.state.mean.size, self.state, self.edges
        target = self.values + self.step
        gap = target[edges.places] - self.pairs.values.T
        # (13.2), for statistics taken from the pairs' own means
        l_x, l_y, r_x, r_y, k = np.einsum("eab,eb->ae", self.information, STATISTICS * gap)
        x, y = self.pairs.values[:2]
        natural = np.stack([l_x + r_x * x + k * y, l_y + r_y * y + k * x, r_x, r_y, k])
        own = self.inverse[edges.rows, edges.columns]
        precision = -(self.gaussian @ (target[n:] - own)) / _multiplicity(edges)
        unit = np.sqrt(state.variance)
        units = np.concatenate([unit, state.variance, unit[edges.first] * unit[edges.second]])
        apart = float(np.abs(gap / units[edges.places]).max(initial=0.0))
        residual = max(float(np.abs(self.step / units).max()), apart)
        log_variance = self.step[n : 2 * n] / state.variance
        least = self.problem.chart.fold * self.problem.chart.curvature  # between two ends r may change its sign
        curvature = np.abs(state.natural[2:4]) + np.stack([least[edges.first], least[edges.second]])
        largest = max(
            float(np.abs(self.step[:n] / unit).max()), float(np.abs(log_variance).max()),
            float(np.abs(natural[2:4] / curvature).max(initial=0.0)),
        )  # fmt: skip
        move = np.concatenate([self.step[:n], log_variance, natural.ravel(), precision])
        return move * min(1.0, _TRUSTED / max(largest, _TRUSTED)), residual

    @property
    def mean(self) -> FloatArray:
        """(n,) m."""
        return self.state.mean

    @property
    def variance(self) -> FloatArray:
        """(n,) s."""
        return self.state.variance

    @property
    def covariances(self) -> FloatArray:
        """(E,) c."""
        return self.pairs.values[4]

    @property
    def narrowed(self) -> FloatArray:
        """(n,) variances like s that sites with these means have: at most nearly an exponential's."""
        return np.minimum(self.variance, _NARROW * self.sites.widest)

    @cached_property
    def covariance(self) -> FloatArray:
        """(n, n) dm/db."""
        n = self.state.mean.size
        return self.hessian.inverse()[:n, :n].copy()

    @property
    def log_partition(self) -> float:
        """-F at a solution."""
        p, edges, m, s, c = self.problem, self.edges, self.state.mean, self.state.variance, self.pairs.values[4]
        i, j = edges.first, edges.second
        energy = -p.bias @ m + 0.5 * m @ (p.off @ m) + 0.5 * p.diagonal @ (s + m * m) + p.off[i, j] @ c
        l_x, l_y, r_x, r_y, k = self.state.natural
        x, y, s_x, s_y, _ = self.pairs.values
        pairs = l_x * x + l_y * y - 0.5 * r_x * (s_x + x * x) - 0.5 * r_y * (s_y + y * y) - k * (c + x * y)
        pairs += 0.5 * np.log(s_x * s_y - c * c) - self.pairs.log_partition
        sites = (1.0 - edges.degree) @ (self.sites.value + 0.5 * np.log(s))
        return -float(energy + pairs.sum() + sites + 0.5 * self.precision.log_determinant)


def _truncated(
    problem: Problem, edges: Edges, state: PairState
) -> tuple[SiteEntropies, PairMoments, FloatArray] | None:
    """All A_i, A_e, and the latter's inverse covariances (E, 5, 5); None where there are no such densities."""
    i, j = edges.first, edges.second
    low, high = (np.broadcast_to(end, state.mean.size) for end in (problem.site.lower, problem.site.upper))
    try:
        sites = SiteEntropies.at(problem, state.mean, state.variance)
        ends = span(sites.l[i], sites.r[i], low[i], high[i])
        ends = pair_span(state.natural, ends, (low[i], high[i]), (low[j], high[j]))
        pairs = pair_moments(state.natural, ends, problem.site.of(j))
        information = np.linalg.inv(pairs.covariance).astype(np.float64, copy=False)
    except (NoSite, np.linalg.LinAlgError):
        return None
    return (sites, pairs, information) if np.isfinite(information).all() else None


def _normal(edges: Edges, state: PairState) -> tuple[Factor, FloatArray, FloatArray] | None:
    """The Gaussian's precision, its inverse, and the curvature of G; None where there is none."""
    precision = factor(_spread(state.precision, edges), overwrite=True)
    if precision is None:
        return None
    inverse = precision.inverse()
    fisher = factor(_fisher(inverse, edges.rows, edges.columns), overwrite=True)
    return None if fisher is None else (precision, inverse, fisher.inverse())


def _energy(problem: Problem, edges: Edges, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope (2n + E,) and curvature of the energy at these moments: in s and c it is linear."""
    n = problem.bias.size
    matrix = np.zeros((values.size, values.size))
    matrix[:n, :n] = problem.off
    matrix.flat[: n * (values.size + 1) : values.size + 1] = problem.diagonal
    by_mean = problem.off @ values[:n] + problem.diagonal * values[:n] - problem.bias
    slope = np.concatenate([by_mean, 0.5 * problem.diagonal, problem.off[edges.first, edges.second]])
    return slope, matrix


def _multiplicity(edges: Edges) -> FloatArray:
    """(n + E,) how often a square and a product stand in x'Qx/2."""
    return np.concatenate([np.full(edges.degree.size, 0.5), np.ones(edges.first.size)])


def _spread(precision: FloatArray, edges: Edges) -> FloatArray:
    """(n, n) the Gaussian's precision, column by column."""
    matrix = np.zeros((edges.degree.size, edges.degree.size), order="F")
    matrix[edges.rows, edges.columns] = precision
    matrix[edges.columns, edges.rows] = precision
    return matrix


@kernel()
def _fisher(inverse: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """(n + E, n + E) Cov(x_i x_j, x_k x_l) of the Gaussian, the lower triangle column by column."""
    size = rows.size
    found = np.empty((size, size))
    for a in range(size):
        i, j = rows[a], columns[a]
        for b in range(a, size):
            k, m = rows[b], columns[b]
            found[a, b] = inverse[i, k] * inverse[j, m] + inverse[i, m] * inverse[j, k]
    return found.T


@kernel(error_model="numpy")
def _add_local(
    hessian: FloatArray, gradient: FloatArray, values: FloatArray, places: IntArray, natural: FloatArray,
    own: FloatArray, information: FloatArray, degree: IntArray, slope: FloatArray, curvature: FloatArray,
) -> bool:  # fmt: skip
    """A_e - G_e and (1 - d_i)(A_i - G_i), each to second order; False where an edge's moments are no covariance."""
    n = degree.size
    for i in range(n):
        s, extra = values[n + i], 1.0 - degree[i]
        gradient[i] += extra * slope[i, 0]
        gradient[n + i] += extra * (slope[i, 1] + 0.5 / s)
        hessian[i, i] += extra * curvature[i, 0, 0]
        hessian[i, n + i] += extra * curvature[i, 0, 1]
        hessian[n + i, i] += extra * curvature[i, 0, 1]
        hessian[n + i, n + i] += extra * (curvature[i, 1, 1] - 0.5 / (s * s))
    signs = np.array([1.0, 1.0, -0.5, -0.5, -1.0])
    first, block, gap = np.empty(5), np.empty((5, 5)), np.empty(5)
    for e in range(len(places)):
        l_x, l_y, r_x, r_y, k = natural[0, e], natural[1, e], natural[2, e], natural[3, e], natural[4, e]
        first[0] = l_x - r_x * own[0, e] - k * own[1, e]
        first[1] = l_y - r_y * own[1, e] - k * own[0, e]
        first[2], first[3], first[4] = -0.5 * r_x, -0.5 * r_y, -k
        for a in range(5):
            gap[a] = values[places[e, a]] - own[a, e]
            for b in range(5):
                block[a, b] = signs[a] * signs[b] * information[e, a, b]
        block[0, 0] -= r_x
        block[1, 1] -= r_y
        block[0, 1] -= k
        block[1, 0] -= k
        s_x, s_y, c = values[places[e, 2]], values[places[e, 3]], values[places[e, 4]]
        determinant = s_x * s_y - c * c
        if not determinant > 0.0:
            return False
        for a in range(5):
            for b in range(5):
                first[a] += block[a, b] * gap[b]
        x, y, both = s_y / determinant, s_x / determinant, -c / determinant
        first[2] += 0.5 * x
        first[3] += 0.5 * y
        first[4] += both
        block[2, 2] -= 0.5 * x * x
        block[3, 3] -= 0.5 * y * y
        block[2, 3] -= 0.5 * both * both
        block[3, 2] -= 0.5 * both * both
        block[2, 4] -= x * both
        block[4, 2] -= x * both
        block[3, 4] -= y * both
        block[4, 3] -= y * both
        block[4, 4] -= both * both + x * y
        for a in range(5):
            gradient[places[e, a]] += first[a]
            for b in range(5):
                hessian[places[e, a], places[e, b]] += block[a, b]
    return True

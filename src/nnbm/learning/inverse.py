"""Learning as an inverse problem (EQ 7): the parameters whose mean-field solution has the data's moments.

At the learned point means and variances equal the data's, so (l, r) of every variable follow at once, and only the
couplings that reproduce the covariances on the edges are unknown. In units of standard deviations, with K, h, g of each
site (`_Sites`) and T = (diag g - 1/2 w²)^{-1},

    M^{-1} = W_off + diag(a + h) - K T K,      M_ij = C_ij on the edges,                              (EQ 4.1)

where a_i = w_ii - r_i is sum_j w_ij² s_j (susp), or such that M_ii = s_i (isusp). EP is K = 0, h = g = 1: the Gaussian
with these covariances (its own S, not the linear response that `infer` reports for EP). Newton's method knows every
derivative: with B = M K T, a coupling's change dw = E (both ends) moves M by -M E M + w B E B'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from nnbm.arrays import FloatArray, IntArray
from nnbm.errors import NoSite, NotConverged
from nnbm.inference.accuracy import expected_error
from nnbm.inference.problem import Problem
from nnbm.inference.solver import Options, Step, follow, iterate
from nnbm.learning.edges import EdgeSet
from nnbm.learning.labels import listed
from nnbm.learning.moments import Moments
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.linalg.dense import balanced, factor
from nnbm.site import HALF_LINE, Site

__all__ = ["INVERSES", "inverse", "moment_error", "sites_of"]

INVERSES = ("susp", "isusp", "ep")
_DENSE_UNKNOWNS = 2_500  # a Jacobian of 50 MB
_KRYLOV_TOLERANCE, _KRYLOV_STEPS = 1e-3, 60
_LARGEST_STEP = 0.5  # of a coupling, in units of the standard deviations


def inverse(
    moments: Moments, method: str = "isusp", *, options: Options | None = None, names: Sequence[str] | None = None
) -> Estimate:
    """The parameters whose susp, isusp or ep solution has these moments.

    Raises NoSite with the variables where <x²> >= 2 <x>², and NotConverged where no couplings are found.

    >>> from nnbm import gallery, sample
    >>> from nnbm.learning.moments import moments
    >>> from nnbm.learning.rows import Rows
    >>> model = gallery.square_grid(3, 3, coupling=0.5)
    >>> rows = Rows.checked(sample(model, 4000, thin=3, seed=0).flat)
    >>> found = inverse(moments(rows, EdgeSet(9, *model.edges)))
    >>> bool(np.abs(found.parameters.couplings - 0.5).mean() < 0.1)
    True
    """
    if method not in INVERSES:
        raise ValueError(f"method: one of {', '.join(INVERSES)} is meant, but method = {method!r}.")
    e, here = moments.edges, moments.standardised()
    l, r = sites_of(here, names)
    equations = _Equations(e, here.covariance, _sites(here.site, l, r, method), method != "susp")
    solve = _by_fixed_point if e.is_complete and equations.consistent else _by_newton
    couplings, back, history = solve(equations, options or Options())
    bias = l + e.pulls(couplings, here.mean) + back * here.mean
    found = Parameters(e, bias, r + back, couplings).in_units(np.sqrt(moments.variance))
    return Estimate(method, found, len(history))


def sites_of(moments: Moments, names: Sequence[str] | None = None) -> tuple[FloatArray, FloatArray]:
    """The (l, r) of every variable, (n,) each; or a NoSite that names the variables that have none."""
    try:
        return moments.site.from_mean_variance(moments.mean, moments.variance)
    except NoSite as error:
        rule = (
            "less spread than an exponential" if moments.site is HALF_LINE else "a density with its mean and variance"
        )
        condition = "<x²> < 2 <x>² of every variable" if moments.site is HALF_LINE else "a site of every variable"
        raise NoSite(
            f"X: mean-field methods need {condition} ({rule}), which does not hold for "
            f"{listed(names, error.indices)}. Use score_matching or pseudolikelihood, which do not need it.",
            error.indices,
        ) from error


def moment_error(moments: Moments, parameters: Parameters) -> float:
    """How far mean field may be off at these parameters, in standard deviations (see `inference.accuracy`).

    The moments were matched by a mean-field solution, so this is what the parameters' bias stems from.
    """
    e, p = moments.edges, parameters
    problem = Problem(p.bias, p.diagonal, e.symmetric(p.couplings), moments.site)
    return expected_error(problem.point(problem.state(*sites_of(moments))))


@dataclass(frozen=True, eq=False)
class _Sites:
    """What the response needs of the sites, in units where every variance is 1; (n,) each."""

    pull: FloatArray  # K = k3 / D
    stiffness: FloatArray  # h = (k4 + 2 s²) / D
    spread: FloatArray  # g = s / D


def _sites(site: Site, l: FloatArray, r: FloatArray, method: str) -> _Sites:
    if method == "ep":
        ones = np.ones_like(l)
        return _Sites(0.0 * ones, ones, ones)
    s, k3, k4 = site.moments(l, r).cumulants[1:4]
    determinant = s * k4 + 2.0 * s**3 - k3 * k3
    return _Sites(k3 / determinant, (k4 + 2.0 * s * s) / determinant, s / determinant)


@dataclass(frozen=True, eq=False)
class _State:
    """M^{-1} by its factor, M, B = M K T, and the couplings they belong to."""

    couplings: FloatArray
    covariance: FloatArray
    by_spread: FloatArray


@dataclass(frozen=True, eq=False)
class _Equations:
    """M_ij = target on the edges, and if `consistent` M_ii = 1.

    The unknowns are the couplings, then (if `consistent`) a; both belong to pairs (i, j), those of a to (i, i).
    """

    edges: EdgeSet
    target: FloatArray
    sites: _Sites
    consistent: bool

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The pairs of the unknowns."""
        e = self.edges
        if not self.consistent:
            return e.i, e.j
        own = np.arange(e.n)
        return np.concatenate([e.i, own]), np.concatenate([e.j, own])

    def targets(self, t: float) -> FloatArray:
        """What M must be on the pairs when the covariances are switched on to a share t."""
        return np.concatenate([t * self.target, np.ones(self.edges.n if self.consistent else 0)])

    @property
    def uncoupled(self) -> FloatArray:
        """The solution at t = 0."""
        here = self.sites
        alone = 1.0 - here.stiffness + here.pull**2 / here.spread
        return np.concatenate([np.zeros(self.edges.size), alone if self.consistent else alone[:0]])

    def split(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(couplings, a)."""
        couplings = y[: self.edges.size]
        return couplings, y[self.edges.size :] if self.consistent else self.edges.sums(couplings**2)

    def by_spread(self, couplings: FloatArray) -> FloatArray | None:
        """(n, n) K T, T = (diag g - 1/2 w²)^{-1}; None where T is not positive definite, unless nothing asks for it."""
        pull = self.sites.pull
        if not pull.any():  # EP, and variables without walls
            return np.zeros((pull.size, pull.size))
        spread = factor(self.edges.symmetric(-0.5 * couplings**2, self.sites.spread))
        return None if spread is None else pull[:, None] * spread.inverse()

    def state(self, y: FloatArray) -> _State | None:
        """The response; None where the Hessian is not positive definite."""
        couplings, back = self.split(y)
        by_spread = self.by_spread(couplings)
        if by_spread is None:
            return None
        means = factor(self.edges.symmetric(couplings, back + self.sites.stiffness) - by_spread * self.sites.pull)
        if means is None:
            return None
        covariance = means.inverse()
        return _State(couplings, covariance, covariance @ by_spread)

    def step(self, t: float) -> Step:
        """Newton's step."""
        first, second = self.pairs
        targets = self.targets(t)

        def made(y: FloatArray) -> tuple[FloatArray, float] | None:
            here = self.state(y)
            if here is None:
                return None
            gap = targets - here.covariance[first, second]
            move = self._solve(here, gap)
            if move is None:
                return None
            excess = float(np.abs(move[: self.edges.size]).max(initial=0.0)) / _LARGEST_STEP
            return move / max(1.0, excess), float(np.abs(move).max(initial=0.0))

        return made

    def _solve(self, here: _State, gap: FloatArray) -> FloatArray | None:
        if gap.size <= _DENSE_UNKNOWNS:
            try:
                return np.asarray(np.linalg.solve(self.jacobian(here), gap), np.float64)
            except np.linalg.LinAlgError:
                return None
        operator = LinearOperator((gap.size, gap.size), matvec=lambda move: self.change(here, move), dtype=np.float64)
        return np.asarray(gmres(operator, gap, rtol=_KRYLOV_TOLERANCE, maxiter=1, restart=_KRYLOV_STEPS)[0])

    def jacobian(self, here: _State) -> FloatArray:
        """(unknowns, unknowns) derivatives of M on the pairs."""
        e, (first, second) = self.edges, self.pairs

        def both_ways(matrix: FloatArray, k: IntArray, l: IntArray) -> FloatArray:
            by_first, by_second = matrix[first], matrix[second]
            return by_first[:, k] * by_second[:, l] + by_first[:, l] * by_second[:, k]

        found = -both_ways(here.covariance, first, second)
        found[:, : e.size] += here.couplings * both_ways(here.by_spread, e.i, e.j)
        if self.consistent:
            found[:, e.size :] *= 0.5  # (i, i) was counted both ways
            return found
        by_end = here.covariance[first] * here.covariance[second]
        return found - 2.0 * here.couplings * (by_end[:, e.i] + by_end[:, e.j])

    def change(self, here: _State, move: FloatArray) -> FloatArray:
        """The Jacobian times a move, without the Jacobian."""
        e, (first, second) = self.edges, self.pairs
        moved = move[: e.size]
        back = move[e.size :] if self.consistent else e.sums(2.0 * here.couplings * moved)
        by_means = here.covariance @ e.symmetric(moved, back) @ here.covariance
        by_spread = here.by_spread @ e.symmetric(here.couplings * moved) @ here.by_spread.T
        return (by_spread - by_means)[first, second]


_Found = tuple[FloatArray, FloatArray, tuple[float, ...]]  # couplings, a, history


def _by_newton(equations: _Equations, options: Options) -> _Found:
    """From independent variables, straight or by switching the covariances on."""
    plain = replace(options, memory=0)  # Newton's steps need no acceleration
    direct = iterate(equations.step(1.0), equations.uncoupled, plain)
    if direct.converged:
        return (*equations.split(direct.y), direct.history)
    path = follow(equations.step, equations.uncoupled, plain)
    history = direct.history + path.outcome.history
    if path.reached < 1.0:
        raise _failed(equations.edges, f"{path.reached:.0%} of them could be switched on", history)
    return (*equations.split(path.outcome.y), history)


def _by_fixed_point(equations: _Equations, options: Options) -> _Found:
    """All pairs: M = C is known whole, and w <- offdiag(C^{-1} + K T(w) K) is a fixed point."""
    e, sites = equations.edges, equations.sites
    found = balanced(e.symmetric(equations.target, 1.0))
    if found is None:
        raise ValueError(
            "X: the covariance matrix is singular: some columns depend linearly on others, or there are too few rows. "
            "Drop columns, use more rows, or give the edges."
        )
    precision = found.inverse()

    def wanted(couplings: FloatArray) -> FloatArray | None:
        by_spread = equations.by_spread(couplings)
        return None if by_spread is None else precision + by_spread * sites.pull

    def step(couplings: FloatArray) -> tuple[FloatArray, float] | None:
        matrix = wanted(couplings)
        if matrix is None:
            return None
        move = matrix[e.i, e.j] - couplings
        return move, float(np.abs(move).max(initial=0.0))

    start = precision[e.i, e.j]
    outcome = iterate(step, start if wanted(start) is not None else np.zeros(e.size), options)
    matrix = wanted(outcome.y)
    if not outcome.converged or matrix is None:
        raise _failed(e, f"the fixed point was not reached in {len(outcome.history)} sweeps", outcome.history)
    return outcome.y, matrix.diagonal() - sites.stiffness, outcome.history


def _failed(e: EdgeSet, how: str, history: tuple[float, ...]) -> NotConverged:
    return NotConverged(
        f"X: no couplings were found that give these {e.size} covariances: {how}. The variables depend on each other "
        "too strongly for this mean-field inverse: use score_matching or pseudolikelihood.",
        history,
    )

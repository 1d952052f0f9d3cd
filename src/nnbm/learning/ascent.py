"""The paper's learning: climb the approximate log-likelihood, an inference method inside (EQ 7).

The gradients are those of the likelihood with the method's moments for the true ones,

    b_i: <x_i>_D - m_i      w_ii: (v_i - <x_i²>_D)/2      w_ij: m_i m_j + M_ij - <x_i x_j>_D.

A plain climb needs thousands of steps; here each step is turned by what the gradient's own curvature is nearly:
couplings move by P (M - C) P on the edges (P the inverse of C, of its diagonal if only edges are given), b and w_ii by
the change of the site whose moments miss the data's. The end is the same, because a move is 0 where the gradients are.
It is here for comparison and for inference methods that have no direct `inverse`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.errors import NoSite, NotConverged, UnreliableWarning
from nnbm.inference.chart import Chart
from nnbm.inference.infer import METHODS, infer
from nnbm.inference.result import Inference
from nnbm.inference.solver import Options, iterate
from nnbm.learning.inverse import sites_of
from nnbm.learning.moments import Moments
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.linalg.dense import factor

__all__ = ["ascent"]

_OPTIONS = Options(tolerance=1e-7, sweeps=300, patience=80)


def ascent(
    moments: Moments, method: str = "isusp", *, options: Options = _OPTIONS, names: Sequence[str] | None = None
) -> Estimate:
    """The parameters where the gradients vanish.

    method: any of `infer` that has covariances. Raises NotConverged where the climb ends before: the method may have no
    solution with these moments, or lose it on the way.

    >>> from nnbm import gallery, sample
    >>> from nnbm.learning.edges import EdgeSet
    >>> from nnbm.learning.inverse import inverse
    >>> from nnbm.learning.moments import moments
    >>> from nnbm.learning.rows import Rows
    >>> model = gallery.square_grid(3, 3, coupling=0.5)
    >>> data = moments(Rows.checked(sample(model, 4000, thin=3, seed=0).flat), EdgeSet(9, *model.edges))
    >>> climbed, direct = ascent(data).parameters, inverse(data).parameters
    >>> bool(np.allclose(climbed.vector, direct.vector, atol=1e-5))
    True
    """
    if method not in METHODS or method in ("naive", "tap"):
        known = ", ".join(sorted({*METHODS} - {"naive", "tap"}))
        raise ValueError(f"method: a method of infer with covariances is needed ({known}), but method = {method!r}.")
    climb = _Climb.towards(moments, method, names)
    outcome = iterate(climb.step, climb.start, options)
    if not outcome.converged:
        raise NotConverged(
            f"X: the ascent with {method} ended after {len(outcome.history)} steps at gradients of "
            f"{min(outcome.history):.1e} standard deviations: the method has no solution with these moments, or loses "
            "it on the way. Use score_matching or pseudolikelihood.",
            outcome.history,
        )
    sd = np.sqrt(moments.variance)
    return Estimate(f"ascent ({method})", climb.parameters(outcome.y).in_units(sd), len(outcome.history))


@dataclass(frozen=True, eq=False)
class _Climb:
    """The data in units of standard deviations, and the climb's step; the unknowns are (b, w_ii, w_ij), w_ii as `Chart`
    has it: in its logarithm where it must be positive.
    """

    data: Moments
    method: str
    chart: Chart
    l: FloatArray
    r: FloatArray
    precision: FloatArray

    @classmethod
    def towards(cls, moments: Moments, method: str, names: Sequence[str] | None) -> _Climb:
        e, data = moments.edges, moments.standardised()
        l, r = sites_of(data, names)
        whole = factor(data.dense_covariance) if e.is_complete else None
        chart = Chart.between(np.ones_like(l), data.site.lower, data.site.upper)
        return cls(data, method, chart, l, r, np.eye(e.n) if whole is None else whole.inverse())

    @property
    def start(self) -> FloatArray:
        """Independent variables with the data's means and variances."""
        return np.concatenate([self.l, self.chart.coordinates(self.r), np.zeros(self.data.edges.size)])

    def parameters(self, y: FloatArray) -> Parameters:
        n = self.data.edges.n
        return Parameters(self.data.edges, y[:n], self.chart.curvatures(y[n : 2 * n]), y[2 * n :])

    def step(self, y: FloatArray) -> tuple[FloatArray, float] | None:
        """The turned gradient and the largest plain one; None where the method has no solution."""
        here, e = self.parameters(y), self.data.edges
        found = self._inferred(here)
        if found is None or found.covariance is None:
            return None
        try:
            l, r = self.data.site.from_mean_variance(found.mean, found.variance)
        except NoSite:
            return None
        excess = found.covariance[e.i, e.j] - self.data.covariance
        turned = (self.precision @ e.symmetric(excess) @ self.precision)[e.i, e.j]
        couplings = here.couplings + turned
        back = here.diagonal - r
        diagonal = self.r + back
        diagonal = np.where(self.chart.fold > 0.0, diagonal, np.maximum(diagonal, 0.3 * here.diagonal))
        # what the method's own field equation leaves over, 0 for mean-field ones
        rest = here.bias - l - e.pulls(here.couplings, found.mean) - back * found.mean
        bias = self.l + e.pulls(couplings, self.data.mean) + back * self.data.mean + rest
        own = self.chart.coordinates(diagonal) - self.chart.coordinates(here.diagonal)
        move = np.concatenate([bias - here.bias, own, turned])
        squares = found.second_moment - self.data.second_moment
        products = excess + (found.mean[e.i] * found.mean[e.j] - self.data.mean[e.i] * self.data.mean[e.j])
        gradients = np.concatenate([found.mean - self.data.mean, 0.5 * squares, products])
        return move, float(np.abs(gradients).max())

    def _inferred(self, here: Parameters) -> Inference | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreliableWarning)
            try:
                found = infer(here.model(site=self.data.site), self.method, throw=False)
            except ValueError:
                return None
        return found if found.converged else None

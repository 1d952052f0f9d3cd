"""Maximum likelihood by Newton's method on draws: theta += F^{-1} (<T>_data - <T>_theta) (EQ 8).

<T>_theta is a Monte-Carlo average, and the scores S of the pseudo-likelihood, whose mean under the model is exactly 0,
are control variates for it: <T> ~ mean T - H J^{-1} mean S, because Cov(T, S) = H, the curvature of the
pseudo-likelihood. Pseudo-likelihood being nearly efficient, that removes nine tenths of the Monte-Carlo variance.
Chains start from rows of the data, which are draws from a model close by, modes in their right shares.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray, as_whole
from nnbm.errors import UnreliableWarning
from nnbm.learning.edges import EdgeSet
from nnbm.learning.moments import moments
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.learning.pseudolikelihood import pseudolikelihood, pseudolikelihood_blocks, pseudolikelihood_scores
from nnbm.learning.rows import Rows
from nnbm.learning.statistics import (
    covariance_over,
    errors_seen_back,
    inverse_covariance,
    mean_statistics,
    require_dense,
    sufficient_statistics,
)
from nnbm.model import NNBM
from nnbm.sampling.sample import sample
from nnbm.stream import Seed, sequence

__all__ = ["likelihood"]

_CHAINS, _THIN, _BURN_IN = 16, 5, 200
_STEPS, _HALVINGS = 8, 10
_SETTLED = 0.02  # mean square of a step, in standard errors, that no longer matters
_FAR = 0.1  # mean square of a step, in standard errors, after which the metric is another one
_LEAST_DRAWS, _MOST_DRAWS, _DRAWS_PER_ROW = 8_000, 400_000, 8
_PILOT, _PILOT_PER_PARAMETER = 20_000, 20  # draws for the metric: squares have heavy tails


@dataclass(frozen=True, eq=False)
class _Metric:
    """F^{-1} and the control variates' coefficients H J^{-1}, both (parameters, parameters)."""

    inverse: FloatArray
    coefficients: FloatArray


@dataclass(frozen=True, eq=False)
class _Step:
    """A Newton step: (parameters,), its mean square and that of its Monte-Carlo noise, in standard errors squared."""

    move: FloatArray
    square: float
    noise: float

    @property
    def settled(self) -> bool:
        """Whether it is no larger than noise explains: its own and the last point's."""
        return self.square <= 3.0 * self.noise + _SETTLED


def likelihood(
    rows: Rows,
    edges: EdgeSet,
    *,
    start: Parameters | None = None,
    draws: int | None = None,
    seed: Seed = 0,
    threads: int | None = None,
    names: Sequence[str] = (),
) -> Estimate:
    """The maximiser up to Monte-Carlo noise, with standard errors that include it.

    start: None starts from pseudo-likelihood. draws: per step; None takes eight times the rows, 8,000 to
    400,000.

    >>> from nnbm import gallery, sample
    >>> model = gallery.square_grid(3, 3, coupling=0.5)
    >>> rows = Rows.checked(sample(model, 4000, thin=3, seed=0).flat)
    >>> found = likelihood(rows, EdgeSet(9, *model.edges))
    >>> bool((np.abs(found.parameters.couplings - 0.5) < 4 * found.errors.couplings).all())
    True
    """
    require_dense(edges, "likelihood")
    if draws is not None and as_whole("draws", draws) < _CHAINS:
        raise ValueError(f"draws: at least {_CHAINS} are needed, one per chain, but draws = {draws}.")
    frame = rows.frame
    first = start if start is not None else pseudolikelihood(rows, edges).parameters
    count = draws or int(np.clip(_DRAWS_PER_ROW * rows.count, _LEAST_DRAWS, _MOST_DRAWS))
    climb = _Climb(rows.seen_from(frame), edges, count, threads, tuple(names or ()))
    found = climb.run(first.seen_from(frame), sequence(seed).spawn(2 * _STEPS))
    covariance = found.metric.inverse * ((1.0 + found.step.noise) / rows.total)
    more_noise = np.sqrt(1.0 + found.step.noise) - 1.0
    return Estimate(
        "likelihood",
        found.parameters.seen_back(frame),
        found.steps,
        errors_seen_back(edges, covariance, frame),
        (f"Monte-Carlo noise adds {more_noise:.1%} to the standard errors.",),
        found.doubts,
    )


@dataclass(frozen=True, eq=False)
class _Summit:
    """Where the climb ended: its parameters, the last metric and step, the number of steps, and doubts."""

    parameters: Parameters
    metric: _Metric
    step: _Step
    steps: int
    doubts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Climb:
    """Newton's method for rows in their own frame, `count` draws a step."""

    rows: Rows
    edges: EdgeSet
    count: int
    threads: int | None
    names: tuple[str, ...]

    def run(self, here: Parameters, seeds: Sequence[np.random.SeedSequence]) -> _Summit:
        """Until a step is no larger than noise explains; two seeds a step."""
        target = mean_statistics(moments(self.rows, self.edges))
        pilot = max(_PILOT, _PILOT_PER_PARAMETER * self.edges.parameters)
        steps, metric = 0, None
        while True:
            if metric is None:
                # from draws of its own: a metric and a mean from the same ones conspire to a bias
                metric = _metric(self._draws(here, pilot, seeds[2 * steps])[0], here)
            drawn, doubts = self._draws(here, self.count, seeds[2 * steps + 1])
            step, steps = _newton_step(drawn, here, metric, target, self.rows.total), steps + 1
            here = self._stepped(here, step.move)
            if step.settled:
                return _Summit(here, metric, step, steps, doubts)
            if steps == _STEPS:
                far = (
                    f"The last of {steps} steps still moved parameters by {np.sqrt(step.square):.1f} standard errors: "
                    "ask for more draws."
                )
                return _Summit(here, metric, step, steps, (*doubts, far))
            metric = None if step.square > _FAR else metric

    def _draws(
        self, at: Parameters, count: int, seed: np.random.SeedSequence
    ) -> tuple[tuple[Rows, ...], tuple[str, ...]]:
        """Every chain's draws of the model at `at`, and what speaks against them."""
        own_seed, for_starts = seed.spawn(2)
        starts = np.random.default_rng(for_starts).choice(self.rows.count, _CHAINS, p=self.rows.shares)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnreliableWarning)
            samples = sample(
                self._model(at), -(-count // _CHAINS), chains=_CHAINS, thin=_THIN, burn_in=_BURN_IN, seed=own_seed,
                initial=self.rows.columns[:, starts].T, method="gibbs", threads=self.threads, progress=False,
            )  # fmt: skip
        if samples.interrupted:
            raise KeyboardInterrupt
        chains = tuple(Rows.of_draws(chain, self.rows.site) for chain in samples.draws)
        return chains, tuple(str(warning.message) for warning in caught)

    def _model(self, at: Parameters) -> NNBM:
        return at.model(self.names, self.rows.site)

    def _stepped(self, here: Parameters, move: FloatArray) -> Parameters:
        """The longest step, halving, that leaves a model with a finite Z."""
        for k in range(_HALVINGS):
            there = Parameters.from_vector(self.edges, here.vector + 0.5**k * move)
            try:
                self._model(there)
            except ValueError:
                continue
            return there
        raise ValueError(
            "X: the likelihood has no maximum that these rows determine: every step leads to a density without norm. "
            "Use more rows, fewer edges, or a ridge with pseudolikelihood."
        )


def _metric(chains: Sequence[Rows], at: Parameters) -> _Metric:
    rows = Rows(np.concatenate([chain.columns for chain in chains], axis=1), site=chains[0].site)
    fisher = covariance_over(rows, lambda batch: sufficient_statistics(batch, at.edges))
    inverse = inverse_covariance(fisher, rows.count)
    spread = inverse_covariance(covariance_over(rows, lambda batch: pseudolikelihood_scores(batch, at)), rows.count)
    if inverse is None or spread is None:
        raise ValueError(
            f"X: at its pseudo-likelihood estimate the model does not determine {at.edges.parameters} parameters: its "
            "Fisher information is singular. Use pseudolikelihood, with fewer edges or a ridge."
        )
    return _Metric(inverse, pseudolikelihood_blocks(rows, at).matrix() @ spread)


def _newton_step(chains: Sequence[Rows], at: Parameters, metric: _Metric, target: FloatArray, total: float) -> _Step:
    """F^{-1} (target - <T>); its noise from how far the chains are apart."""
    gaps = target - np.stack([_expectation(chain, at, metric) for chain in chains])
    mean, count = gaps.mean(axis=0), gaps.shape[0]
    apart = gaps - mean
    per_parameter = total / target.size
    noise = per_parameter * float(np.sum((apart @ metric.inverse) * apart)) / (count * (count - 1))
    move = metric.inverse @ mean
    return _Step(move, per_parameter * float(mean @ move), noise)


def _expectation(drawn: Rows, at: Parameters, metric: _Metric) -> FloatArray:
    """(parameters,) <T> at `at`, the pseudo-likelihood's scores as control variates."""
    plain = mean_statistics(moments(drawn, at.edges))
    return plain - metric.coefficients @ pseudolikelihood_blocks(drawn, at, curved=False).total_gradient()

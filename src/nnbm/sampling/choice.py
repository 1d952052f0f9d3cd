"""Which sampler a model asks for: Gibbs, unless a short pilot shows that it creeps; then whichever wins a race.

Sweeps are counted, and no clock is asked: the same model is given the same sampler on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.model import NNBM
from nnbm.sampling.diagnostics import slowest_functional
from nnbm.sampling.fields import Fields
from nnbm.sampling.gibbs import Gibbs
from nnbm.sampling.mean_field_modes import climbed
from nnbm.sampling.protocol import Sampler
from nnbm.sampling.starts import crowd_of_starts, dispersed_starts
from nnbm.sampling.tempering import Tempering
from nnbm.stream import sequence

__all__ = ["Choice", "choose"]

_MOST_VARIABLES = 5000  # beyond it a pilot takes seconds, and Gibbs is what there is
_FEW_VARIABLES = 300  # up to so many other modes are looked for
_CHAINS, _BATCHES, _STARTS = 4, 8, 8
_FINE = 15.0  # sweeps of autocorrelation that nothing else is faster than
_PILOT_DRAWS, _LEAST_DRAWS = 1000, 200
_RACE = 0.25e9  # nanoseconds for all chains of one sampler, by the costs below
_KEPT = 2_000_000  # numbers of all chains that a race holds
_SEEN = 5  # draws next to a mode that are no accident
_SEED = 20261119


class Choice(NamedTuple):
    """A sampler, and why it."""

    sampler: Sampler
    reason: str


@dataclass(frozen=True)
class _Contender:
    """A sampler and what its sweep costs, in nanoseconds on a usual machine, told from its chain's info."""

    sampler: Sampler
    cost: Callable[[NNBM, Mapping[str, float | FloatArray]], float]


@dataclass(frozen=True)
class _Run:
    """The longest autocorrelation in sweeps, effective draws per second, and the draws next to each mode (modes,)."""

    steps: float
    speed: float
    visits: IntArray

    def misses(self, other: _Run) -> bool:
        """Whether the other has been to a mode that this one has not."""
        return bool(((self.visits == 0) & (other.visits >= _SEEN)).any())


def choose(model: NNBM) -> Choice:
    """The sampler of most effective draws per second: of the worst of x, x² and the slowest linear functional.

    Of several modes that mean field finds, a sampler must come to all that tempering comes to: the pilot of another may
    look well mixed where it has never left the first.

    >>> from nnbm import gallery
    >>> choose(gallery.square_grid(6, 6)).sampler.name
    'gibbs'
    """
    if model.n > _MOST_VARIABLES:
        return Choice(Gibbs(), f"gibbs: of more than {_MOST_VARIABLES} variables no pilot is made")
    modes = _modes(model)
    pilot = _run(model, _GIBBS, modes, _PILOT_DRAWS)
    if len(modes) <= 1 and pilot.steps <= _FINE:
        return Choice(
            Gibbs(), f"gibbs: in a pilot no autocorrelation was longer than {max(pilot.steps, 1.0):.0f} sweeps"
        )
    runs = {contender: _run(model, contender, modes) for contender in (_TEMPERING, _FIELDS, _GIBBS)}
    fit = [each for each, run in runs.items() if not run.misses(runs[_TEMPERING])]
    best = max(fit, key=lambda each: runs[each].speed)
    figures = ", ".join(
        f"{each.sampler.name} {run.speed:,.0f}" + ("" if each in fit else " (which missed a mode)")
        for each, run in runs.items()
    )
    name = best.sampler.name
    return Choice(best.sampler, f"{name}: effective draws per second of the slowest quantity in a pilot: {figures}")


def _modes(model: NNBM) -> FloatArray:
    """(modes, n) what mean field finds; none of large models."""
    if model.n > _FEW_VARIABLES:
        return np.empty((0, model.n))
    return climbed(model, crowd_of_starts(model, _STARTS, sequence(_SEED)))


def _run(model: NNBM, contender: _Contender, modes: FloatArray, sweeps: int | None = None) -> _Run:
    """Chains that start apart, for so many sweeps after half as many, or as many as a race's time allows."""
    for_starts, for_chains = sequence(_SEED).spawn(2)
    starts = dispersed_starts(model, _CHAINS, for_starts)
    chains = contender.sampler.chains(model, starts, for_chains, 1)
    chains[0].run(1, np.empty((10, model.n)))  # so that it has something to tell of its sweeps
    cost = contender.cost(model, chains[0].info())
    most = sweeps or max(_LEAST_DRAWS, int(_RACE / (1.5 * _CHAINS * cost)))
    thin = -(-most * _CHAINS * model.n // _KEPT)
    draws = np.empty((_CHAINS, max(_LEAST_DRAWS, most // thin), model.n))
    for chain, rows in zip(chains, draws, strict=True):
        chain.run(thin, rows[: rows.shape[0] // 2])
        chain.run(thin, rows)
    slow = (draws @ slowest_functional(draws))[:, :, None]
    steps = thin * max(_draws_per_effective_one(part) for part in (draws, draws**2, slow))
    return _Run(steps, 1e9 / (steps * cost), _visits(draws, modes))


def _visits(draws: FloatArray, modes: FloatArray) -> IntArray:
    """(modes,) how many draws lie nearest to each, in units of the draws' sd."""
    unit = np.maximum(draws.std(axis=(0, 1)), 1e-300)
    places = draws.reshape(-1, draws.shape[2]) / unit
    centres = modes / unit
    if len(modes) == 0:
        return np.empty(0, np.int64)
    nearest = (np.square(centres).sum(axis=1) - 2.0 * (places @ centres.T)).argmin(axis=1)
    return np.bincount(nearest, minlength=len(modes))


def _draws_per_effective_one(values: FloatArray) -> float:
    """The most of values (chains, draws, k), by means of batches about the mean of all chains."""
    length = values.shape[1] // _BATCHES
    kept = values[:, : length * _BATCHES]
    means = kept.reshape(_CHAINS * _BATCHES, length, -1).mean(axis=1)
    whole, between = kept.var(axis=(0, 1)), means.var(axis=0)
    steps = length * np.divide(between, whole, out=np.zeros(whole.size), where=whole > 0.0)
    return float(steps.max(initial=1.0 / length))


def _gibbs_cost(model: NNBM, _: Mapping[str, float | FloatArray]) -> float:
    if isinstance(model.coupling, np.ndarray):
        return 27.0 * model.n + 0.12 * model.n**2
    return 22.0 * model.n + 1.5 * model.coupling.nnz


def _fields_cost(model: NNBM, info: Mapping[str, float | FloatArray]) -> float:
    dense = isinstance(model.coupling, np.ndarray)
    product = 0.06 * model.n**2 if dense else 1.2 * model.graph.nnz
    return 70.0 * model.n + float(info["steps"]) * (3.5 * model.n + product)


def _tempering_cost(model: NNBM, info: Mapping[str, float | FloatArray]) -> float:
    rungs, centres = np.size(info["ladder"]), float(info["centres"])
    return rungs * (1.75 * _gibbs_cost(model, info) + 0.8 * centres * model.n)


_GIBBS = _Contender(Gibbs(), _gibbs_cost)
_TEMPERING = _Contender(Tempering(), _tempering_cost)
_FIELDS = _Contender(Fields(), _fields_cost)

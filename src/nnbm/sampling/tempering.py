"""Parallel tempering along the path from a mixture of mean fields to the model: for several modes.

Swaps alternate between even and odd pairs, which makes states travel instead of diffuse (Okabe et al. 2001; Syed et
al. 2021). The lowest rung draws anew, independently, in a mode of its own choice (`path`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray, IntArray, as_floats
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.ladder import best_pairs, respaced
from nnbm.sampling.path import Path, advance, log_factor, path_of, potentials_of, sweep_cost
from nnbm.sampling.protocol import Chain
from nnbm.sampling.rows import apart
from nnbm.stream import Seed, StreamArray, load, sequence, store, streams, uniform

__all__ = ["Tempering"]

_PILOT_PAIRS = 8
_PILOT_ROUNDS = 6  # each twice as long as the one before
_PILOT_SECONDS = 0.1  # all rounds, on a usual machine; counted in sweeps, so that a ladder depends on no clock
_FEWEST_SWEEPS = 10
_REFUSED = 0.9  # a pilot swap refused more often says too little of its barrier: more rungs
_MOST_PILOT_PAIRS = 64


@dataclass(frozen=True)
class _Rungs:
    """The ladder (rungs,), and the states on it: `at` says which state each rung holds, so swaps move no numbers.

    x: (rungs, n). potentials: (rungs, centres) of each state. trend: (rungs,) 1 for states that come from the lowest
    rung, -1 from the highest, 0 from neither yet. refused: (rungs - 1,) sum of the swaps' probabilities to be refused.
    counts: how many sweeps, and how many states came from the lowest rung to the highest.
    """

    ladder: FloatArray
    x: FloatArray
    potentials: FloatArray
    at: IntArray
    trend: IntArray
    refused: FloatArray
    counts: IntArray

    @classmethod
    def filled(cls, path: Path, ladder: FloatArray, states: FloatArray) -> _Rungs:
        """Rung by rung with `states` (rungs, n), which are copied."""
        rungs = ladder.size
        x = np.array(states, order="C")
        return cls(
            ladder, x, potentials_of(path, x), np.arange(rungs), np.zeros(rungs, np.int64), np.zeros(rungs - 1),
            np.zeros(2, np.int64),
        )  # fmt: skip

    @property
    def changing(self) -> dict[str, NDArray[Any]]:
        """All but the ladder, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ladder"}

    @property
    def rejections(self) -> FloatArray:
        """(rungs - 1,) the mean probability that a swap is refused; each pair has every second sweep."""
        return np.asarray(2.0 * self.refused / max(int(self.counts[0]), 1))


@kernel()
def _swap(
    log_shares: FloatArray, ladder: FloatArray, potentials: FloatArray, at: IntArray, refused: FloatArray, first: int,
    row: StreamArray,
) -> None:  # fmt: skip
    """Offer rungs first and first + 1, first + 2 and first + 3, ... to exchange their states."""
    stream = load(row)
    for low in range(first, ladder.size - 1, 2):
        one, other, cold, warm = at[low], at[low + 1], ladder[low + 1], ladder[low]
        gain = log_factor(log_shares, cold, potentials[one]) - log_factor(log_shares, warm, potentials[one])
        gain -= log_factor(log_shares, cold, potentials[other]) - log_factor(log_shares, warm, potentials[other])
        u, stream = uniform(stream)
        if gain >= 0.0 or u < math.exp(gain):  # NaN stays where it is
            at[low], at[low + 1] = other, one
        refused[low] += 0.0 if gain >= 0.0 else 1.0 - math.exp(gain)
    store(stream, row)


@kernel()
def _count(at: IntArray, trend: IntArray, counts: IntArray) -> None:
    """Note who has come from which end of the ladder."""
    highest = at[at.size - 1]
    if trend[highest] == 1:
        counts[1] += 1
    trend[highest] = -1
    trend[at[0]] = 1
    counts[0] += 1


@kernel()
def _tempered_draws(
    path: Path, ladder: FloatArray, x: FloatArray, potentials: FloatArray, at: IntArray, trend: IntArray,
    refused: FloatArray, counts: IntArray, row: StreamArray, sweeps: int, draws: FloatArray,
) -> None:  # fmt: skip
    """Fill draws (count, n) with the highest rung's states, each after `sweeps` sweeps and swaps of the ladder."""
    highest = ladder.size - 1
    for k in range(draws.shape[0]):
        for _ in range(sweeps):
            for rung in range(ladder.size):
                advance(path, ladder[rung], x[at[rung]], potentials[at[rung]], row)
            _swap(path.log_shares, ladder, potentials, at, refused, counts[0] % 2, row)
            _count(at, trend, counts)
        draws[k] = x[at[highest]]


@dataclass(frozen=True)
class _Chain:
    path: Path
    rungs: _Rungs
    row: StreamArray

    def run(self, sweeps: int, draws: FloatArray) -> None:
        r = self.rungs
        _tempered_draws(
            self.path, r.ladder, r.x, r.potentials, r.at, r.trend, r.refused, r.counts, self.row, sweeps, draws
        )

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"stream": self.row, **self.rungs.changing}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.row[:] = state["stream"]
        for name, values in self.rungs.changing.items():
            values[:] = state[name]

    def info(self) -> Mapping[str, float | FloatArray]:
        r = self.rungs
        return {
            "ladder": r.ladder,
            "swap_rates": 1.0 - r.rejections,
            "round_trips": float(r.counts[1]),
            "centres": float(self.path.log_shares.size),
        }


@dataclass(frozen=True)
class Tempering:
    """Parallel tempering, for densities with several modes: a chain is a ladder of states, a sweep goes over all rungs.

    Rungs t = 0 .. 1 switch the couplings on about the mean-field solution of each mode (`sampling.path`); at t = 0
    draws are exact and independent. ladder: the t of the rungs, rising from >= 0 to 1; None finds their places and
    number in a pilot before the draws, so that neighbours exchange states about every second time.

    `Samples.info` has the ladder, swap rates of its pairs and round trips (states that came from the lowest rung to
    the highest) of every chain: few round trips mean that modes may be missed.

    >>> from nnbm import gallery, sample
    >>> s = sample(gallery.two_modes(competition=5.0), draws=1000, method=Tempering(), seed=0)
    >>> bool(s.rhat().max() < 1.01), bool(s.info["round_trips"].min() > 50)
    (True, True)
    """

    ladder: Sequence[float] | None = None
    name = "tempering"

    def __post_init__(self) -> None:
        if self.ladder is None:
            return
        rungs = as_floats("ladder", self.ladder)
        rising = rungs.ndim == 1 and rungs.size > 0 and (np.diff(rungs) > 0).all()
        if not (rising and rungs[0] >= 0.0 and rungs[-1] == 1.0):
            raise ValueError(
                f"ladder: rungs that rise from >= 0 to 1 are needed, such as (0, 0.5, 1), but ladder = {self.ladder}."
            )

    def chains(self, model: NNBM, starts: FloatArray, seed: Seed, threads: int) -> Sequence[Chain]:  # noqa: ARG002
        """One ladder per row of `starts` (chains, n), with that state on every rung."""
        for_path, for_pilot, for_chains = sequence(seed).spawn(3)
        path = path_of(model, for_path)
        if self.ladder is None:
            ladder = _tuned(path, starts[0], streams(for_pilot, 1)[0])
        else:
            ladder = as_floats("ladder", self.ladder)
        rows = apart(streams(for_chains, starts.shape[0]))
        return [
            _Chain(path, _Rungs.filled(path, ladder, _repeat(x, ladder.size)), row)
            for x, row in zip(starts, rows, strict=True)
        ]


def _repeat(x: FloatArray, rungs: int) -> FloatArray:
    return np.broadcast_to(x, (rungs, x.size))


def _tuned(path: Path, start: FloatArray, row: StreamArray) -> FloatArray:
    """The ladder after a pilot: rounds that each double the sweeps and share the barrier anew; then as many as pay."""
    ladder = np.linspace(0.0, 1.0, _PILOT_PAIRS + 1)
    states, barrier = _repeat(start, ladder.size), 0.0
    cost = sweep_cost(path) * 1e-8
    for number in range(_PILOT_ROUNDS):
        share = _PILOT_SECONDS * 2.0 ** (number - _PILOT_ROUNDS)
        sweeps = max(_FEWEST_SWEEPS, int(share / (cost * ladder.size)))
        pilot = _Chain(path, _Rungs.filled(path, ladder, states), row)
        pilot.run(sweeps, np.empty((1, start.size)))
        rejections = pilot.rungs.rejections
        barrier = float(rejections.sum())
        pairs = ladder.size - 1
        if rejections.max() > _REFUSED and pairs < _MOST_PILOT_PAIRS:
            pairs *= 2
        if number == _PILOT_ROUNDS - 1:
            pairs = best_pairs(barrier)
        new = respaced(ladder, rejections, pairs)
        ordered = pilot.rungs.x[pilot.rungs.at]
        states = ordered[np.abs(ladder[:, None] - new).argmin(axis=0)]
        ladder = new
    return ladder

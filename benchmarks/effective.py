"""Effective draws per CPU second: of x, x² and the linear functional that moves slowest; Gibbs beside plain Gibbs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.rows import Row
from nnbm import NNBM, Gibbs, gallery
from nnbm.arrays import FloatArray
from nnbm.sampling.diagnostics import ess, slowest_functional
from nnbm.sampling.protocol import Sampler
from nnbm.sampling.starts import dispersed_starts
from nnbm.stream import sequence

__all__ = ["PLAIN", "Effective", "effective", "paper_models", "timed_draws"]

PLAIN = Gibbs(order="sequential", cycle=("draw",))
CHAINS, DRAWS, ROUNDS = 4, 20_000, 3
# R's tmvtnorm (precision-form Gibbs) over a plain numba Gibbs, bulk ESS of the worst x_i per CPU second: measured
# once on one core with R, which is not run here
TMVTNORM = {"6x6 grid, w = 0.8": 0.536, "6x6 grid, w = 0.2": 0.920, "orientation n = 36, eps = 2": 0.396}


@dataclass(frozen=True)
class Effective:
    """Effective draws per CPU second, the worst variable's of x (by ranks, and of its mean) and of x² (its mean)."""

    bulk: float
    mean: float
    square: float
    slowest: float

    @property
    def values(self) -> FloatArray:
        """(4,) in the order above."""
        return np.array([self.bulk, self.mean, self.square, self.slowest])


def paper_models() -> dict[str, NNBM]:
    """The three models of one mode that samplers are compared on."""
    return {
        "6x6 grid, w = 0.8": gallery.square_grid(6, 6),
        "6x6 grid, w = 0.2": gallery.square_grid(6, 6, coupling=0.2),
        "orientation n = 36, eps = 2": gallery.orientation_tuning(36),
    }


def timed_draws(sampler: Sampler, model: NNBM, draws: int, seed: int = 0) -> tuple[FloatArray, float]:
    """(chains, draws, n) after a tenth unrecorded, one chain after another, and the CPU seconds they took."""
    starts = dispersed_starts(model, CHAINS, sequence(seed))
    out = np.empty((CHAINS, draws, model.n))
    seconds = 0.0
    for chain, rows in zip(sampler.chains(model, starts, seed, 1), out, strict=True):
        chain.run(1, rows[: draws // 10])
        started = time.process_time()
        chain.run(1, rows)
        seconds += time.process_time() - started
    return out, seconds


def effective(draws: FloatArray, seconds: float, functional: FloatArray) -> Effective:
    """The figures of draws (chains, draws, n) that took so many CPU seconds."""
    slow = (draws @ functional)[:, :, None]
    found = [ess(draws), ess(draws, "mean"), ess(draws**2, "mean"), ess(slow, "mean")]
    return Effective(*(float(each.min()) / seconds for each in found))


def compared(model: NNBM) -> tuple[Effective, Effective]:
    """Gibbs, and plain Gibbs: the median of a few rounds in which they alternate."""
    timed_draws(Gibbs(), model, 100)
    timed_draws(PLAIN, model, 100)
    functional, ours, plain = None, [], []
    for seed in range(ROUNDS):
        draws, seconds = timed_draws(PLAIN, model, DRAWS, seed)
        functional = slowest_functional(draws) if functional is None else functional
        plain.append(effective(draws, seconds, functional).values)
        ours.append(effective(*timed_draws(Gibbs(), model, DRAWS, seed), functional).values)
    return Effective(*np.median(ours, axis=0)), Effective(*np.median(plain, axis=0))


def rows() -> Iterator[Row]:
    """One row per claim of the README."""
    for name, model in paper_models().items():
        ours, plain = compared(model)
        ratios = dict(zip(("x", "x²", "the slowest linear functional"), (ours.values / plain.values)[1:], strict=True))
        least = min(ratios.values())
        yield Row(
            f"Gibbs, {name}, effective draws per CPU second over plain Gibbs: least of x, x², slowest", least, "x",
            ", ".join(f"{what} {ratio:.2f}" for what, ratio in ratios.items()), ">=", 1.5,
        )  # fmt: skip
        yield Row(
            f"Gibbs, {name}, bulk ESS of the worst x per CPU second over R tmvtnorm (quoted)",
            ours.bulk / plain.bulk / TMVTNORM[name], "x",
            f"{ours.bulk / 1e3:.0f} k against plain {plain.bulk / 1e3:.0f} k; tmvtnorm {TMVTNORM[name]:.2f} of plain",
            ">=", 2.0,
        )  # fmt: skip

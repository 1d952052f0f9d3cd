"""Collective moves: effective values of slow functionals a CPU second, beside plain Gibbs; a bump's angle above all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.effective import PLAIN
from benchmarks.rows import Row
from nnbm import HMC, NNBM, Fields, Gibbs, gallery
from nnbm.arrays import FloatArray
from nnbm.sampling.diagnostics import ess
from nnbm.sampling.protocol import Sampler

Feature = Callable[[FloatArray], FloatArray]

# (n, beta, epsilon), Gibbs sweeps between draws, seconds for Gibbs: some 300 autocorrelation times and more
BUMPS = (((36, 10.0, 4.0), 50, 5.0), ((25, 50.0, 4.0), 100, 6.0), ((100, 50.0, 4.0), 200, 15.0))
SECONDS = 3.0
OVERRELAXED = Gibbs(cycle=("draw",) + 7 * ("flip",))
PARTS = 4  # of a run, each a chain to the estimate


def cosine(draws: FloatArray) -> FloatArray:
    """(count, 1) cos of the population vector's angle."""
    n = draws.shape[1]
    population = draws @ np.exp(2j * np.pi * np.arange(n) / n)
    return np.asarray(population.real / np.abs(population))[:, None]


def variables(draws: FloatArray) -> FloatArray:
    """The variables and their squares: the worst of these counts."""
    return np.concatenate([draws, draws**2], axis=1)


def rate(model: NNBM, method: Sampler, feature: Feature, seconds: float, apart: int = 1) -> float:
    """Effective draws a CPU second of the feature that has fewest; tuning and the way in are not counted."""
    start = np.random.default_rng(1).exponential(size=(1, model.n))
    chain, trial = method.chains(model, start, 1, 1)[0], np.empty((50, model.n))
    chain.run(20, trial)
    started = time.thread_time()
    chain.run(apart, trial)
    each = (time.thread_time() - started) / len(trial)
    draws = np.empty((PARTS * max(50, min(int(seconds / each / PARTS), 100_000)), model.n))
    started = time.thread_time()
    chain.run(apart, draws)
    spent = time.thread_time() - started
    found = feature(draws)
    return float(ess(found.reshape(PARTS, -1, found.shape[1]), "mean").min()) / spent


def rows() -> Iterator[Row]:
    """The three bumps, then models on which Gibbs is at its best."""
    for (n, beta, epsilon), apart, seconds in BUMPS:
        model = gallery.orientation_tuning(n, beta=beta, epsilon=epsilon)
        plain, over = (rate(model, method, cosine, seconds, apart) for method in (PLAIN, OVERRELAXED))
        fields = rate(model, Fields(), cosine, SECONDS)
        yield Row(
            f"turning a bump, n = {n}, beta = {beta:g}: ESS of cos(angle) a CPU second, fields over plain Gibbs",
            fields / plain, "x",
            f"{fields:.0f} against {plain:.1f} a second; Gibbs with seven flips a draw: {over:.0f}", ">=", 20.0,
        )  # fmt: skip
    easy = {
        "6x6 grid, w = 0.8": gallery.square_grid(6, 6, coupling=0.8),
        "6x6 grid, w = 0.2": gallery.square_grid(6, 6, coupling=0.2),
        "orientation, epsilon = 2": gallery.orientation_tuning(36),
    }
    for name, model in easy.items():
        plain, fields = (rate(model, method, variables, 0.5) for method in (PLAIN, Fields()))
        exact = f"; hmc: {rate(model, HMC(), variables, 0.5):.0f}" if "0.2" in name else ""
        yield Row(
            f"{name}: ESS of the worst x_i or x_i² a CPU second, fields over plain Gibbs", fields / plain, "x",
            f"{fields:.0f} against {plain:.0f} a second{exact}",
        )  # fmt: skip

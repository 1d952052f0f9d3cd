"""Several modes: tempering beside plain Gibbs in effective draws per CPU second, and what ln Z by sampling costs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import multivariate_normal

from benchmarks.effective import PLAIN
from benchmarks.rows import Row
from nnbm import NNBM, Tempering, UnreliableWarning, gallery, log_partition, sample
from nnbm.arrays import FloatArray
from nnbm.sampling.protocol import Sampler

RING_REFERENCE = 80.545  # ln Z of the ring at epsilon = 2, from a run of a million
_NEARLY = 1e-4  # below epsilon = 2, where W is singular and scipy has no density


@dataclass(frozen=True)
class Speed:
    """Effective draws per CPU second, the smallest over variables or directions, by kind; the smallest of all leads."""

    least: float
    each: dict[str, float]

    def __str__(self) -> str:
        """Named and rounded."""
        return ", ".join(f"{kind} {value:.3g}" for kind, value in self.each.items())


def speed(model: NNBM, method: Sampler, sweeps: int, thin: int, seed: int) -> Speed:
    """Of four chains on one thread, pilot and burn-in counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWarning)  # chains that do not agree are what is measured
        sample(model, 10, method=method, seed=seed, threads=1)  # compile
        started = time.process_time()
        drawn = sample(model, sweeps // thin, method=method, thin=thin, seed=seed, threads=1, progress=False)
        seconds = time.process_time() - started
    found = drawn.least_ess()
    return Speed(found.value / seconds, {kind: value / seconds for kind, value in found.each.items()})


def speed_row(name: str, model: NNBM, gibbs: tuple[int, int], tempering: tuple[int, int], bar: float | None) -> Row:
    """Tempering over Gibbs, (sweeps, thin) each, alternating; of three runs the median, since a lesser mode is rare."""
    one, other = [], []
    for seed in range(3):
        one.append(speed(model, PLAIN, *gibbs, seed))
        other.append(speed(model, Tempering(), *tempering, seed))
    for runs in (one, other):
        runs.sort(key=lambda run: run.least)
    ratios = other[0].least / one[-1].least, other[-1].least / one[0].least
    return Row(
        f"{name}: effective draws per CPU second, smallest of x, x², slowest linear, tempering over plain Gibbs",
        other[1].least / one[1].least, "x",
        f"tempering: {other[1]}; Gibbs: {one[1]}; of three runs {ratios[0]:.2g} to {ratios[1]:.2g}", ">=", bar,
    )  # fmt: skip


def repeated(model: NNBM, repeats: int = 10) -> tuple[FloatArray, FloatArray]:
    """(repeats,) ln Z by default options on one thread, and the seconds of each."""
    log_partition(model, seed=99, threads=1, progress=False)  # compile
    values, seconds = np.empty(repeats), np.empty(repeats)
    for seed in range(repeats):
        started = time.perf_counter()
        values[seed] = log_partition(model, seed=seed, threads=1, progress=False).value
        seconds[seed] = time.perf_counter() - started
    return values, seconds


def orthant_log_partition(model: NNBM, seed: int) -> float:
    """ln Z from scipy's orthant probability with its defaults; W positive definite."""
    w = np.array(model.coupling)
    covariance = np.linalg.inv(w)
    mean = covariance @ model.bias
    inside = multivariate_normal(-mean, covariance, seed=seed).cdf(np.zeros(model.n))
    whole = 0.5 * model.n * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(w)[1] + 0.5 * model.bias @ mean
    return float(whole + np.log(inside))


def rows() -> Iterator[Row]:
    """One row per claim."""
    yield speed_row(
        "6x6 grid, b ~ U(3.6, 4.4)", gallery.square_grid(6, 6, bias=(3.6, 4.4)), (2_000_000, 100), (200_000, 2), 20.0
    )
    yield speed_row("10x10 grid, w = 3", gallery.square_grid(10, 10, coupling=3.0), (60_000, 3), (10_000, 1), None)
    ring, grid = gallery.orientation_tuning(36), gallery.square_grid(6, 6)
    for name, model in (("ring, n = 36, epsilon = 2", ring), ("6x6 grid", grid)):
        values, seconds = repeated(model)
        detail = f"{values.size} seeds, mean {values.mean():.4f}"
        yield Row(f"ln Z by annealing, {name}: sd", float(values.std(ddof=1)), "", detail, "<=", 0.02)
        yield Row(f"ln Z by annealing, {name}: seconds, the longest", float(seconds.max()), "s", "one thread", "<=", 5)
        if model is ring:
            away = abs(float(values.mean()) - RING_REFERENCE)
            yield Row(f"ln Z by annealing, {name}: off {RING_REFERENCE}", away, "", "a long run", "<=", 0.02)
    yield from _scipy_rows(ring.n)


def _scipy_rows(n: int) -> Iterator[Row]:
    near = gallery.orientation_tuning(n, epsilon=2.0 - _NEARLY)
    started = time.perf_counter()
    found = [orthant_log_partition(near, seed) for seed in range(5)]
    seconds = (time.perf_counter() - started) / len(found)
    worst = max(abs(each - RING_REFERENCE) for each in found)
    detail = f"{seconds:.2g} s; {', '.join(f'{each:.3f}' for each in found)}"
    yield Row("ln Z by scipy's multivariate_normal.cdf, defaults, the same ring: off, at most", worst, "", detail)

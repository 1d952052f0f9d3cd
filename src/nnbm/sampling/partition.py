"""ln Z by annealed importance sampling, with an error bar (Neal, Annealed importance sampling, 2001).

A run starts at an exact draw of the path's mixture of independent sites and goes up the path in steps, one Gibbs sweep
each; the product of the steps' density ratios has mean Z, whatever the sweeps do. Runs are independent, so
their spread is the error; what it cannot tell, the tail of the weights and their effective number can.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from nnbm.arrays import FloatArray, as_reals
from nnbm.errors import UnreliableWarning
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.progress import Advance, progress_bar
from nnbm.sampling.ladder import respaced
from nnbm.sampling.path import Path, advance, log_factor, path_of, sweep_cost
from nnbm.sampling.rows import apart
from nnbm.sampling.settings import checked_threads
from nnbm.stream import Seed, StreamArray, sequence, streams

__all__ = ["LogPartition", "log_partition"]

_PILOT_RUNS, _PILOT_STEPS, _MOST_STEPS = 512, 8, 2**15
_FEWEST_PILOT_RUNS, _MANY_STEPS = 64, 128
_CALM = 0.7  # from here on more steps cost more than they save
_PATIENCE, _GAIN = 2, 0.6  # so many doublings must lower it to this part at least: a rest, between modes, stays
_BLOCK_RUNS, _BLOCK_SECONDS = 64, 0.05  # a block of runs has one random stream
_FEWEST_RUNS, _MOST_RUNS, _MOST_SECONDS = 512, 2**22, 600.0
_MOST_GROWTH = 4
_HEAVY = 0.7  # Pareto's k: above it the spread of the weights says nothing (Vehtari et al. 2024)
_FEWEST_EFFECTIVE = 100.0
_LOOK = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class LogPartition:
    """ln Z with its standard error, and the runs that it comes from.

    log_weights: (runs,) ln w of independent runs, whose mean w is the unbiased estimate of Z. ladder: (steps + 1,) the
    t each run goes through. centres: of the mixture it starts from. `interrupted`: Ctrl-C came before `error` was
    reached.

    >>> from nnbm import gallery, log_partition
    >>> found = log_partition(gallery.two_modes(), seed=0)
    >>> found.error <= 0.01, bool(abs(found.value - 4.5717) < 0.1)
    (True, True)
    """

    log_weights: FloatArray
    ladder: FloatArray
    centres: int
    seconds: float
    interrupted: bool = False

    @cached_property
    def value(self) -> float:
        """ln Z: the logarithm of the mean weight."""
        top = self.log_weights.max()
        return float(top + math.log(self._weights.mean()))

    @cached_property
    def error(self) -> float:
        """Standard error of `value`: the weights' spread over their mean and the root of their number."""
        w = self._weights
        return float(w.std(ddof=1) / w.mean() / math.sqrt(w.size))

    @cached_property
    def effective_runs(self) -> float:
        """(sum w)² / sum w²: how many runs of equal weight would tell as much."""
        w = self._weights
        return float(w.sum() ** 2 / (w * w).sum())

    @cached_property
    def tail(self) -> float:
        """Pareto's k of the largest weights: above 0.7 the error bar is not to be relied on; -inf if all are equal."""
        from arviz_stats.base import array_stats

        try:
            return float(array_stats.psislw(-self.log_weights)[1])  # it is made for w = 1 / likelihood
        except ValueError:  # the largest are all the same
            return -math.inf

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.log_weights.size

    @property
    def reliable(self) -> bool:
        """Whether enough runs carry the weight, and no few of them most of it."""
        return self.effective_runs >= _FEWEST_EFFECTIVE and self.tail <= _HEAVY

    @property
    def _weights(self) -> FloatArray:
        """(runs,) in units of the largest."""
        return np.asarray(np.exp(self.log_weights - self.log_weights.max()))

    def __float__(self) -> float:
        """`value`."""
        return self.value

    def __repr__(self) -> str:
        cut = ", interrupted" if self.interrupted else ""
        return (
            f"LogPartition({self.value:.6g} ± {self.error:.2g}, {self.runs} runs of {self.ladder.size - 1} steps, "
            f"{self.seconds:.2g} s{cut})"
        )


def log_partition(
    model: NNBM,
    *,
    error: float = 0.01,
    seed: Seed = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> LogPartition:
    """ln Z by sampling, to a standard error of at most `error`, for any copositive coupling and any ends.

    seed: the same seed gives the same runs on any number of threads. threads: None takes every core. progress: None
    shows a bar on a terminal only.

    Warns (UnreliableWarning) where the weights say that the error bar is not to be relied on, or where some ten minutes
    of runs did not reach it. Ctrl-C returns what the runs so far tell. Raises OverflowError where runs run away, as
    they do where Z is infinite.

    >>> from nnbm import gallery
    >>> found = log_partition(gallery.square_grid(6, 6), seed=0)
    >>> found.error <= 0.01, bool(abs(found.value + 7.93) < 0.1)
    (True, True)
    """
    asked, workers = _checked_error(error), checked_threads(threads)
    started = time.perf_counter()
    for_path, for_pilot, for_runs = sequence(seed).spawn(3)
    path = path_of(model, for_path)
    plan = _planned(path, model.n, streams(for_pilot, 1)[0])
    label = f"ln Z, {plan.ladder.size - 1} steps of {model.n} variables"
    log_weights, interrupted = _annealed(plan, for_runs, asked, workers, progress, label)
    seconds = time.perf_counter() - started
    found = LogPartition(log_weights, plan.ladder, path.log_shares.size, seconds, interrupted)
    _warn_if_unreliable(found, asked)
    return found


@kernel()
def _anneal(
    path: Path, ladder: FloatArray, x: FloatArray, potentials: FloatArray, row: StreamArray, steps: FloatArray
) -> None:
    """steps (runs, steps): what every step of every run adds to its ln w. x (n,), potentials (centres,): work space."""
    for run in range(steps.shape[0]):
        for k in range(steps.shape[1]):
            # at t = 0 a sweep forgets the run before
            advance(path, ladder[k], x, potentials, row)
            steps[run, k] = log_factor(path.log_shares, ladder[k + 1], potentials)
            steps[run, k] -= log_factor(path.log_shares, ladder[k], potentials)


@dataclass(frozen=True)
class _Plan:
    """A path with the steps (steps + 1,) that runs take along it."""

    path: Path
    ladder: FloatArray
    n: int

    def steps(self, runs: int, row: StreamArray) -> FloatArray:
        """(runs, steps) by `_anneal`."""
        x, potentials = np.empty(self.n), np.empty(self.path.log_shares.size)
        out = np.empty((runs, self.ladder.size - 1))
        x[:] = np.clip(0.0, self.path.given.lower, self.path.given.upper)
        own = apart(row[None])[0]
        _anneal(self.path, self.ladder, x, potentials, own, out)
        row[:] = own
        if not np.isfinite(out).all():
            raise OverflowError(
                "model: a run left the floats. If model.copositivity is unproven, Z is most likely infinite: raise the "
                "diagonal or weaken the negative couplings. Otherwise numbers overflow: measure x in another unit."
            )
        return out

    def pilot(self, row: StreamArray) -> FloatArray:
        """(runs, steps) in blocks, between which Ctrl-C is heard; fewer runs of very many steps."""
        runs = max(_FEWEST_PILOT_RUNS, min(_PILOT_RUNS, _PILOT_RUNS * _MANY_STEPS // self.ladder.size))
        block = min(runs, self.runs_per_block)
        return np.concatenate([self.steps(block, row) for _ in range(-(-runs // block))])

    def log_weights(self, runs: int, row: StreamArray) -> FloatArray:
        """(runs,) their ln w."""
        return np.asarray(self.steps(runs, row).sum(axis=1))

    @property
    def runs_per_block(self) -> int:
        """So many that a block takes some hundredths of a second, if one run does not take longer."""
        return max(1, min(_BLOCK_RUNS, int(_BLOCK_SECONDS / self.seconds_per_run)))

    @property
    def most_runs(self) -> int:
        """So many that they take some minutes on a usual machine: what is not reached by then never will be."""
        return max(_FEWEST_RUNS, min(_MOST_RUNS, int(_MOST_SECONDS / self.seconds_per_run)))

    @property
    def seconds_per_run(self) -> float:
        """On a usual machine; no clock is read, so that the number of runs depends on none."""
        return sweep_cost(self.path) * 1e-8 * self.ladder.size


def _planned(path: Path, n: int, row: StreamArray) -> _Plan:
    """Steps of equal spread, doubled in pilots until the weights are calm or more steps help no more."""
    ladder = np.linspace(0.0, 1.0, _PILOT_STEPS + 1)
    restless: list[float] = []
    while True:
        steps = _Plan(path, ladder, n).pilot(row)
        count, restlessness = steps.shape[1], _restlessness(steps.sum(axis=1))
        # not quite by spread: a stretch that seems to cost nothing gets steps, too
        spread = steps.std(axis=0) + 0.1 * steps.std(axis=0).mean()
        restless.append(restlessness)
        stuck = len(restless) > _PATIENCE and restlessness > _GAIN * restless[-1 - _PATIENCE]
        if restlessness <= _CALM or stuck or 2 * count > _MOST_STEPS:
            return _Plan(path, respaced(ladder, spread, count), n)
        ladder = respaced(ladder, spread, 2 * count)


def _restlessness(log_weights: FloatArray) -> float:
    """The variance of w in units of its mean's square, or of ln w, which sees further when few weights outweigh all."""
    w = np.exp(log_weights - log_weights.max())
    return float(max(w.var() / w.mean() ** 2, log_weights.var()))


def _annealed(
    plan: _Plan, seed: np.random.SeedSequence, asked: float, workers: int, progress: bool | None, label: str
) -> tuple[FloatArray, bool]:
    """The ln w of all runs, and whether Ctrl-C cut them short: more and more, until their error is what was asked."""
    each, most = plan.runs_per_block, plan.most_runs
    done: list[FloatArray] = []
    runs = _FEWEST_RUNS
    while True:
        rows = streams(seed, -(-runs // each))[len(done) :]
        tasks = [partial(plan.log_weights, each, row) for row in rows]
        new, interrupted = _all_of(tasks, workers, progress, f"{label}, {runs} runs", each)
        done += new
        if not done:
            raise KeyboardInterrupt
        found = LogPartition(np.concatenate(done), plan.ladder, 0, 0.0)
        if interrupted or found.error <= asked or found.runs >= most:
            return found.log_weights, interrupted
        needed = 1.1 * (found.error / asked) ** 2
        runs = min(most, math.ceil(found.runs * min(max(needed, 1.25), _MOST_GROWTH)))


def _all_of(
    tasks: Sequence[Callable[[], FloatArray]], workers: int, progress: bool | None, label: str, each: int
) -> tuple[list[FloatArray], bool]:
    """What the tasks return, in their order, and whether Ctrl-C came: then of those from the first that were done."""
    stop = threading.Event()

    def work(task: Callable[[], FloatArray], advance_bar: Advance) -> FloatArray | None:
        if stop.is_set():
            return None
        found = task()
        advance_bar(each)
        return found

    interrupted = False
    with (
        progress_bar(label, len(tasks) * each, "runs", enabled=progress) as advance_bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        futures = [pool.submit(work, task, advance_bar) for task in tasks]
        try:
            _wait(futures)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
        results = [future.result() for future in futures]
    kept: list[FloatArray] = []
    for result in results:
        if result is None:
            break
        kept.append(result)
    return kept, interrupted


def _wait(futures: list[Future[FloatArray | None]]) -> None:
    """Return when all are done or one has failed; wakes often enough for Ctrl-C to be heard on every platform."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_LOOK)
        if any(future.exception() is not None for future in done):
            return


def _checked_error(error: float) -> float:
    asked = as_reals("error", error)
    if asked.size != 1 or not (np.isfinite(asked) & (asked > 0.0)).all():
        raise ValueError(f"error: a positive standard error of ln Z is needed, but error = {error}.")
    return float(asked.item())


def _warn_if_unreliable(found: LogPartition, asked: float) -> None:
    doubts = []
    if found.interrupted:
        doubts.append(f"Interrupted after {found.runs} runs.")
    if not found.error <= asked:
        doubts.append(f"The error is {found.error:.2g}, not {asked:.2g}.")
    if not found.reliable:
        doubts.append(
            f"The error bar is not to be relied on: {found.effective_runs:.0f} of {found.runs} runs carry the weight, "
            f"whose tail has Pareto's k = {found.tail:.2f} (up to {_HEAVY} is sound). Ask for a smaller error, which "
            "takes more runs; if it stays, the density has modes that mean field does not find."
        )
    if doubts:
        warnings.warn(" ".join(doubts), UnreliableWarning, stacklevel=3)

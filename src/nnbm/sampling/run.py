"""The only loop over chains: all cores, a live bar, and a Ctrl-C that keeps what was drawn."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.progress import Advance, progress_bar
from nnbm.sampling.protocol import Chain

__all__ = ["Schedule", "run_chains"]

_SLICE_SECONDS = 0.1  # a thread looks up this often: for the bar, for a Ctrl-C, and to give every chain its turn


@dataclass(frozen=True)
class Schedule:
    """How long each chain runs, in sweeps: `burn_in` unrecorded ones, then `draws` times `thin`."""

    draws: int
    burn_in: int
    thin: int

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.burn_in + self.draws * self.thin


class _Progress:
    """One chain on its way through the schedule, in slices of about `_SLICE_SECONDS` from the speed seen so far."""

    def __init__(self, chain: Chain, schedule: Schedule, draws: FloatArray) -> None:
        self.recorded = 0
        self.latest = draws[0]  # (n,) the state after the last slice
        self._chain, self._thin, self._draws = chain, schedule.thin, draws
        self._until_next = schedule.burn_in + schedule.thin  # sweeps until the next draw counts
        self._size = 1

    @property
    def finished(self) -> bool:
        """Whether every draw is recorded."""
        return self.recorded == self._draws.shape[0]

    def run_slice(self) -> int:
        """Go on for one slice; returns its sweeps."""
        started = time.perf_counter()
        sweeps = self._advance(self._size)
        seconds = max(time.perf_counter() - started, 1e-9)
        # at most tenfold: the first slice may have included a compilation
        self._size = max(1, min(int(sweeps * _SLICE_SECONDS / seconds), 10 * self._size))
        return sweeps

    def _advance(self, most: int) -> int:
        """At most `most` sweeps; a state that does not count is written where the next draw will overwrite it."""
        if most >= self._thin == self._until_next:
            count = min(most // self._thin, self._draws.shape[0] - self.recorded)
            self._chain.run(self._thin, self._draws[self.recorded : self.recorded + count])
            self.recorded += count
            self.latest = self._draws[self.recorded - 1]
            return count * self._thin
        sweeps = min(most, self._until_next)
        self._chain.run(sweeps, self._draws[self.recorded : self.recorded + 1])
        self.latest = self._draws[self.recorded]
        self._until_next -= sweeps
        if self._until_next == 0:
            self.recorded += 1
            self._until_next = self._thin
        return sweeps


def _work(waiting: deque[_Progress], names: Sequence[str], stop: threading.Event, advance: Advance) -> None:
    """One thread: a slice of the chain that has waited longest, again and again; none waiting, others hold the rest."""
    while not stop.is_set():
        try:
            progress = waiting.popleft()
        except IndexError:
            return
        advance(progress.run_slice())
        _require_finite(progress.latest, names)
        if not progress.finished:
            waiting.append(progress)


def _require_finite(state: FloatArray, names: Sequence[str]) -> None:
    """One look per slice is enough: a state that is not finite stays so (`protocol.Chain`)."""
    bad = ~np.isfinite(state)
    if bad.any():
        first = int(np.argmax(bad))
        raise OverflowError(
            f"model: a chain ran away: {names[first] if names else f'x[{first}]'} = {state[first]} "
            f"({int(bad.sum())} of {state.size} variables are not finite). If model.copositivity is unproven, Z is "
            "most likely infinite: raise the diagonal or weaken the negative couplings. Otherwise numbers overflow: "
            "measure x in another unit."
        )


def run_chains(
    chains: Sequence[Chain],
    schedule: Schedule,
    n: int,
    *,
    threads: int,
    progress: bool | None,
    label: str,
    names: Sequence[str] = (),
) -> tuple[FloatArray, bool]:
    """The draws (chains, draws, n) and whether Ctrl-C cut them short (then: as many as every chain has).

    Chains take turns, slice by slice, so that all are about equally far whenever that happens. names: of the
    variables, for the error about a chain that runs away.
    """
    draws = np.empty((len(chains), schedule.draws, n))
    running = [_Progress(chain, schedule, rows) for chain, rows in zip(chains, draws, strict=True)]
    waiting, stop, interrupted = deque(running), threading.Event(), False
    workers = min(threads, len(chains))
    with (
        progress_bar(label, len(chains) * schedule.sweeps, "sweeps", enabled=progress) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        futures = [pool.submit(_work, waiting, names, stop, advance) for _ in range(workers)]
        try:
            _wait(futures)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
        for future in futures:
            future.result()
    kept = min(each.recorded for each in running)
    if kept == 0 and interrupted:
        raise KeyboardInterrupt
    return _cut(draws, kept), interrupted


def _cut(draws: FloatArray, kept: int) -> FloatArray:
    """The first `kept` draws of each chain; copied where most of the memory would be held for nothing."""
    return draws[:, :kept].copy() if 2 * kept < draws.shape[1] else draws[:, :kept]


def _wait(futures: list[Future[None]]) -> None:
    """Return when all are done or one has failed; wakes often enough for Ctrl-C to be heard on every platform."""
    while any(not future.done() for future in futures):
        done, _ = wait(futures, timeout=_SLICE_SECONDS)
        if any(future.exception() is not None for future in done):
            return

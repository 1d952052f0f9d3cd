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
from nnbm.sampling.sink import Kept, Sink

__all__ = ["Schedule", "drive", "run_chains"]

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

    def recorded(self, sweeps: int) -> int:
        """Draws among the first `sweeps` sweeps."""
        return max(0, sweeps - self.burn_in) // self.thin


class _Progress:
    """One chain on its way through the schedule, in slices of about `_SLICE_SECONDS` from the speed seen so far."""

    def __init__(self, chain: Chain, schedule: Schedule, sink: Sink, names: Sequence[str], done: int) -> None:
        self._chain, self._schedule, self._sink, self._names = chain, schedule, sink, names
        self._done = done  # sweeps
        self._size = 1

    @property
    def finished(self) -> bool:
        """Whether every draw is recorded."""
        return self._done == self._schedule.sweeps

    def run_slice(self) -> int:
        """Go on for one slice; returns its sweeps."""
        started = time.perf_counter()
        sweeps = self._advance(self._size)
        self._done += sweeps
        self._sink.pause(self._done)
        seconds = max(time.perf_counter() - started, 1e-9)
        # at most tenfold: the first slice may have included a compilation
        self._size = max(1, min(int(sweeps * _SLICE_SECONDS / seconds), 10 * self._size))
        return sweeps

    def _advance(self, most: int) -> int:
        """At most `most` sweeps; a state that does not count is written where the next draw will overwrite it."""
        recorded, thin = self._schedule.recorded(self._done), self._schedule.thin
        until_next = self._schedule.burn_in + (recorded + 1) * thin - self._done
        if most >= thin == until_next:
            rows = self._sink.rows(min(most // thin, self._schedule.draws - recorded))
            self._run(thin, rows)
            self._sink.keep(rows.shape[0])
            return rows.shape[0] * thin
        sweeps = min(most, until_next)
        self._run(sweeps, self._sink.rows(1))
        if sweeps == until_next:
            self._sink.keep(1)
        return sweeps

    def _run(self, sweeps: int, rows: FloatArray) -> None:
        self._chain.run(sweeps, rows)
        _require_finite(rows[-1], self._names)


def _work(waiting: deque[_Progress], stop: threading.Event, advance: Advance) -> None:
    """One thread: a slice of the chain that has waited longest, again and again; none waiting, others hold the rest."""
    while not stop.is_set():
        try:
            progress = waiting.popleft()
        except IndexError:
            return
        advance(progress.run_slice())
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
    sinks = [Kept(rows) for rows in draws]
    interrupted = drive(chains, schedule, sinks, threads=threads, progress=progress, label=label, names=names)
    kept = min(sink.recorded for sink in sinks)
    if kept == 0 and interrupted:
        raise KeyboardInterrupt
    return _cut(draws, kept), interrupted


def drive(
    chains: Sequence[Chain],
    schedule: Schedule,
    sinks: Sequence[Sink],
    *,
    threads: int,
    progress: bool | None,
    label: str,
    names: Sequence[str] = (),
    done: Sequence[int] | None = None,
) -> bool:
    """Run each chain through the schedule into its sink; returns whether Ctrl-C cut that short.

    done: the sweeps that each chain has behind it, where the run goes on from an earlier one.
    """
    behind = [0] * len(chains) if done is None else done
    each = [_Progress(chain, schedule, sink, names, at) for chain, sink, at in zip(chains, sinks, behind, strict=True)]
    waiting, stop, interrupted = deque(one for one in each if not one.finished), threading.Event(), False
    workers = max(1, min(threads, len(waiting)))
    with (
        progress_bar(label, len(chains) * schedule.sweeps, "sweeps", enabled=progress) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        advance(sum(behind))
        futures = [pool.submit(_work, waiting, stop, advance) for _ in range(workers)]
        try:
            _wait(futures)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
        for future in futures:
            future.result()
    return interrupted


def _cut(draws: FloatArray, kept: int) -> FloatArray:
    """The first `kept` draws of each chain; copied where most of the memory would be held for nothing."""
    return draws[:, :kept].copy() if 2 * kept < draws.shape[1] else draws[:, :kept]


def _wait(futures: list[Future[None]]) -> None:
    """Return when all are done or one has failed; wakes often enough for Ctrl-C to be heard on every platform."""
    while any(not future.done() for future in futures):
        done, _ = wait(futures, timeout=_SLICE_SECONDS)
        if any(future.exception() is not None for future in done):
            return

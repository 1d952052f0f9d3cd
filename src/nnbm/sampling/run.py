"""The only loop over chains: all cores, a live bar, and a Ctrl-C that keeps what was drawn."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.progress import Advance, progress_bar
from nnbm.sampling.protocol import Chain

__all__ = ["Schedule", "run_chains"]

_SLICE_SECONDS = 0.1  # a chain looks up this often: for the bar, and for a Ctrl-C


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


class _Slices:
    """Cuts work into pieces of about `_SLICE_SECONDS` from the speed seen so far."""

    def __init__(self) -> None:
        self._size = 1

    def next(self, left: int) -> int:
        self._started = time.perf_counter()
        self._taken = min(self._size, left)
        return self._taken

    def done(self) -> None:
        seconds = max(time.perf_counter() - self._started, 1e-9)
        # at most tenfold: the first slice may have included a compilation
        self._size = max(1, min(int(self._taken * _SLICE_SECONDS / seconds), 10 * self._size))


def _run_chain(chain: Chain, schedule: Schedule, draws: FloatArray, stop: threading.Event, advance: Advance) -> int:
    """Burn in and record until done or told to stop; returns how many draws were recorded."""
    slices = _Slices()
    done = 0
    while done < schedule.burn_in and not stop.is_set():
        sweeps = slices.next(schedule.burn_in - done)
        chain.run(sweeps, draws[:1])  # overwritten by the first draw that counts
        slices.done()
        done += sweeps
        advance(sweeps)
    slices = _Slices()
    recorded = 0
    while done == schedule.burn_in and recorded < schedule.draws and not stop.is_set():
        count = slices.next(schedule.draws - recorded)
        chain.run(schedule.thin, draws[recorded : recorded + count])
        slices.done()
        recorded += count
        advance(count * schedule.thin)
    return recorded


def run_chains(
    chains: Sequence[Chain],
    schedule: Schedule,
    n: int,
    *,
    threads: int,
    progress: bool | None,
    label: str,
) -> tuple[FloatArray, bool]:
    """The draws (chains, draws, n) and whether Ctrl-C cut them short (then: as many as every chain has)."""
    draws = np.empty((len(chains), schedule.draws, n))
    stop = threading.Event()
    interrupted = False
    total = len(chains) * schedule.sweeps
    with (
        progress_bar(label, total, "sweeps", enabled=progress) as advance,
        ThreadPoolExecutor(min(threads, len(chains))) as pool,
    ):
        running: list[Future[int]] = [
            pool.submit(_run_chain, chain, schedule, draws[k], stop, advance) for k, chain in enumerate(chains)
        ]
        try:
            _wait(running)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
        kept = min(future.result() for future in running)
    if kept == 0 and interrupted:
        raise KeyboardInterrupt
    return draws[:, :kept], interrupted


def _wait(running: list[Future[int]]) -> None:
    """Return when all are done or one has failed; wakes often enough for Ctrl-C to be heard on every platform."""
    while any(not future.done() for future in running):
        done, _ = wait(running, timeout=_SLICE_SECONDS)
        if any(future.exception() is not None for future in done):
            return

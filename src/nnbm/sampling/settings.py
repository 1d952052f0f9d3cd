"""The options of `sample`, checked before anything is spent on them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from nnbm.arrays import as_whole
from nnbm.sampling.memory import available_bytes
from nnbm.sampling.run import Schedule

__all__ = ["Settings", "checked_threads", "require_memory"]

_MOST_SWEEPS = 2**62  # kernels count in 64 bits


@dataclass(frozen=True)
class Settings:
    """How many chains run on how many threads, and for how long."""

    schedule: Schedule
    chains: int
    threads: int

    @classmethod
    def checked(cls, draws: Any, chains: Any, burn_in: Any, thin: Any, threads: Any) -> Settings:
        """The settings, or an error that names the option; None takes the default."""
        kept, apart = _at_least(1, "draws", draws), _at_least(1, "thin", thin)
        unrecorded = (kept * apart + 1) // 2 if burn_in is None else _at_least(0, "burn_in", burn_in)
        schedule = Schedule(kept, unrecorded, apart)
        if schedule.sweeps > _MOST_SWEEPS:
            raise ValueError(
                f"draws, thin, burn_in: draws * thin + burn_in may be at most 2^62 sweeps, but draws = {kept}, "
                f"thin = {apart}, burn_in = {unrecorded}. No machine lives that long: lower them."
            )
        count = _at_least(1, "chains", chains)
        return cls(schedule, count, checked_threads(threads))


def checked_threads(threads: Any) -> int:
    """At least 1; None takes every core there is."""
    return _available_cores() if threads is None else _at_least(1, "threads", threads)


def _at_least(least: int, name: str, value: Any) -> int:
    number = as_whole(name, value)
    if number < least:
        raise ValueError(f"{name}: at least {least} is needed, but {name} = {number}.")
    return number


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_memory(numbers: int, what: str, remedy: str) -> None:
    """Refuse what cannot fit before hours are spent on it: so many numbers of 8 bytes for `what`."""
    there, needed = available_bytes(), 8 * numbers
    if there is not None and needed > there:
        raise MemoryError(f"{what} need {needed / 2**30:.1f} GiB, but {there / 2**30:.1f} GiB are available. {remedy}")

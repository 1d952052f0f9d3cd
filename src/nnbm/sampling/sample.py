"""sample(model): draws from a model, by whichever method."""

from __future__ import annotations

import os
import time
import warnings

from numpy.typing import ArrayLike

from nnbm.errors import UnreliableWarning
from nnbm.model import NNBM
from nnbm.sampling.diagnostics import FEWEST_DRAWS, unmixed
from nnbm.sampling.gibbs import Gibbs
from nnbm.sampling.protocol import Sampler
from nnbm.sampling.result import Samples
from nnbm.sampling.run import Schedule, run_chains
from nnbm.sampling.starts import checked_starts, dispersed_starts
from nnbm.stream import Seed, sequence

__all__ = ["sample"]

_METHODS: dict[str, Sampler] = {"gibbs": Gibbs()}
_RHAT_LIMIT = 1.01


def sample(
    model: NNBM,
    draws: int = 1000,
    *,
    chains: int = 4,
    method: str | Sampler = "gibbs",
    seed: Seed = None,
    burn_in: int | None = None,
    thin: int = 1,
    initial: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Samples:
    """Draw from the model with several chains, one per core at a time.

    draws: kept per chain, `thin` sweeps apart, after `burn_in` sweeps (None: half as many as are kept).
    method: "gibbs", or the method with its options, such as Gibbs(order="chromatic").
    seed: a number >= 0, a SeedSequence or a Generator; the same seed gives the same draws on any number of threads.
    initial: where chains start, (n,) or (chains, n), x >= 0; None starts them apart from each
    other (`starts.dispersed_starts`). threads: None takes every core. progress: None shows a bar on a terminal only.

    Warns (UnreliableWarning) with the variables' names where R-hat exceeds 1.01. Ctrl-C returns what is there.

    >>> from nnbm import gallery
    >>> s = sample(gallery.orientation_tuning(36), draws=1000, chains=4, seed=0)
    >>> s.draws.shape
    (4, 1000, 36)
    """
    sampler = _sampler(method)
    for name, value in (("draws", draws), ("chains", chains), ("thin", thin)):
        if value < 1:
            raise ValueError(f"{name}: at least 1 is needed, but {name} = {value}.")
    schedule = Schedule(draws, (draws * thin + 1) // 2 if burn_in is None else burn_in, thin)
    if schedule.burn_in < 0:
        raise ValueError(f"burn_in: at least 0 is needed, but burn_in = {burn_in}.")
    _check_memory(chains, draws, model.n)
    workers = _available_cores() if threads is None else threads
    if workers < 1:
        raise ValueError(f"threads: at least 1 is needed, but threads = {threads}.")
    for_starts, for_chains = sequence(seed).spawn(2)
    prepared = sampler.chains(
        model,
        dispersed_starts(model, chains, for_starts) if initial is None else checked_starts(model, chains, initial),
        for_chains,
        workers,
    )
    started = time.perf_counter()
    kept, interrupted = run_chains(
        prepared,
        schedule,
        model.n,
        threads=workers,
        progress=progress,
        label=f"{sampler.name}, {chains} chains of {model.n} variables",
    )
    seconds = time.perf_counter() - started
    samples = Samples(kept, model.names, sampler.name, schedule.burn_in, thin, seconds, interrupted)
    _warn_if_unreliable(samples, draws)
    return samples


def _sampler(method: str | Sampler) -> Sampler:
    if not isinstance(method, str):
        return method
    if method not in _METHODS:
        raise ValueError(f"method: one of {sorted(_METHODS)} is meant, but method = {method!r}.")
    return _METHODS[method]


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_memory(chains: int, draws: int, n: int) -> None:
    """Refuse what cannot fit before hours are spent on it."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return
    needed = 8 * chains * draws * n
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise MemoryError(
            f"draws: {chains} chains x {draws} draws x {n} variables need {needed / 2**30:.1f} GiB, but this "
            f"machine has {there / 2**30:.1f} GiB. Keep fewer draws, further apart (draws=..., thin=...)."
        )


def _warn_if_unreliable(samples: Samples, asked: int) -> None:
    got = samples.draws.shape[1]
    if samples.interrupted:
        _warn(f"Interrupted: {got} of {asked} draws per chain are kept.")
    if got < FEWEST_DRAWS:
        _warn(f"{got} draws per chain are too few to tell whether the chains agree. Draw more.")
        return
    places, values = unmixed(samples.draws, _RHAT_LIMIT)
    if places.size:
        pairs = zip(places[:6], values, strict=False)
        shown = ", ".join(f"{samples.label(int(i))} ({value:.3f})" for i, value in pairs)
        more = f" and {places.size - 6} more" if places.size > 6 else ""
        _warn(
            f"R-hat exceeds {_RHAT_LIMIT} for {shown}{more}: after {got} draws the chains do not agree, so means and "
            "errors are not to be relied on. Draw more or thin more; if it stays, the model has several modes or a "
            "slow one."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UnreliableWarning, stacklevel=4)

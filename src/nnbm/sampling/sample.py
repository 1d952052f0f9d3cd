"""sample(model): draws from a model, by whichever method."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, IntArray
from nnbm.errors import UnreliableWarning
from nnbm.model import NNBM
from nnbm.sampling.choice import Choice, choose
from nnbm.sampling.diagnostics import FEWEST_DRAWS, MOST_SUSPECTS, RHAT_LIMIT, unmixed
from nnbm.sampling.fields import Fields
from nnbm.sampling.gibbs import Gibbs
from nnbm.sampling.hmc import HMC
from nnbm.sampling.protocol import Chain, Sampler
from nnbm.sampling.result import Samples
from nnbm.sampling.run import run_chains
from nnbm.sampling.settings import Settings, require_memory
from nnbm.sampling.starts import checked_starts, dispersed_starts
from nnbm.sampling.tempering import Tempering
from nnbm.stream import Seed, sequence

__all__ = ["disagreement", "prepared_chains", "sample", "sampler_of", "told", "warn"]

_METHODS: dict[str, Sampler] = {"gibbs": Gibbs(), "hmc": HMC(), "fields": Fields(), "tempering": Tempering()}


def sample(
    model: NNBM,
    draws: int = 1000,
    *,
    chains: int = 4,
    method: str | Sampler = "auto",
    seed: Seed = None,
    burn_in: int | None = None,
    thin: int = 1,
    initial: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Samples:
    """Draw from the model with several chains, one per core at a time.

    draws: kept per chain, `thin` sweeps apart, after `burn_in` sweeps (None: half as many as are kept).
    method: "auto" (default) is "gibbs" unless a short pilot shows that it creeps: then "tempering" (several modes) or
    "fields" (slow directions), by a race; `detail` of the result says why. "hmc"; or a method with its options, such as
    Gibbs(order="chromatic").
    seed: a number >= 0, a SeedSequence or a Generator; the same seed gives the same draws on any number of threads.
    initial: where chains start, (n,) or (chains, n), within the model's ends; None starts them apart from each
    other (`starts.dispersed_starts`). threads: None takes every core. progress: None shows a bar on a terminal only.

    Warns (UnreliableWarning) with the variables' names where R-hat exceeds 1.01. Ctrl-C returns what is there. Raises
    OverflowError when a chain runs away, as it does where Z is infinite.

    >>> from nnbm import gallery
    >>> s = sample(gallery.orientation_tuning(36), draws=1000, chains=4, seed=0)
    >>> s.draws.shape
    (4, 1000, 36)
    """
    sampler, reason = sampler_of(method, model)
    chosen = Settings.checked(draws, chains, burn_in, thin, threads)
    _check_memory(chosen, model.n)
    prepared = prepared_chains(model, sampler, chosen, seed, initial)
    started = time.perf_counter()
    kept, interrupted = run_chains(
        prepared,
        chosen.schedule,
        model.n,
        threads=chosen.threads,
        progress=progress,
        label=f"{sampler.name}, {chosen.chains} chains of {model.n} variables",
        names=model.names,
    )
    seconds = time.perf_counter() - started
    schedule = chosen.schedule
    samples = Samples(
        kept, model.names, sampler.name, schedule.burn_in, schedule.thin, seconds, interrupted, told(prepared), reason
    )
    _warn_if_unreliable(samples, schedule.draws)
    return samples


def sampler_of(method: str | Sampler, model: NNBM) -> Choice:
    """The sampler that a name or an object stands for, and why, where that was left to us."""
    names = sorted(("auto", *_METHODS))
    if isinstance(method, str):
        if method == "auto":
            return choose(model)
        if method not in _METHODS:
            raise ValueError(f"method: one of {names} is meant, but method = {method!r}.")
        return Choice(_METHODS[method], "")
    if isinstance(method, type) or not callable(getattr(method, "chains", None)) or not hasattr(method, "name"):
        raise TypeError(
            f"method: one of {names} or a sampler such as nnbm.Gibbs() is meant (an object, not its class), "
            f"but method = {method!r}."
        )
    return Choice(method, "")


def prepared_chains(
    model: NNBM, sampler: Sampler, settings: Settings, seed: Seed, initial: ArrayLike | None
) -> Sequence[Chain]:
    """The chains, each with its own start and its own stream."""
    for_starts, for_chains = sequence(seed).spawn(2)
    starts = (
        dispersed_starts(model, settings.chains, for_starts)
        if initial is None
        else checked_starts(model, settings.chains, initial)
    )
    return sampler.chains(model, starts, for_chains, settings.threads)


def told(chains: Sequence[Chain]) -> dict[str, FloatArray]:
    """What the chains tell of themselves, (chains, ...) by name."""
    each = [chain.info() for chain in chains]
    return {name: np.array([info[name] for info in each]) for name in each[0]}


def _warn_if_unreliable(samples: Samples, asked: int) -> None:
    got = samples.draws.shape[1]
    if samples.interrupted:
        warn(f"Interrupted: {got} of {asked} draws per chain are kept.")
    if got < FEWEST_DRAWS:
        warn(f"{got} draws per chain are too few to tell whether the chains agree. Draw more.")
        return
    try:
        places, values = unmixed(samples.draws)
    except (KeyboardInterrupt, MemoryError):  # the draws are done, and must not be lost to their diagnosis
        warn("Interrupted while judging the draws: whether the chains agree is not known. All draws are kept.")
        return
    if places.size:
        at_least = "at least " if places.size == MOST_SUSPECTS < samples.n else ""
        warn(disagreement(samples.label, got, places, values, at_least))


def disagreement(
    label: Callable[[int], str], draws: int, places: IntArray, values: FloatArray, at_least: str = ""
) -> str:
    """The sentence about variables whose R-hat, `values`, is too large; worst first."""
    pairs = zip(places[:6], values, strict=False)
    shown = ", ".join(f"{label(int(i))} ({value:.3f})" for i, value in pairs)
    more = f" and {at_least}{places.size - 6} more" if places.size > 6 else ""
    still = " (nan: its draws never vary)" if np.isnan(values).any() else ""
    return (
        f"R-hat exceeds {RHAT_LIMIT} for {shown}{more}{still}: after {draws} draws the chains do not "
        "agree, so means and errors are not to be relied on. Draw more or thin more; if it stays, the model has "
        "several modes or a slow one."
    )


def warn(message: str, stacklevel: int = 3) -> None:
    """An UnreliableWarning about a line so many calls up; 1 is the caller's."""
    warnings.warn(message, UnreliableWarning, stacklevel=stacklevel + 1)


def _check_memory(chosen: Settings, n: int) -> None:
    chains, draws = chosen.chains, chosen.schedule.draws
    require_memory(
        chains * n * (draws + 2),  # where each chain starts, and its state
        f"draws: {chains} chains x {draws} draws x {n} variables",
        "Keep fewer draws, further apart (draws=..., thin=...). Or keep none: nnbm.sample_moments sums them up, "
        "nnbm.sample_to writes them to a folder.",
    )

"""sample_moments(model): means, variances and covariances of draws that nobody keeps."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from nnbm.model import NNBM
from nnbm.sampling.accumulate import Accumulator, Pattern
from nnbm.sampling.diagnostics import FEWEST_DRAWS, RHAT_LIMIT
from nnbm.sampling.moments import SampledMoments, summarised
from nnbm.sampling.protocol import Sampler
from nnbm.sampling.run import drive
from nnbm.sampling.sample import disagreement, prepared_chains, sampler_of, told, warn
from nnbm.sampling.settings import Settings, require_memory
from nnbm.stream import Seed

__all__ = ["sample_moments", "warn_if_unreliable"]


def sample_moments(
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
) -> SampledMoments:
    """The moments of `sample`'s draws, summed up as they are drawn: memory does not grow with their number.

    Each chain takes some ten numbers a variable, and one an edge (of a dense model one a pair). The options are
    those of `sample`, and the same seed makes the same draws. With `thin` of a few sweeps they cost next to nothing.

    Warns (UnreliableWarning) with the variables' names where R-hat exceeds 1.01. Ctrl-C returns the moments of what
    was drawn. Raises OverflowError when a chain runs away, as it does where Z is infinite.

    >>> from nnbm import gallery
    >>> m = sample_moments(gallery.square_grid(10, 10), draws=2000, chains=2, thin=3, seed=0)
    >>> m.covariance.shape, m.covariance.nnz  # variances and edges
    ((100, 100), 460)
    """
    sampler, reason = sampler_of(method, model)
    chosen = Settings.checked(draws, chains, burn_in, thin, threads)
    schedule, pattern = chosen.schedule, Pattern(model.coupling)
    require_memory(
        chosen.chains * (10 * model.n + pattern.size),
        f"chains: {chosen.chains} chains' sums over {model.n} variables and {pattern.size} pairs",
        "Take fewer chains, or a scipy.sparse coupling if most couplings are zero.",
    )
    prepared = prepared_chains(model, sampler, chosen, seed, initial)
    sums = [Accumulator(pattern, schedule.draws) for _ in prepared]
    started = time.perf_counter()
    interrupted = drive(
        prepared,
        schedule,
        sums,
        threads=chosen.threads,
        progress=progress,
        label=f"{sampler.name}, {chosen.chains} chains of {model.n} variables",
        names=model.names,
    )
    counts = tuple(one.recorded for one in sums)
    if min(counts) == 0:
        raise KeyboardInterrupt
    moments = summarised(
        sums,
        pattern,
        schedule,
        names=model.names,
        method=sampler.name,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        info=told(prepared),
        detail=reason,
    )
    warn_if_unreliable(moments, schedule.draws, stacklevel=2)
    return moments


def warn_if_unreliable(moments: SampledMoments, asked: int, stacklevel: int) -> None:
    """Tell on whom the chains do not agree, and what is missing of `asked` draws; stacklevel 1 is the caller."""
    got = min(moments.counts)
    if moments.interrupted:
        warn(f"Interrupted: {got} of {asked} draws per chain are in the moments.", stacklevel + 1)
    if got < FEWEST_DRAWS:
        warn(f"{got} draws per chain are too few to tell whether the chains agree. Draw more.", stacklevel + 1)
        return
    found = moments.rhat()
    order = np.argsort(found)[::-1]
    places = order[~(found[order] <= RHAT_LIMIT)]
    if places.size:
        warn(disagreement(moments.label, got, places, found[places]), stacklevel + 1)

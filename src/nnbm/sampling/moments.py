"""What `sample_moments` returns, out of what its chains summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.model import Coupling
from nnbm.sampling.accumulate import Accumulator, Pattern
from nnbm.sampling.diagnostics import FEWEST_DRAWS, RHAT_LIMIT
from nnbm.sampling.run import Schedule

__all__ = ["SampledMoments", "summarised"]


@dataclass(frozen=True, eq=False, repr=False)
class SampledMoments:
    """Moments of draws that were never kept, and how they came about.

    mean, variance: (n,) over all draws of all chains. covariance: (n, n), dense for a dense model; for a sparse one the
    variances and the pairs that are coupled, on the coupling's own pattern. mean_error: (n,) Monte-Carlo standard
    error of `mean`, by batch means. counts: draws of each chain. Other fields are those of `Samples`.

    >>> from nnbm import gallery, sample_moments
    >>> m = sample_moments(gallery.square_grid(30, 30), draws=1000, chains=2, thin=4, seed=0)
    >>> m.mean.shape, m.covariance.nnz, bool(m.rhat().max() < 1.05)
    ((900,), 4380, True)
    """

    mean: FloatArray
    variance: FloatArray
    covariance: Coupling
    mean_error: FloatArray
    counts: tuple[int, ...]
    names: tuple[str, ...]
    method: str
    burn_in: int
    thin: int
    seconds: float
    interrupted: bool
    _rhat: FloatArray
    info: Mapping[str, FloatArray] = field(default_factory=dict)
    detail: str = ""

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.mean.size

    @property
    def second_moment(self) -> FloatArray:
        """(n,) <x_i²>."""
        return self.variance + np.square(self.mean)

    def ess(self) -> FloatArray:
        """(n,) how many independent draws have a mean of this error."""
        with np.errstate(all="ignore"):
            return self.variance / np.square(self.mean_error)

    def rhat(self) -> FloatArray:
        """(n,) split R-hat, plain (without ranks): above 1.01 the chains have not agreed.

        Between whole chains, not halves, where Ctrl-C cut them short. NaN where fewer than eight draws a chain, or
        draws that never vary, say nothing.
        """
        return self._rhat

    def label(self, site: int) -> str:
        """The variable's name, or x[site]."""
        return self.names[site] if self.names else f"x[{site}]"

    def __repr__(self) -> str:
        fewest, most = min(self.counts), max(self.counts)
        draws = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        cut = ", interrupted" if self.interrupted else ""
        return (
            f"SampledMoments({len(self.counts)} chains x {draws} draws of {self.n} variables, {self.method}, "
            f"{self.seconds:.2g} s{cut})"
        )


def summarised(
    sums: list[Accumulator],
    pattern: Pattern,
    schedule: Schedule,
    *,
    names: tuple[str, ...],
    method: str,
    seconds: float,
    interrupted: bool,
    info: Mapping[str, FloatArray],
    detail: str = "",
) -> SampledMoments:
    """All chains together; `sums` are used up, and leave the list as they are, so that their memory is free again."""
    counts = tuple(one.recorded for one in sums)
    rhat, total, between = _joined(sums)
    variance = total.squares.sum(axis=0)
    variance /= total.recorded
    error = _mean_error(total, np.where(rhat > RHAT_LIMIT, between, 0.0))
    if min(counts) < FEWEST_DRAWS:
        rhat, error = np.full(pattern.n, np.nan), np.full(pattern.n, np.nan)
    return SampledMoments(
        mean=total.mean.copy(),
        variance=variance,
        covariance=pattern.matrix(variance, np.divide(total.products, total.recorded, out=total.products)),
        mean_error=error,
        counts=counts,
        names=names,
        method=method,
        burn_in=schedule.burn_in,
        thin=schedule.thin,
        seconds=seconds,
        interrupted=interrupted,
        _rhat=rhat,
        info=info,
        detail=detail,
    )


def _joined(sums: list[Accumulator]) -> tuple[FloatArray, Accumulator, FloatArray]:
    """R-hat, all chains as one, and what `_between_chains` says of them: halves first, then chains, then the whole."""
    halves = all(one.complete for one in sums)
    for one in sums:
        one.finish()
        if not halves:
            one.join_halves()
    rhat = _rhat(sums, halves=halves)
    for one in sums:
        one.join_halves()
    between = _between_chains(sums)
    while len(sums) > 1:
        sums[0].join(sums.pop())
    return rhat, sums[0], between


def _rhat(sums: Sequence[Accumulator], *, halves: bool) -> FloatArray:
    """(n,) sqrt((k - 1) / k + variance of the segments' means / mean of their variances), k draws a segment."""
    segments = [half for one in sums for half in one.halves[: 2 if halves else 1]]
    draws = sum(one.recorded for one in sums)
    each = draws / len(segments)
    squared = _variance(segments)
    with np.errstate(all="ignore"):  # of too few draws, which say nothing
        squared /= sum(one.squares.sum(axis=0) for one in sums) / np.float64(draws - len(segments))
        squared += (each - 1.0) / each
        return np.sqrt(squared, out=squared)


def _variance(rows: Sequence[FloatArray]) -> FloatArray:
    """(n,) of rows (n,) each, without a copy of them all; NaN of a single one."""
    centre = sum(rows) / len(rows)
    squares = np.zeros_like(rows[0])
    for row in rows:
        apart = row - centre
        squares += np.square(apart, out=apart)
    return squares / (len(rows) - 1) if len(rows) > 1 else np.full_like(squares, np.nan)


def _between_chains(sums: Sequence[Accumulator]) -> FloatArray:
    """(n,) the squared error of the mean that the chains' own means let expect; 0 of a single chain."""
    if len(sums) == 1:
        return np.zeros_like(sums[0].mean)
    return _variance([one.mean for one in sums]) / len(sums)


def _mean_error(total: Accumulator, least: FloatArray) -> FloatArray:
    """(n,) by batch means about the common mean, between and within chains (Argon & Andradóttir 2006).

    Batches twice as large as others have half of their bias, so twice the larger ones' less the others' has none to
    first order (lugsail: Vats & Flegal 2022); that is only believed where it makes the error larger. least: (n,) of
    the squared error.
    """
    batches, larger = total.closed
    with np.errstate(all="ignore"):  # nothing to compare where Ctrl-C left a single batch
        of_batches = (total.squares[1] + total.squares[2]) / np.float64(batches - 1)
        of_larger = total.squares[2] / np.float64(larger - 1)
    squared = np.maximum(of_larger, 2.0 * of_larger - of_batches) / total.recorded
    return np.sqrt(np.maximum(squared, least))

"""Tables of a study: mean errors with their standard errors, beside the paper and the floor; and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.sampling.diagnostics import RHAT_LIMIT
from nnbm.study.experiments import ESTIMATORS, EXPERIMENTS, Experiment
from nnbm.study.trial import Outcome

__all__ = ["Row", "Summary", "summarise"]


_BIAS = (
    "That is bias, not magic: the floor bounds unbiased estimators, and shrinking couplings pays while rows are few. "
    "With more rows the floor falls and the bias stays."
)
_CHANCE = (
    "That is chance: these estimators share their data sets, so a lucky set of trials is lucky for all. More trials "
    "(--trials) bring them back."
)


@dataclass(frozen=True)
class Row:
    """One estimator: mean (e_b, e_w) and its standard error over the `solved` trials, NaN where there are none.

    proper: in how many of them what was learned has a finite Z.
    """

    name: str
    mean: tuple[float, float]
    error: tuple[float, float]
    paper: tuple[float, float] | None
    solved: int
    proper: int
    milliseconds: float
    failure: str

    def over(self, floor: tuple[float, float]) -> tuple[float, float]:
        """The errors as multiples of the floor's."""
        return self.mean[0] / floor[0], self.mean[1] / floor[1]


@dataclass(frozen=True)
class Summary:
    """An experiment's table."""

    name: str
    experiment: Experiment
    trials: int
    rows: tuple[Row, ...]
    floor: tuple[float, float]
    rhat: float

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know to read the table right."""
        return tuple(self._remarks())

    def _remarks(self) -> list[str]:
        found = [self.experiment.note] if self.experiment.note else []
        for consistent, why in ((False, _BIAS), (True, _CHANCE)):
            below = [row.name for row in self.rows if self._below_floor(row, consistent)]
            if below:
                found.append(f"Below the floor by more than two standard errors: {', '.join(below)}. {why}")
        failed: dict[tuple[int, str], list[str]] = {}
        for row in self.rows:
            if row.solved < self.trials:
                failed.setdefault((self.trials - row.solved, row.failure), []).append(row.name)
        found += [
            f"No parameters by {', '.join(names)} in {count} of {self.trials} trials: {failure}"
            for (count, failure), names in failed.items()
        ]
        found += [
            f"{row.name}: in {row.solved - row.proper} of {self.trials} trials the learned density has no norm (Z is "
            "infinite); NonnegativeBoltzmann refuses such a fit."
            for row in self.rows
            if row.proper < row.solved
        ]
        if self.rhat > RHAT_LIMIT:
            found.append(f"The data's chains did not fully agree: largest R-hat {self.rhat:.3f}. Thin more.")
        return found

    def _below_floor(self, row: Row, consistent: bool) -> bool:
        if ESTIMATORS[row.name].consistent is not consistent:
            return False
        return any(m + 2.0 * e < f for m, e, f in zip(row.mean, row.error, self.floor, strict=True))


def summarise(name: str, outcomes: Sequence[Outcome]) -> Summary:
    """The table of an experiment's trials."""
    errors = np.stack([outcome.errors for outcome in outcomes])  # (trials, estimators, 2)
    floor = np.stack([outcome.floor for outcome in outcomes]).mean(axis=0)
    rows = tuple(_row(name, k, errors[:, k], outcomes) for k in range(len(ESTIMATORS)))
    largest = max(outcome.rhat for outcome in outcomes)
    return Summary(name, EXPERIMENTS[name], len(outcomes), rows, _pair(floor), largest)


def _row(name: str, k: int, errors: FloatArray, outcomes: Sequence[Outcome]) -> Row:
    estimator = list(ESTIMATORS)[k]
    done = errors[np.isfinite(errors[:, 0])]
    none = np.full(2, np.nan)
    spread = done.std(axis=0, ddof=1) / np.sqrt(len(done)) if len(done) > 1 else none
    return Row(
        name=estimator,
        mean=_pair(done.mean(axis=0) if len(done) else none),
        error=_pair(spread),
        paper=EXPERIMENTS[name].paper.get(estimator),
        solved=len(done),
        proper=sum(int(outcome.proper[k]) for outcome in outcomes),
        milliseconds=1e3 * float(np.median([outcome.seconds[k] for outcome in outcomes])),
        failure=next((outcome.failures[k] for outcome in outcomes if outcome.failures[k]), ""),
    )


def _pair(values: FloatArray) -> tuple[float, float]:
    return float(values[0]), float(values[1])

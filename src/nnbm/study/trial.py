"""One trial: draw a data set, learn it back with every estimator, keep the errors; and its file."""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from nnbm.archive import read_archive, write_archive
from nnbm.arrays import FloatArray, IntArray
from nnbm.errors import UnreliableWarning
from nnbm.learning.edges import EdgeSet
from nnbm.learning.floor import floor_from_draws
from nnbm.learning.moments import moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.rows import Rows
from nnbm.sampling.sample import sample
from nnbm.study.experiments import ESTIMATORS, EXPERIMENTS, Data, Experiment

__all__ = ["Outcome", "Task", "load_outcome", "perform", "save_outcome"]

_KIND = "nnbm trial 1"
_REVISION = 1  # raise it with any change of what trials draw or learn


@dataclass(frozen=True, order=True)
class Task:
    """Trial number `seed` of an experiment in `EXPERIMENTS`."""

    experiment: str
    seed: int

    @property
    def file_name(self) -> str:
        """Where its outcome lies."""
        return f"{self.experiment}-{self.seed:04d}.npz"

    @property
    def settings(self) -> str:
        """What the outcome depends on: an outcome of other settings is not this task's."""
        e, code = EXPERIMENTS[self.experiment], version("nnbm")
        return json.dumps([code, _REVISION, self.experiment, self.seed, e.rows, e.thin, e.chains, list(ESTIMATORS)])


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a trial found.

    i, j: (edges,) the free couplings. truth: (parameters,) b, w_ii, w_ij. learned: (estimators, parameters), NaN where
    one failed. failures: (estimators,) why, or "". proper: (estimators,) whether what was learned has a finite Z.
    seconds: (estimators,). floor: (2,) smallest possible e_b and e_w. rhat: the largest of the draws the data are.
    """

    i: IntArray
    j: IntArray
    truth: FloatArray
    learned: FloatArray
    failures: tuple[str, ...]
    proper: NDArray[np.bool_]
    seconds: FloatArray
    floor: FloatArray
    rhat: float

    @property
    def errors(self) -> FloatArray:
        """(estimators, 2) the paper's e_b and e_w."""
        apart = np.abs(self.learned - self.truth)
        n = (self.truth.size - self.i.size) // 2
        return np.stack([apart[:, :n].mean(axis=1), apart[:, n:].mean(axis=1)], axis=1)


def perform(task: Task) -> Outcome:
    """Run one trial; the same task always gives the same outcome."""
    experiment = EXPERIMENTS[task.experiment]
    data, rhat = _data(experiment, task)
    truth = Parameters.of_model(experiment.model(task.seed), data.edges).vector
    found = [_learn(name, data) for name in ESTIMATORS]
    least = floor_from_draws(data.rows.columns.T, experiment.rows, data.edges)
    return Outcome(
        i=data.edges.i,
        j=data.edges.j,
        truth=truth,
        learned=np.stack([one.vector for one in found]),
        failures=tuple(one.failure for one in found),
        proper=np.array([one.proper for one in found]),
        seconds=np.array([one.seconds for one in found]),
        floor=np.array([least.e_b, least.e_w]),
        rhat=rhat,
    )


def _data(experiment: Experiment, task: Task) -> tuple[Data, float]:
    model = experiment.model(task.seed)
    # counted from 1: SeedSequence takes [k, 0] for k, which the model's own seed is
    seed = np.random.SeedSequence([1 + list(EXPERIMENTS).index(task.experiment), 1 + task.seed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWarning)  # R-hat is reported with the table
        samples = sample(
            model, -(-experiment.rows // experiment.chains), chains=experiment.chains, thin=experiment.thin,
            burn_in=50 * experiment.thin, method="gibbs", seed=seed, threads=1, progress=False,
        )  # fmt: skip
    if samples.interrupted:
        raise KeyboardInterrupt
    edges = EdgeSet(model.n, *model.edges)
    rows = Rows.of_draws(samples.flat[: experiment.rows])
    return Data(rows, edges, moments(rows, edges), task.seed), float(samples.rhat().max())


@dataclass(frozen=True, eq=False)
class _Learned:
    """One estimator's part of an outcome."""

    vector: FloatArray
    failure: str
    proper: bool
    seconds: float


def _learn(name: str, data: Data) -> _Learned:
    started = time.perf_counter()
    try:
        found = ESTIMATORS[name].learn(data).parameters
    except (ValueError, RuntimeError) as error:  # an estimator that cannot says why
        none = np.full(data.edges.parameters, np.nan)
        return _Learned(none, str(error), False, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    try:
        found.model()
    except ValueError:
        return _Learned(found.vector, "", False, seconds)
    return _Learned(found.vector, "", True, seconds)


def save_outcome(task: Task, outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Write the outcome, whole or not at all."""
    parts = {
        "settings": np.array(task.settings),
        "i": outcome.i,
        "j": outcome.j,
        "truth": outcome.truth,
        "learned": outcome.learned,
        "failures": np.array(outcome.failures, dtype=np.str_),
        "proper": outcome.proper,
        "seconds": outcome.seconds,
        "floor": outcome.floor,
        "rhat": np.array(outcome.rhat),
    }
    write_archive(path, _KIND, parts)


def load_outcome(task: Task, path: str | os.PathLike[str]) -> Outcome:
    """Read what `save_outcome` wrote for this task, or a ValueError if it is of another one or damaged."""
    names = {"settings", "i", "j", "truth", "learned", "failures", "proper", "seconds", "floor", "rhat"}
    parts = read_archive(path, _KIND, names)
    if str(parts["settings"]) != task.settings:
        raise ValueError(f"path: {os.fspath(path)} is of other settings: {parts['settings']}. Run it again.")
    return Outcome(
        i=parts["i"],
        j=parts["j"],
        truth=parts["truth"],
        learned=parts["learned"],
        failures=tuple(str(failure) for failure in parts["failures"]),
        proper=parts["proper"],
        seconds=parts["seconds"],
        floor=parts["floor"],
        rhat=float(parts["rhat"]),
    )

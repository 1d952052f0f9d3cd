"""Many trials: all cores, a live bar, every finished trial safe on disk, and on from there the next time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnbm.cluster import WorkerLost, run_tasks
from nnbm.progress import progress_bar
from nnbm.study.experiments import EXPERIMENTS, GROUPS
from nnbm.study.trial import Outcome, Task, load_outcome, perform, save_outcome

__all__ = ["Run", "names_of", "run_trials"]


@dataclass(frozen=True, eq=False)
class Run:
    """outcomes: per experiment, in the order of trials. reused: how many lay on disk already."""

    outcomes: Mapping[str, Sequence[Outcome]]
    reused: int


def names_of(experiment: str) -> tuple[str, ...]:
    """The experiments that a name on the command line stands for.

    >>> names_of("paper")
    ('grid', 'orientation')
    """
    if experiment == "all":
        return tuple(EXPERIMENTS)
    if experiment in GROUPS:
        return GROUPS[experiment]
    if experiment not in EXPERIMENTS:
        known = ", ".join(("all", *GROUPS, *EXPERIMENTS))
        raise ValueError(f"experiment: one of {known} is meant, but experiment = {experiment!r}.")
    return (experiment,)


def run_trials(
    names: Sequence[str],
    folder: Path,
    *,
    trials: int | None = None,
    workers: int | None = None,
    fresh: bool = False,
    progress: bool | None = None,
) -> Run:
    """The outcomes of every experiment's first `trials` trials (None: as many as it asks for).

    Each finished trial is a file in `folder`; those that are there and sound are not run again unless `fresh`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {name: EXPERIMENTS[name].trials if trials is None else trials for name in names}
    # trial by trial over all experiments, so that the bar's time left is honest from the start
    tasks = [Task(name, seed) for seed in range(max(counts.values())) for name in names if seed < counts[name]]
    there = {} if fresh else _there(tasks, folder)
    missing = [task for task in tasks if task not in there]
    with progress_bar("trials", len(tasks), "trials", enabled=progress) as advance:
        advance(len(there))
        try:
            for task in run_tasks(_Kept(folder), missing, workers):
                there[task] = load_outcome(task, folder / task.file_name)
                advance(1)
        except (KeyboardInterrupt, WorkerLost) as error:
            error.add_note(
                f"{len(there)} of {len(tasks)} trials are safe in {folder}: the same command goes on from there."
            )
            raise
    outcomes = {name: [there[Task(name, seed)] for seed in range(counts[name])] for name in names}
    return Run(outcomes, len(tasks) - len(missing))


@dataclass(frozen=True)
class _Kept:
    """Performs a task in a worker and leaves its outcome on disk."""

    folder: Path

    def __call__(self, task: Task) -> Task:
        save_outcome(task, perform(task), self.folder / task.file_name)
        return task


def _there(tasks: Iterable[Task], folder: Path) -> dict[Task, Outcome]:
    found = {}
    for task in tasks:
        path = folder / task.file_name
        if path.exists():
            try:
                found[task] = load_outcome(task, path)
            except ValueError:  # of other settings, or damaged: it is run again
                continue
    return found

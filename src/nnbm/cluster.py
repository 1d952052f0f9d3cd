"""The only file that knows how work is spread: over the cores of this machine, by joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["WorkerLost", "run_tasks"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class WorkerLost(RuntimeError):
    """A worker process died before its task was done."""


def run_tasks(
    perform: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int | None = None
) -> Iterator[_Result]:
    """perform(task) of every task, as they finish; None: a worker per core, which share its BLAS threads."""
    from joblib import Parallel, delayed  # on use: not every import of nnbm spreads work
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    if workers is not None and workers < 1:
        raise ValueError(f"workers: at least 1 is needed, but workers = {workers}.")
    jobs = min(len(tasks), workers) if workers is not None else -1
    if not tasks:
        return
    try:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(perform)(task) for task in tasks)
    except TerminatedWorkerError as error:
        raise WorkerLost("A worker was killed: out of memory, perhaps (fewer workers need less).") from error

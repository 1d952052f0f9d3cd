"""The only file that knows how work is spread: over the cores of this machine, by joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["run_tasks"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def run_tasks(
    perform: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int | None = None
) -> Iterator[_Result]:
    """perform(task) of every task, as they finish; None: a worker per core, each with one BLAS thread."""
    from joblib import Parallel, delayed  # on use: not every import of nnbm spreads work

    if workers is not None and workers < 1:
        raise ValueError(f"workers: at least 1 is needed, but workers = {workers}.")
    jobs = min(len(tasks), workers) if workers is not None else -1
    if tasks:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(perform)(task) for task in tasks)

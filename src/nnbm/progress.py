"""One live bar for every long run: rate, share done, time left; silent when nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]

Advance = Callable[[int], None]


@contextmanager
def progress_bar(label: str, total: int, unit: str, *, enabled: bool | None = None) -> Iterator[Advance]:
    """A bar on standard error over `total` units; yields the function that moves it on (from any thread).

    enabled: None shows it only on a terminal.
    """
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{_short(speed)} {unit}/s", style="cyan")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda steps: bar.advance(task, steps)


def _ignore(steps: int) -> None:
    """Nobody watches."""


def _short(number: float) -> str:
    """1234567 -> 1.2M."""
    for unit in ("", "k", "M"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}G"

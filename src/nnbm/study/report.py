"""A study's results for people: terminal tables, figures, and one self-contained page."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from nnbm.archive import write_whole
from nnbm.page import Page
from nnbm.study.figures import errors_figure, learned_figure, ring_figure
from nnbm.study.summary import Row, Summary, summarise
from nnbm.study.trial import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["summary_table", "write_report"]

_HEAD = ("estimator", "e_b", "e_w", "paper", "over floor", "solved", "ms")
_SOUND = "the data: largest R-hat {:.3f}; errors are means ± their standard errors over trials"
_NO_ERROR = " " * len(" ± .0000")  # keeps the decimal points under one another
_LEAD = (
    "Mean absolute errors of learned parameters: e_b of the biases, e_w of all w_ii and w_ij, from N = {rows:,} rows, "
    "with standard errors over {trials} trials. The floor (Cramér-Rao) is what no unbiased estimator beats on average; "
    "a row whose name ends in 'climbed' is the paper's gradient ascent, the one without is the direct inverse."
)


@dataclass(frozen=True)
class _Picture:
    """A figure with its file name and description."""

    figure: Figure
    file_name: str
    description: str

    def save(self, folder: Path) -> None:
        write_whole(folder / self.file_name, lambda file: self.figure.savefig(file, format="png", dpi=150))


def summary_table(summary: Summary) -> Table:
    """The experiment's table for the terminal, narrow enough for 80 columns."""
    trials = f"{summary.trials} trial{'' if summary.trials == 1 else 's'}"
    title = f"{summary.experiment.title}; N = {summary.experiment.rows:,}, {trials}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    shown = (0, 1, 2, 3, 4) if summary.experiment.paper else (0, 1, 2, 4)
    for k in shown:
        table.add_column(_HEAD[k], justify="right" if k else "left", no_wrap=True)
    *estimators, floor = _cells(summary)
    for cells in estimators:
        table.add_row(*(cells[k] for k in shown))
    table.caption = _SOUND.format(summary.rhat)
    table.add_section()
    table.add_row(*(floor[k] for k in shown), style="bold")
    return table


def write_report(outcomes: Mapping[str, Sequence[Outcome]], folder: Path, command: str) -> Path:
    """Write the figures and report.html into `folder`; returns the page's path."""
    page = Page("Nonnegative Boltzmann machines: the paper's tables, reproduced")
    page.text(
        "M. Yasuda, Effective Mean-Field Inference Method for Nonnegative Boltzmann Machines, learned parameters back "
        "from data of known models. Here every method of the paper is run again, beside estimators that came later."
    )
    for name, found in outcomes.items():
        summary = summarise(name, found)
        page.heading(summary.experiment.title)
        page.text(_LEAD.format(rows=summary.experiment.rows, trials=summary.trials))
        page.table(_HEAD, list(_cells(summary)), _SOUND.format(summary.rhat))
        page.items(summary.remarks)
        for picture in _pictures(summary, found):
            page.figure(picture.figure, picture.description)
            picture.save(folder)
            _close(picture.figure)
    page.heading("How to repeat it")
    page.code(command)
    page.note(
        f"nnbm {version('nnbm')}, NumPy {version('numpy')}, numba {version('numba')}, "
        f"Python {platform.python_version()}"
    )
    path = folder / "report.html"
    page.save(path)
    return path


def _pictures(summary: Summary, outcomes: Sequence[Outcome]) -> Iterator[_Picture]:
    name, title = summary.name, summary.experiment.title
    yield _Picture(errors_figure(summary), f"{name}-errors.png", f"{title}: errors of every estimator")
    yield _Picture(
        learned_figure(summary, outcomes), f"{name}-learned.png", f"{title}: learned against true parameters"
    )
    if summary.experiment.on_ring:
        yield _Picture(ring_figure(summary, outcomes), f"{name}-ring.png", f"{title}: couplings over distance")


def _cells(summary: Summary) -> Iterator[tuple[str, ...]]:
    for row in summary.rows:
        yield _row_cells(row, summary)
    e_b, e_w = summary.floor
    yield ("floor", f"{_short(e_b)}{_NO_ERROR}", f"{_short(e_w)}{_NO_ERROR}", "", "1/1", "", "")


def _row_cells(row: Row, summary: Summary) -> tuple[str, ...]:
    over_b, over_w = row.over(summary.floor)
    return (
        row.name,
        _with_error(row.mean[0], row.error[0]),
        _with_error(row.mean[1], row.error[1]),
        "" if row.paper is None else f"{_short(row.paper[0], 3)}/{_short(row.paper[1], 3)}",
        "–" if math.isnan(over_b) else f"{over_b:.3g}/{over_w:.3g}",
        f"{row.solved} of {summary.trials}",
        f"{row.milliseconds:.1f}",
    )


def _with_error(value: float, error: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{_short(value)} ± {_short(error)}" if math.isfinite(error) else _short(value)


def _short(value: float, digits: int = 4) -> str:
    """0.07051 -> .0705: the tables are as wide as a terminal."""
    return f"{value:.{digits}f}".removeprefix("0")


def _close(figure: Figure) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)

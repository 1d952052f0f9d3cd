"""Figures of a study: errors per estimator, learned against true parameters, couplings over the ring's distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.canvas import BLUE, GREEN, GREY, ORANGE, panels, styled
from nnbm.study.experiments import ESTIMATORS
from nnbm.study.summary import Summary
from nnbm.study.trial import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["errors_figure", "learned_figure", "ring_figure"]

_SHOWN = ("SusP", "I-SusP", "pseudo-likelihood", "likelihood")
_COLORS = {"SusP": ORANGE, "I-SusP": GREEN, "pseudo-likelihood": BLUE, "likelihood": GREY}


def errors_figure(summary: Summary) -> Figure:
    """Mean e_b and e_w of every estimator with two standard errors, the paper's figures, and the floor."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    with styled():
        figure, axes = panels(1, 2, (10.5, 3.8), sharey=True)
        for k, (part, label) in enumerate(zip(axes, ("e_b: biases", "e_w: couplings and w_ii"), strict=True)):
            _errors(part, summary, k)
            part.set(title=label, xscale="log", xlabel="mean absolute error")
            part.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            part.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            part.xaxis.set_minor_formatter(NullFormatter())
        axes[0].set_yticks(np.arange(len(summary.rows)), [row.name for row in summary.rows])
        axes[0].invert_yaxis()
        axes[1].legend(loc="lower right")
        figure.suptitle(f"{summary.experiment.title}: {summary.trials} trials, N = {summary.experiment.rows:,}")
    return figure


def _errors(axes: Axes, summary: Summary, k: int) -> None:
    place = np.arange(len(summary.rows))
    mean = np.array([row.mean[k] for row in summary.rows])
    error = np.nan_to_num([row.error[k] for row in summary.rows])
    axes.errorbar(
        mean, place, xerr=2.0 * error, fmt="o", ms=5, color=BLUE, label="here, ± 2 standard errors", capsize=3
    )
    paper = np.array([row.paper[k] if row.paper else np.nan for row in summary.rows])
    if np.isfinite(paper).any():
        axes.plot(paper, place, "x", color=ORANGE, ms=7, mew=1.8, label="paper")
    axes.axvline(summary.floor[k], color=GREY, ls="--", lw=1.2, label="Cramér–Rao floor")
    for y, value in enumerate(mean):
        if not np.isfinite(value):
            axes.text(0.02, y, "no solution", va="center", color=GREY, transform=axes.get_yaxis_transform())
    axes.grid(axis="x", which="both", lw=0.4, alpha=0.4)


def learned_figure(summary: Summary, outcomes: Sequence[Outcome]) -> Figure:
    """Learned against true parameters of the first trial, estimator by estimator."""
    first = outcomes[0]
    n = (first.truth.size - first.i.size) // 2
    groups = (("b", slice(0, n), ORANGE), ("w_ii", slice(n, 2 * n), GREEN), ("w_ij", slice(2 * n, None), BLUE))
    with styled():
        figure, axes = panels(2, len(_SHOWN), (11.5, 5.6), sharex="row", sharey="row")
        for column, name in enumerate(_SHOWN):
            learned = first.learned[list(ESTIMATORS).index(name)]
            _scatter(axes[0, column], first.truth, learned, groups[:1])
            _scatter(axes[1, column], first.truth, learned, groups[1:])
            axes[0, column].set_title(name)
        axes[0, 0].set_ylabel("learned biases")
        axes[1, 0].set_ylabel("learned couplings")
        for row, parts in zip(axes, (groups[:1], groups[1:]), strict=True):
            handles = [row[0].plot([], [], ".", color=color, label=label)[0] for label, _, color in parts]
            row[-1].legend(handles=handles, loc="lower right", handletextpad=0.1)
        figure.supxlabel("true")
        figure.suptitle(f"{summary.experiment.title}: one trial")
    return figure


def _scatter(axes: Axes, truth: FloatArray, learned: FloatArray, groups: Sequence[tuple[str, slice, str]]) -> None:
    if not np.isfinite(learned).all():
        axes.text(0.5, 0.5, "no solution", ha="center", va="center", color=GREY, transform=axes.transAxes)
        return
    every = np.concatenate([part for _, where, _ in groups for part in (truth[where], learned[where])])
    # equal truths would fall on one line
    width = 0.015 * float(np.ptp(every))
    rng = np.random.default_rng(0)
    for _, where, color in groups:
        x = truth[where] + rng.uniform(-width, width, truth[where].size)
        axes.plot(x, learned[where], ".", ms=4, alpha=0.6, color=color)
    axes.plot((every.min(), every.max()), (every.min(), every.max()), color=GREY, lw=1)


def ring_figure(summary: Summary, outcomes: Sequence[Outcome]) -> Figure:
    """w_ij as a function of the distance |i - j| on the ring: mean over pairs and trials, band of one sd of a pair."""
    first = outcomes[0]
    n = (first.truth.size - first.i.size) // 2
    apart = np.abs(first.i - first.j)
    distance = np.minimum(apart, n - apart)
    with styled():
        figure, axes = panels(1, len(_SHOWN), (11.5, 3.2), sharey=True)
        for part, name in zip(axes, _SHOWN, strict=True):
            k = list(ESTIMATORS).index(name)
            learned = np.array([outcome.learned[k, 2 * n :] for outcome in outcomes])
            _ring(part, distance, first.truth[2 * n :], learned[np.isfinite(learned[:, 0])], _COLORS[name])
            part.set(title=name, xlabel="distance on the ring")
        axes[0].set_ylabel("$w_{ij}$")
        figure.suptitle(f"{summary.experiment.title}: couplings over distance, {summary.trials} trials")
    return figure


def _ring(axes: Axes, distance: Any, truth: FloatArray, learned: FloatArray, color: str) -> None:
    places = np.unique(distance)
    if len(learned):
        by_place = [learned[:, distance == place] for place in places]
        mean, sd = (np.array([f(values) for values in by_place]) for f in (np.mean, np.std))
        axes.fill_between(places, mean - sd, mean + sd, color=color, alpha=0.2, lw=0, label="± sd of a pair")
        axes.plot(places, mean, color=color, lw=2, label="learned, mean")
    axes.plot(places, [truth[distance == place].mean() for place in places], "k--", lw=1, label="true")
    axes.legend(fontsize=8)

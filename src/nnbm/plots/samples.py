"""Draws at a glance: means, correlations, the energy's trace, mixing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.canvas import BLUE, ORANGE, panels, styled
from nnbm.model import NNBM
from nnbm.sampling.diagnostics import FEWEST_DRAWS, RHAT_LIMIT, ess, rhat
from nnbm.sampling.result import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["samples_figure"]

_MOST_IN_MATRIX = 400


def samples_figure(model: NNBM, samples: Samples) -> Figure:
    """Means with their spread, the covariance (of up to 400 variables), the energy's trace and R-hat."""
    with styled():
        figure, axes = panels(2, 2, (10.5, 7.5))
        _means(axes[0, 0], model, samples)
        _covariance(figure, axes[0, 1], samples)
        _energy_trace(axes[1, 0], model, samples)
        _mixing(axes[1, 1], samples)
        figure.suptitle(f"{samples.draws.shape[0]} chains x {samples.draws.shape[1]} draws of {samples.n} variables")
    return figure


def _means(axes: Axes, model: NNBM, samples: Samples) -> None:
    place, sd = np.arange(samples.n), np.sqrt(samples.variance)
    below, above = np.maximum(samples.mean - sd, model.lower), np.minimum(samples.mean + sd, model.upper)
    axes.fill_between(place, below, above, color=BLUE, alpha=0.2, label="± sd", step="mid")
    axes.step(place, samples.mean, where="mid", color=BLUE, label="mean")
    axes.set(title="Means", xlabel="variable", ylabel=r"$\langle x_i \rangle$")
    zero = 0.0 if (model.lower == 0.0).any() else samples.mean[0]  # elsewhere 0 is no place of interest
    bottom, top = min(zero, float(below.min())), max(zero, float(above.max()))
    axes.set_ylim(bottom, top + 0.25 * (top - bottom))  # room for the legend
    if 0 < len(samples.names) <= 20:
        axes.set_xticks(place, samples.names, rotation=60, ha="right", parse_math=False)
        axes.set_xlabel("")
    axes.legend(loc="upper left", ncols=2)


def _covariance(figure: Figure, axes: Axes, samples: Samples) -> None:
    first = samples.draws[:, :, :_MOST_IN_MATRIX].reshape(-1, min(samples.n, _MOST_IN_MATRIX))
    correlation = _correlation(first)
    np.fill_diagonal(correlation, 0.0)
    bound = max(float(np.abs(correlation).max()), 1e-3)
    image = axes.imshow(correlation, cmap="RdBu_r", vmin=-bound, vmax=bound, interpolation="nearest")
    figure.colorbar(image, ax=axes, shrink=0.85)
    cut = f" (first {_MOST_IN_MATRIX})" if samples.n > _MOST_IN_MATRIX else ""
    axes.set(title=f"Correlations{cut}", xlabel="variable", ylabel="variable")


def _correlation(draws: FloatArray) -> FloatArray:
    """(n, n) correlations of draws (count, n); 0 where a variable never varies, as in a single draw."""
    centred = draws - draws.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    unit = centred / np.where(size > 0, size, 1.0)  # so that no square leaves the floats
    norm = np.sqrt(np.square(unit).sum(axis=0))
    unit /= np.where(norm > 0, norm, 1.0)
    return unit.T @ unit


def _energy_trace(axes: Axes, model: NNBM, samples: Samples) -> None:
    for chain in samples.draws:
        step = max(1, chain.shape[0] // 1000)
        axes.plot(np.arange(0, chain.shape[0], step), model.energy(chain[::step]), lw=0.7, alpha=0.8)
    axes.set(title="Energy along each chain", xlabel="draw", ylabel="E(x)")


def _mixing(axes: Axes, samples: Samples) -> None:
    axes.set(title="Mixing, one dot a variable", xlabel="effective sample size (bulk)", ylabel="R-hat")
    if samples.draws.shape[1] < FEWEST_DRAWS:
        axes.text(0.5, 0.5, "too few draws to tell", ha="center", va="center", transform=axes.transAxes)
        return
    shown = samples.draws[:, :, :_MOST_IN_MATRIX]
    axes.scatter(ess(shown), rhat(shown), s=14, color=BLUE, alpha=0.7)
    axes.axhline(RHAT_LIMIT, color=ORANGE, lw=1, ls="--", label=f"{RHAT_LIMIT}: not agreed above")
    axes.legend()

"""How chains mix: traces, ranks and autocorrelations, one row a variable, those that mix worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from nnbm.arrays import FloatArray, IntArray
from nnbm.canvas import BLUE, GREEN, GREY, ORANGE, panels, styled
from nnbm.sampling.diagnostics import FEWEST_DRAWS, MOST_SUSPECTS, ess, rhat, suspects
from nnbm.sampling.result import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["chains_figure"]

_COLOURS = (BLUE, ORANGE, GREEN, GREY)
_ROWS, _BINS, _POINTS = 4, 20, 1000


def chains_figure(samples: Samples, variables: Sequence[int] | None = None) -> Figure:
    """Trace, rank histograms (Vehtari et al. 2021) and autocorrelation of the variables, one colour a chain.

    variables: None takes the four of highest R-hat. Ranks that are not level and traces that stay apart are of chains
    that do not agree.
    """
    if samples.draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"samples: at least {FEWEST_DRAWS} draws per chain are needed to see how they mix, but there are "
            f"{samples.draws.shape[1]}. Draw more."
        )
    places = _worst(samples) if variables is None else np.asarray(list(variables), np.int64)
    with styled():
        figure, axes = panels(places.size, 3, (11.0, 0.8 + 2.1 * places.size), squeeze=False)
        for row, k in zip(axes, places, strict=True):
            _trace(row[0], samples, int(k))
            _ranks(row[1], samples.draws[:, :, k])
            _autocorrelation(row[2], samples.draws[:, :, k])
        for axis, title in zip(axes[0], ("Trace", "Ranks among all chains", "Autocorrelation"), strict=True):
            axis.set_title(title)
        for axis, label in zip(axes[-1], ("draw", "rank", "draws apart"), strict=True):
            axis.set_xlabel(label)
        figure.suptitle(f"{samples.draws.shape[0]} chains x {samples.draws.shape[1]} draws, {samples.method}")
    return figure


def _worst(samples: Samples) -> IntArray:
    among = suspects(samples.draws, MOST_SUSPECTS)
    found = rhat(samples.draws[:, :, among])
    order = np.argsort(np.where(np.isnan(found), np.inf, found))[::-1]
    return among[order[:_ROWS]]


def _trace(axis: Axes, samples: Samples, k: int) -> None:
    draws = samples.draws[:, :, k]
    step = max(1, draws.shape[1] // _POINTS)
    for chain, colour in zip(draws, _cycled(draws), strict=True):
        axis.plot(np.arange(0, chain.size, step), chain[::step], lw=0.6, alpha=0.8, color=colour)
    axis.set_ylabel(samples.label(k), parse_math=False)


def _ranks(axis: Axes, draws: FloatArray) -> None:
    """(chains, draws): how often each chain's draws stand where among all; level if the chains agree."""
    ranks = rankdata(draws).reshape(draws.shape)
    edges = np.linspace(0.0, draws.size, _BINS + 1)
    for chain, colour in zip(ranks, _cycled(draws), strict=True):
        counts = np.histogram(chain, edges)[0]
        axis.stairs(counts, edges, baseline=None, color=colour, lw=1.2)
    axis.axhline(draws.shape[1] / _BINS, color=GREY, lw=0.8, ls="--")
    axis.set_ylim(bottom=0.0)


def _autocorrelation(axis: Axes, draws: FloatArray) -> None:
    """(chains, draws): each chain's, three times as far as to where none can be told from noise."""
    furthest = min(draws.shape[1] - 1, max(20, draws.shape[1] // 10))
    curves = np.array([_autocorrelations(chain, furthest) for chain in draws])
    noise = 1.96 / np.sqrt(draws.shape[1])
    lost = np.flatnonzero(np.abs(curves).max(axis=0) < noise)
    most = furthest if lost.size == 0 else min(furthest, max(20, 3 * int(lost[0])))
    for curve, colour in zip(curves, _cycled(draws), strict=True):
        axis.plot(curve[: most + 1], lw=1.0, color=colour)
    axis.axhspan(-noise, noise, color=GREY, alpha=0.2, lw=0)
    variable = draws[:, :, None]
    size, agreement = float(ess(variable)[0]), float(rhat(variable)[0])
    axis.text(
        0.97, 0.92, f"ESS {size:,.0f}, R-hat {agreement:.3f}", ha="right", va="top", transform=axis.transAxes
    )  # fmt: skip


def _autocorrelations(chain: FloatArray, most: int) -> FloatArray:
    """(most + 1,) by the Fourier transform; 0 of a chain that never varies."""
    apart = chain - chain.mean()
    spectrum = np.fft.rfft(apart, 2 * chain.size)
    products = np.fft.irfft(spectrum * spectrum.conj())[: most + 1]
    return products / products[0] if products[0] > 0.0 else np.zeros(most + 1)


def _cycled(draws: FloatArray) -> list[str]:
    return [_COLOURS[k % len(_COLOURS)] for k in range(draws.shape[0])]

"""Figures. matplotlib is imported on first use, and nothing is shown or saved behind the caller's back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.canvas import BLUE, GREY, ORANGE, panels, styled
from nnbm.model import NNBM
from nnbm.sampling.diagnostics import FEWEST_DRAWS, RHAT_LIMIT, ess, mean_error, rhat
from nnbm.sampling.result import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nnbm.estimator import NonnegativeBoltzmann  # scikit-learn takes a while to import

__all__ = ["couplings_figure", "samples_figure", "tuning_figure"]

_MOST_INTERVALS = 25

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


def tuning_figure(model: NNBM, samples: Samples) -> Figure:
    """The orientation-tuning network: activity over draws, bumps turned to 0°, response means, covariances."""
    with styled():
        figure, axes = panels(2, 2, (10.5, 7.5))
        _raster(figure, axes[0, 0], samples)
        _aligned_bump(axes[0, 1], samples)
        _tuning_means(axes[1, 0], samples)
        _ring_covariance(axes[1, 1], model, samples)
        figure.suptitle(f"Orientation tuning, {samples.n} neurons: what the rectified Gaussian network does")
    return figure


def couplings_figure(fitted: NonnegativeBoltzmann) -> Figure:
    """What was learned: the couplings as a matrix, and the clearest of them with 95% intervals, strongest first."""
    with styled():
        figure, axes = panels(1, 2, (11.0, 5.0))
        _coupling_matrix(figure, axes[0], fitted)
        _intervals(axes[1], fitted)
        figure.suptitle(f"Couplings by {fitted.method_}: above 0 suppresses, below 0 excites")
    return figure


def _coupling_matrix(figure: Figure, axes: Axes, fitted: NonnegativeBoltzmann) -> None:
    part = fitted.coupling_[:_MOST_IN_MATRIX, :_MOST_IN_MATRIX]
    w = np.array(part) if isinstance(part, np.ndarray) else part.toarray()
    np.fill_diagonal(w, 0.0)
    bound = max(float(np.abs(w).max()), 1e-12)
    image = axes.imshow(w, cmap="RdBu_r", vmin=-bound, vmax=bound, interpolation="nearest")
    figure.colorbar(image, ax=axes, shrink=0.85)
    names = fitted.model_.names
    if 0 < len(names) <= 40:
        axes.set_xticks(np.arange(len(names)), names, rotation=60, ha="right", parse_math=False)
        axes.set_yticks(np.arange(len(names)), names, parse_math=False)
    axes.set(title="$w_{ij}$, diagonal left out")


def _intervals(axes: Axes, fitted: NonnegativeBoltzmann) -> None:
    (i, j), names = fitted.edges_, fitted.get_feature_names_out()
    shown, w, errors = fitted.clearest(_MOST_INTERVALS)
    place = np.arange(shown.size)
    axes.errorbar(w, place, xerr=None if errors is None else 1.96 * errors, fmt="o", ms=4, color=BLUE, capsize=2)
    axes.axvline(0.0, color=GREY, lw=1)
    axes.set_yticks(place, [f"{names[i[k]]} – {names[j[k]]}" for k in shown], parse_math=False)
    axes.invert_yaxis()
    what = "no standard errors" if errors is None else "95% intervals"
    axes.set(title=f"The clearest {shown.size} of {i.size}, {what}", xlabel="$w_{ij}$")


def _means(axes: Axes, model: NNBM, samples: Samples) -> None:
    place, sd = np.arange(samples.n), np.sqrt(samples.variance)
    below, above = np.maximum(samples.mean - sd, model.lower), np.minimum(samples.mean + sd, model.upper)
    axes.fill_between(place, below, above, color=BLUE, alpha=0.2, label="± sd", step="mid")
    axes.step(place, samples.mean, where="mid", color=BLUE, label="mean")
    axes.set(title="Means", xlabel="variable", ylabel=r"$\langle x_i \rangle$")
    bottom, top = min(0.0, float(below.min())), max(0.0, float(above.max()))
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


def _angles(n: int) -> FloatArray:
    return np.arange(n) * 360.0 / n


def _raster(figure: Figure, axes: Axes, samples: Samples) -> None:
    """The first chain's activity, draw by draw."""
    activity = samples.draws[0, :200].T
    image = axes.imshow(
        activity, aspect="auto", origin="lower", cmap="magma", extent=(0, activity.shape[1], 0, 360),
        interpolation="nearest", vmax=float(np.quantile(activity, 0.995)),
    )  # fmt: skip
    figure.colorbar(image, ax=axes, label="activity $x_i$")
    axes.set(
        title="One chain: activity",
        xlabel="draw",
        ylabel="preferred angle (°)",
        yticks=(0, 90, 180, 270, 360),
    )


def _aligned_bump(axes: Axes, samples: Samples) -> None:
    """Each draw turned so that its population vector points to 0°: the shape that the plain mean averages out.

    Turning finds a bump in any noise, so the same is shown for neurons that were made independent by shuffling.
    """
    n = samples.n
    turned = _turned_to_zero(samples.flat)
    shuffled = _turned_to_zero(np.random.default_rng(0).permuted(samples.flat, axis=0))
    angle = _angles(n) - 360.0 * (n // 2) / n
    low, high = np.quantile(turned, (0.16, 0.84), axis=0)
    axes.fill_between(angle, low, high, color=ORANGE, alpha=0.25, lw=0, label="middle 68%")
    axes.plot(angle, turned.mean(axis=0), color=ORANGE, lw=2, label="mean")
    axes.plot(angle, shuffled.mean(axis=0), color=GREY, lw=1.2, ls="--", label="mean, were neurons independent")
    axes.set(title="The bump: draws turned to 0°", xlabel="angle from the population vector (°)", ylabel="activity")
    axes.set(xticks=(-180, -90, 0, 90, 180), ylim=(0, 1.35 * float(high.max())))
    axes.legend(loc="upper left")


def _turned_to_zero(draws: FloatArray) -> FloatArray:
    """Draws (count, n) rolled so that each one's population vector points to neuron n // 2."""
    n = draws.shape[1]
    vector = draws @ np.exp(2j * np.pi * np.arange(n) / n)
    shift = np.rint(np.angle(vector) * n / (2.0 * np.pi)).astype(int)
    return np.take_along_axis(draws, (np.arange(n) + shift[:, None] - n // 2) % n, axis=1)


def _tuning_means(axes: Axes, samples: Samples) -> None:
    """By symmetry every neuron has the same mean: what is left is Monte-Carlo error."""
    judged = samples.draws.shape[1] >= FEWEST_DRAWS
    axes.errorbar(
        _angles(samples.n),
        samples.mean,
        yerr=2.0 * mean_error(samples.draws) if judged else None,
        fmt="o",
        ms=4,
        lw=1,
        color=BLUE,
        label="mean ± 2 Monte-Carlo errors" if judged else "mean",
    )
    axes.axhline(float(samples.mean.mean()), color=GREY, lw=1, ls="--", label="average over neurons")
    axes.set(title="Means: equal by symmetry", xlabel="preferred angle (°)", ylabel=r"$\langle x_i \rangle$")
    axes.set(xticks=(0, 90, 180, 270, 360))
    axes.margins(y=0.3)
    axes.legend(loc="upper left")


def _ring_covariance(axes: Axes, model: NNBM, samples: Samples) -> None:
    """Covariance against distance on the ring, averaged over the ring, beside the coupling that causes it."""
    n = samples.n
    place = np.arange(n)
    distance = np.arange(1, n // 2 + 1)
    pairs = [samples.covariance[place, (place + d) % n] for d in distance]
    angle = distance * 360.0 / n
    means = np.array([p.mean() for p in pairs])
    axes.axhline(0.0, color=GREY, lw=0.8)
    axes.plot(angle, means, "o-", ms=4, color=BLUE, label="covariance")
    axes.set(title="Covariance follows the coupling", xlabel="difference of angles (°)", ylabel="covariance")
    axes.set(xticks=(0, 45, 90, 135, 180), xlim=(0, 184))
    other = axes.twinx()
    other.spines["right"].set_visible(True)
    weights = np.asarray(model.coupling[0, distance]) if isinstance(model.coupling, np.ndarray) else means * 0.0
    other.plot(angle, weights, color=ORANGE, lw=1.5, ls="--", label="coupling $w_{ij}$ (inverted)")
    other.invert_yaxis()
    other.set_ylabel("coupling")
    lines = axes.get_lines()[1:] + other.get_lines()
    axes.legend(lines, [str(line.get_label()) for line in lines], loc="best")

"""The orientation-tuning network: what it does, as a figure and as a film."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.canvas import BLUE, GREY, ORANGE, panels, styled
from nnbm.model import NNBM
from nnbm.sampling.diagnostics import FEWEST_DRAWS, mean_error
from nnbm.sampling.result import Samples

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bump_film", "tuning_figure"]


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


def bump_film(samples: Samples, *, chain: int = 0, frames: int = 120, interval: int = 60) -> FuncAnimation:
    """One chain's activity on the ring, draw by draw, with the angle that its population vector points to.

    frames: draws shown, one after another from the first. interval: milliseconds between them. Keep what is returned
    as long as the film runs; `film.save("bump.gif")` writes it.
    """
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation

    activity = samples.draws[chain, :frames]
    around = np.deg2rad(_angles(samples.n))
    vector = activity @ np.exp(1j * around)
    with styled():
        figure, axis = plt.subplots(figsize=(4.6, 4.6), subplot_kw={"projection": "polar"}, layout="constrained")
    top = 1.05 * float(activity.max())
    bars = axis.bar(around, activity[0], width=0.85 * 2.0 * np.pi / samples.n, color=BLUE, alpha=0.85)
    (hand,) = axis.plot([0.0, np.angle(vector[0])], [0.0, top], color=ORANGE, lw=2)
    axis.set(ylim=(0.0, top), yticklabels=[])
    axis.set_title("draw 1")
    figure.canvas.draw()
    figure.set_layout_engine("none")  # placed anew for every title, the circle would tremble

    def show(frame: int) -> list[Artist]:
        for bar, height in zip(bars, activity[frame], strict=True):
            bar.set_height(height)
        hand.set_xdata([np.angle(vector[frame])] * 2)
        axis.set_title(f"draw {frame + 1}")
        return [*bars, hand]

    return FuncAnimation(figure, show, frames=len(activity), interval=interval)

"""What was learned, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnbm.canvas import BLUE, GREY, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nnbm.estimator import NonnegativeBoltzmann  # scikit-learn takes a while to import

__all__ = ["couplings_figure"]

_MOST_INTERVALS = 25
_MOST_IN_MATRIX = 400


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

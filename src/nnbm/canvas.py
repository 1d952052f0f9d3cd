"""The look of every figure: colours, style, panels. matplotlib is imported on first use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "panels", "styled"]

BLUE, ORANGE, GREEN, GREY = "#2f5d8a", "#d9772b", "#4f8a4c", "#8a8f98"
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "font.size": 9.5,
    "legend.frameon": False,
}


def styled() -> AbstractContextManager[None]:
    """The style, for a `with` around drawing."""
    import matplotlib as mpl  # a third of a second of import, needed only for figures

    return mpl.rc_context(_STYLE)


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure of `size` inches and its axes (rows, columns)."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)

"""Figures. matplotlib is imported on first use, and nothing is shown or saved behind the caller's back."""

from nnbm.plots.chains import chains_figure
from nnbm.plots.couplings import couplings_figure
from nnbm.plots.samples import samples_figure
from nnbm.plots.tuning import bump_film, tuning_figure

__all__ = ["bump_film", "chains_figure", "couplings_figure", "samples_figure", "tuning_figure"]

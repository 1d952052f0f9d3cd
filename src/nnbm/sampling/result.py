"""What `sample` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.sampling import diagnostics
from nnbm.sampling.diagnostics import EssKind, LeastEss

__all__ = ["Samples"]


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Draws from a model and how they came about.

    draws: (chains, draws, n). names: (n,) or empty. Every kept draw lies `thin` sweeps after the one before;
    `burn_in` sweeps went unrecorded; `interrupted` means that Ctrl-C came before all were drawn. info: what the sampler
    tells of its chains by name, (chains, ...) each, such as acceptance rates; Gibbs tells nothing. detail: what else
    there is to say.

    >>> from nnbm import gallery, sample
    >>> s = sample(gallery.square_grid(2, 2), draws=1000, chains=2, seed=0)
    >>> s.mean.shape, s.covariance.shape, bool(s.rhat().max() < 1.01)
    ((4,), (4, 4), True)
    """

    draws: FloatArray
    names: tuple[str, ...]
    method: str
    burn_in: int
    thin: int
    seconds: float
    interrupted: bool
    info: Mapping[str, FloatArray] = field(default_factory=dict)
    detail: str = ""

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.draws.shape[2]

    @property
    def flat(self) -> FloatArray:
        """(chains * draws, n): the draws of all chains under one another."""
        return self.draws.reshape(-1, self.n)

    @cached_property
    def mean(self) -> FloatArray:
        """(n,) <x_i>."""
        return self.draws.mean(axis=(0, 1))

    @cached_property
    def variance(self) -> FloatArray:
        """(n,) <x_i²> - <x_i>²."""
        return np.square(self.draws - self.mean).mean(axis=(0, 1))

    @cached_property
    def covariance(self) -> FloatArray:
        """(n, n) <x_i x_j> - <x_i><x_j>."""
        centred = self.flat - self.mean
        return centred.T @ centred / centred.shape[0]

    @cached_property
    def mean_error(self) -> FloatArray:
        """(n,) Monte-Carlo standard error of `mean`."""
        return diagnostics.mean_error(self.draws)

    def ess(self, kind: EssKind = "bulk") -> FloatArray:
        """(n,) effective number of independent draws: "bulk" (default), "tail" or "mean"."""
        return diagnostics.ess(self.draws, kind)

    def least_ess(self) -> LeastEss:
        """The smallest effective number of draws of x, x² and the linear functional that moves slowest."""
        return diagnostics.least_ess(self.draws)

    def rhat(self) -> FloatArray:
        """(n,) rank-normalised split R-hat: above 1.01 the chains have not agreed."""
        return diagnostics.rhat(self.draws)

    def label(self, site: int) -> str:
        """The variable's name, or x[site]."""
        return self.names[site] if self.names else f"x[{site}]"

    def to_arviz(self) -> Any:
        """The draws as ArviZ's DataTree, group `posterior`, variable `x`; needs `pip install nnbm[arviz]`."""
        try:
            from arviz_base import from_dict  # optional
        except ImportError as error:
            raise ImportError("to_arviz needs the package arviz-base: pip install nnbm[arviz]") from error
        labels = list(self.names) if self.names else list(range(self.n))
        return from_dict({"posterior": {"x": self.draws}}, coords={"variable": labels}, dims={"x": ["variable"]})

    def __repr__(self) -> str:
        chains, draws, n = self.draws.shape
        cut = ", interrupted" if self.interrupted else ""
        return f"Samples({chains} chains x {draws} draws x {n} variables, {self.method}, {self.seconds:.2g} s{cut})"

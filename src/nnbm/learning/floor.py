"""The Cramér-Rao floor: no unbiased estimator from N rows has smaller errors than F^{-1}/N (EQ 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.learning.edges import EdgeSet
from nnbm.learning.frame import Frame
from nnbm.learning.parameters import Parameters
from nnbm.learning.rows import Rows
from nnbm.learning.statistics import (
    covariance_over,
    errors_seen_back,
    inverse_covariance,
    require_dense,
    sufficient_statistics,
)
from nnbm.model import NNBM
from nnbm.sampling.sample import sample
from nnbm.stream import Seed

__all__ = ["Floor", "fisher_information", "floor", "floor_from_draws"]

_MEAN_ABSOLUTE = np.sqrt(2.0 / np.pi)  # of a normal error, in standard deviations
_CHAINS = 8


@dataclass(frozen=True, eq=False)
class Floor:
    """errors: the smallest possible standard errors at `rows` rows."""

    rows: float
    errors: Parameters

    @property
    def e_b(self) -> float:
        """Mean absolute error of the biases at the floor."""
        return float(_MEAN_ABSOLUTE * self.errors.bias.mean())

    @property
    def e_w(self) -> float:
        """Mean absolute error of all w_ii and w_ij at the floor."""
        return float(_MEAN_ABSOLUTE * np.concatenate([self.errors.diagonal, self.errors.couplings]).mean())


def fisher_information(draws: FloatArray, edges: EdgeSet) -> FloatArray:
    """(parameters, parameters) Cov(T) over draws (count, n) of the model."""
    return covariance_over(Rows.of_draws(draws), lambda batch: sufficient_statistics(batch, edges))


def floor(
    model: NNBM, rows: float, *, edges: EdgeSet | None = None, draws: int = 40_000, thin: int = 20, seed: Seed = 0
) -> Floor:
    """The floor at the model's own parameters, from that many draws, `thin` sweeps apart.

    edges: the free couplings; None takes those that are not zero.

    >>> from nnbm import gallery
    >>> found = floor(gallery.square_grid(6, 6), 10_000)
    >>> abs(found.e_b - 0.070) < 0.003, abs(found.e_w - 0.052) < 0.002
    (True, True)
    """
    samples = sample(model, -(-draws // _CHAINS), chains=_CHAINS, method="gibbs", thin=thin, seed=seed, progress=False)
    return floor_from_draws(samples.flat, rows, edges or EdgeSet(model.n, *model.edges))


def floor_from_draws(draws: FloatArray, rows: float, edges: EdgeSet) -> Floor:
    """The floor at `rows` rows of the model that these draws (count, n) are from."""
    require_dense(edges, "floor")
    frame = Frame(draws.mean(axis=0), draws.std(axis=0))
    near = (draws - frame.centre) / frame.scale
    # what inverting a noisy matrix adds falls as 1/draws: extrapolated away from the whole and its halves
    whole, *halves = (_covariance(part, edges) for part in (near, near[0::2], near[1::2]))
    errors = errors_seen_back(edges, (2.0 * whole - 0.5 * (halves[0] + halves[1])) / rows, frame)
    if not (errors.vector > 0.0).all():
        raise ValueError(
            f"draws: {draws.shape[0]} do not determine the Fisher information of {edges.parameters} parameters. "
            "Ask for more."
        )
    return Floor(rows, errors)


def _covariance(draws: FloatArray, edges: EdgeSet) -> FloatArray:
    """(parameters, parameters) F^{-1}, NaN where these draws do not determine it."""
    found = inverse_covariance(fisher_information(draws, edges), draws.shape[0])
    return np.full((edges.parameters,) * 2, np.nan) if found is None else found

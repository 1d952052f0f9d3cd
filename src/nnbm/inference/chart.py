"""Coordinates without a unit for the sites' (l, r), in which a solver may take any step.

A variable that lacks an end needs r > 0: its coordinate is ln(r / w_ii). Between two ends r has any sign, and what it
has to be compared with is the curvature a = 12/width² at which the walls begin to matter: r = a (e^y - e^-y). Both are
r = a (e^y - fold e^-y), fold = 0 and a = w_ii in the first case. The coordinate of l is l / field.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel

_WIDEST = 1e100  # beyond it walls do not matter to any r, and squares would leave the floats

__all__ = ["Chart", "r_at", "r_coordinate"]


@dataclass(frozen=True)
class Chart:
    """field, curvature, fold: (n,) each."""

    field: FloatArray
    curvature: FloatArray
    fold: FloatArray

    @classmethod
    def between(cls, diagonal: FloatArray, lower: FloatArray | float, upper: FloatArray | float) -> Chart:
        """For sites of curvature w_ii (n,) between these ends."""
        width = np.subtract(upper, lower)
        fold = np.isfinite(width) + np.zeros_like(diagonal)
        compared = np.minimum(width, _WIDEST)
        curvature = np.where(fold, 12.0 / (compared * compared), diagonal)
        return cls(np.sqrt(np.maximum(diagonal, curvature)), curvature, fold)

    def state(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2n,) the coordinates of l and r."""
        return np.concatenate([l / self.field, self.coordinates(r)])

    def coordinates(self, r: FloatArray) -> FloatArray:
        """(n,) those of r alone."""
        return _coordinates(r, self.curvature, self.fold)

    def curvatures(self, coordinates: FloatArray) -> FloatArray:
        """(n,) the r at these coordinates."""
        return _curvatures(coordinates, self.curvature, self.fold)

    def natural(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L and r, (n,) each, of a state."""
        return _natural(state, self.field, self.curvature, self.fold)


@kernel(error_model="numpy")
def r_coordinate(r: float, curvature: float, fold: float) -> float:
    """The y with r = a (e^y - fold e^-y); -inf where r <= 0 and there is none."""
    if fold > 0.0:
        return math.asinh(0.5 * r / curvature)
    return math.log(r / curvature) if r > 0.0 else -np.inf


@kernel()
def r_at(y: float, curvature: float, fold: float) -> float:
    """The r at a coordinate."""
    return curvature * (2.0 * math.sinh(y) if fold > 0.0 else math.exp(y))


@kernel()
def _coordinates(r: FloatArray, curvature: FloatArray, fold: FloatArray) -> FloatArray:
    found = np.empty(r.size)
    for i in range(r.size):
        found[i] = r_coordinate(r[i], curvature[i], fold[i])
    return found


@kernel()
def _curvatures(coordinates: FloatArray, curvature: FloatArray, fold: FloatArray) -> FloatArray:
    found = np.empty(coordinates.size)
    for i in range(coordinates.size):
        found[i] = r_at(coordinates[i], curvature[i], fold[i])
    return found


@kernel()
def _natural(
    state: FloatArray, field: FloatArray, curvature: FloatArray, fold: FloatArray
) -> tuple[FloatArray, FloatArray]:
    n = field.size
    return state[:n] * field, _curvatures(state[n:], curvature, fold)

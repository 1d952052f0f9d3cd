"""The elementary moves: sites, in a given order, are drawn exactly from their conditionals q(x_i; l_i, w_ii) (EQ 1), or
moved within them (`draw.moves`).

The sum over neighbours is taken afresh at every update, so nothing drifts. Setting x_i = 0 first lets the sum run
over the whole row, diagonal included, without a branch and without a cancellation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.draw import moved, moved_excess
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.stream import StreamArray, load, store

__all__ = ["Conditionals", "Indices", "conditionals_of", "update_dense", "update_sparse"]

Indices = NDArray[np.int32]

_FAR_END = 1e3  # in units of 1/sqrt(w_ii): beyond it digits would be lost where the mass is elsewhere


class Conditionals(NamedTuple):
    """What the conditionals take besides the neighbours, (n,) each.

    one_wall: where there is a lower end, not very far from 0, and no upper one. There the draw is lower + scale times
    an excess, scale = 1/sqrt(w_ii).
    """

    bias: FloatArray
    diagonal: FloatArray
    lower: FloatArray
    upper: FloatArray
    one_wall: NDArray[np.bool_]
    scale: FloatArray


def conditionals_of(model: NNBM) -> Conditionals:
    """A model's."""
    diagonal, open_above = model.diagonal, np.isposinf(model.upper)
    scale = 1.0 / np.sqrt(np.where(open_above, diagonal, 1.0))
    one_wall = open_above & (np.abs(model.lower) < _FAR_END * scale)
    return Conditionals(model.bias, diagonal, model.lower, model.upper, one_wall, scale)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _row_dot(row: FloatArray, x: FloatArray) -> float:
    total = 0.0
    for j in range(x.size):
        total += row[j] * x[j]
    return total


@kernel(inline="always")
def update_dense(
    move: int, sites: Indices, coupling: FloatArray, given: Conditionals, x: FloatArray, row: StreamArray
) -> None:
    """Move x (n,) in place at `sites`, one after another; row (4,) is the random stream."""
    # numba counts references of every array in a tuple that is handed on: hence one by one, and outside the loop
    bias, diagonal, lower, upper, one_wall, scale = given
    stream = load(row)
    for i in sites:
        before = x[i]
        x[i] = 0.0
        field = _row_dot(coupling[i], x)
        if one_wall[i]:
            wall, over = (field - bias[i] + diagonal[i] * lower[i]) * scale[i], (before - lower[i]) / scale[i]
            over, stream = moved_excess(move, over, wall, stream)
            x[i] = lower[i] + over * scale[i]
        else:
            x[i], stream = moved(move, before, bias[i] - field, diagonal[i], lower[i], upper[i], stream)
    store(stream, row)


@kernel(inline="always")
def update_sparse(
    move: int, sites: Indices, pointers: Indices, neighbours: Indices, weights: FloatArray, given: Conditionals,
    x: FloatArray, row: StreamArray,
) -> None:  # fmt: skip
    """The same over the rows of a CSR matrix (pointers, neighbours, weights)."""
    bias, diagonal, lower, upper, one_wall, scale = given
    stream = load(row)
    for i in sites:
        before = x[i]
        x[i] = 0.0
        field = 0.0
        for e in range(pointers[i], pointers[i + 1]):
            field += weights[e] * x[neighbours[e]]
        if one_wall[i]:
            wall, over = (field - bias[i] + diagonal[i] * lower[i]) * scale[i], (before - lower[i]) / scale[i]
            over, stream = moved_excess(move, over, wall, stream)
            x[i] = lower[i] + over * scale[i]
        else:
            x[i], stream = moved(move, before, bias[i] - field, diagonal[i], lower[i], upper[i], stream)
    store(stream, row)

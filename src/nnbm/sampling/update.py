"""The elementary move: draw sites, in a given order, exactly from their conditionals q(x_i; l_i, w_ii) (EQ 1).

The sum over neighbours is taken afresh at every update, so nothing drifts. Setting x_i = 0 first lets the sum run
over the whole row, diagonal included, without a branch and without a cancellation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.draw import excess
from nnbm.kernels import kernel
from nnbm.stream import StreamArray, load, store

__all__ = ["Indices", "update_dense", "update_sparse"]

Indices = NDArray[np.int32]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _row_dot(row: FloatArray, x: FloatArray) -> float:
    total = 0.0
    for j in range(x.size):
        total += row[j] * x[j]
    return total


@kernel()
def update_dense(
    sites: Indices, coupling: FloatArray, bias: FloatArray, scale: FloatArray, x: FloatArray, row: StreamArray
) -> None:
    """Update x (n,) in place at `sites`, one after another; scale_i = 1/sqrt(w_ii), row (4,) is the random stream."""
    stream = load(row)
    for i in sites:
        x[i] = 0.0
        field = _row_dot(coupling[i], x)
        over, stream = excess((field - bias[i]) * scale[i], stream)
        x[i] = over * scale[i]
    store(stream, row)


@kernel()
def update_sparse(
    sites: Indices, pointers: Indices, neighbours: Indices, weights: FloatArray, bias: FloatArray,
    scale: FloatArray, x: FloatArray, row: StreamArray,
) -> None:  # fmt: skip
    """The same over the rows of a CSR matrix (pointers, neighbours, weights)."""
    stream = load(row)
    for i in sites:
        x[i] = 0.0
        field = 0.0
        for e in range(pointers[i], pointers[i + 1]):
            field += weights[e] * x[neighbours[e]]
        over, stream = excess((field - bias[i]) * scale[i], stream)
        x[i] = over * scale[i]
    store(stream, row)

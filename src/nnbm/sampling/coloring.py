"""Graph colouring: sites of one colour are independent given the rest, so they can be updated at the same time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nnbm.arrays import IntArray
from nnbm.kernels import kernel

__all__ = ["greedy_colors"]


@kernel()
def _greedy(pointers: NDArray[np.int32], neighbours: NDArray[np.int32], colors: NDArray[np.int32]) -> int:
    """First-fit colouring in the order of the labels; returns the number of colours."""
    n = colors.size
    degree = 0
    for i in range(n):
        degree = max(degree, pointers[i + 1] - pointers[i])
    taken_by = np.full(degree + 2, -1, np.int64)
    count = 0
    for i in range(n):
        for k in range(pointers[i], pointers[i + 1]):
            j = neighbours[k]
            if j < i:
                taken_by[colors[j]] = i
        color = 0
        while taken_by[color] == i:
            color += 1
        colors[i] = color
        count = max(count, color + 1)
    return count


@kernel()
def _sorted(colors: NDArray[np.int32], starts: NDArray[np.int64], order: NDArray[np.int32]) -> None:
    """Fill the order of the sites by colour and, within one, by label, and where each colour starts (colours + 1,)."""
    starts[:] = 0
    for color in colors:
        starts[color + 1] += 1
    for color in range(starts.size - 1):
        starts[color + 1] += starts[color]
    place = starts.copy()
    for i in range(colors.size):
        order[place[colors[i]]] = i
        place[colors[i]] += 1


def greedy_colors(coupling: sparse.csr_array) -> tuple[NDArray[np.int32], IntArray]:
    """The sites ordered by colour, (n,), and where each colour starts in that order, (colours + 1,).

    At most one colour more than the largest degree; a grid gets two.

    >>> from nnbm.gallery import square_grid
    >>> order, starts = greedy_colors(square_grid(4, 4).coupling)
    >>> starts
    array([ 0,  8, 16])
    """
    colors = np.zeros(coupling.shape[0], np.int32)
    count = _greedy(coupling.indptr, coupling.indices, colors)
    order, starts = np.empty_like(colors), np.empty(count + 1, np.int64)
    _sorted(colors, starts, order)
    return order, starts

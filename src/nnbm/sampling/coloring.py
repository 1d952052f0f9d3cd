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
    taken_by = np.full(n + 1, -1, np.int64)
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


def greedy_colors(coupling: sparse.csr_array) -> tuple[IntArray, IntArray]:
    """The sites ordered by colour, (n,), and where each colour starts in that order, (colours + 1,).

    At most one colour more than the largest degree; a grid gets two.

    >>> from nnbm.gallery import square_grid
    >>> order, starts = greedy_colors(square_grid(4, 4).coupling)
    >>> starts
    array([ 0,  8, 16])
    """
    colors = np.zeros(coupling.shape[0], np.int32)
    count = _greedy(coupling.indptr, coupling.indices, colors)
    order = np.argsort(colors, kind="stable")
    return order, np.searchsorted(colors[order], np.arange(count + 1))

"""Colourings are proper and thrifty."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nnbm.gallery import random_graph, square_grid
from nnbm.sampling.coloring import greedy_colors


@given(st.integers(2, 60), st.floats(0, 1), st.integers(0, 1000))
def test_no_neighbours_share_a_color(n, density, seed):
    model = random_graph(n, degree=density * (n - 1), seed=seed)
    order, starts = greedy_colors(model.coupling)
    assert np.sort(order).tolist() == list(range(n))
    color = np.empty(n, int)
    color[order] = np.searchsorted(starts, np.arange(n), side="right") - 1
    i, j = model.edges
    assert (color[i] != color[j]).all()
    degrees = np.bincount(np.concatenate([i, j]), minlength=n)
    assert starts.size - 1 <= degrees.max() + 1


def test_grids_need_two():
    assert greedy_colors(square_grid(31, 40).coupling)[1].size == 3
    assert greedy_colors(square_grid(1, 1).coupling)[1].size == 2

"""Edge sets: their order, their sums against dense matrices, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbm.learning.edges import EdgeSet, checked_edges
from nnbm.learning.labels import label, listed


def random_edges(rng, n):
    i, j = np.triu_indices(n, k=1)
    chosen = rng.random(i.size) < 0.5
    return EdgeSet(n, i[chosen], j[chosen])


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_neighbours_own_edges_and_sums_against_the_dense_matrix(n, seed):
    rng = np.random.default_rng(seed)
    e = random_edges(rng, n)
    values, diagonal, x = rng.normal(size=e.size), rng.normal(size=n), rng.normal(size=n)
    dense = e.symmetric(values, diagonal)
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_array_equal(dense[e.i, e.j], values)
    np.testing.assert_array_equal(np.diagonal(dense), diagonal)
    off = e.symmetric(values)
    assert np.count_nonzero(off) == 2 * e.size
    np.testing.assert_allclose(e.sums(values), off.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(e.pulls(values, x), off @ x, atol=1e-12)
    assert len(e.neighbours) == len(e.own_edges) == n
    for node in range(n):
        np.testing.assert_array_equal(off[node, e.neighbours[node]], values[e.own_edges[node]])
        assert set(e.neighbours[node]) == set(np.flatnonzero(off[node]))
    assert e.is_complete == (e.size == n * (n - 1) // 2)
    assert e.parameters == 2 * n + e.size


def test_none_is_every_pair():
    e = checked_edges(None, 4)
    assert list(zip(e.i, e.j, strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert e.is_complete
    assert checked_edges(None, 1).size == 0


@given(st.integers(2, 9), st.integers(0, 10**6))
def test_each_edge_counts_once_in_either_direction_and_any_order(n, seed):
    rng = np.random.default_rng(seed)
    e = random_edges(rng, n)
    again = rng.permutation(np.concatenate([np.arange(e.size), rng.integers(0, max(e.size, 1), 3)[: e.size]]))
    i, j = e.i[again], e.j[again]
    turned = rng.random(again.size) < 0.5
    found = checked_edges((np.where(turned, j, i), np.where(turned, i, j)), n)
    np.testing.assert_array_equal(found.i, e.i)
    np.testing.assert_array_equal(found.j, e.j)
    assert found.i.dtype == found.j.dtype == np.int64


def test_no_edges_at_all_are_allowed():
    e = checked_edges(([], []), 3)
    assert (e.size, e.parameters, e.is_complete) == (0, 6, False)
    np.testing.assert_array_equal(e.sums(np.empty(0)), np.zeros(3))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (([0, 1], [1, 3]), r"numbered 0 to 2, but edge 1 is \(1, 3\)"),
        (([-1], [1]), r"edge 0 is \(-1, 1\)"),
        (([0, 2], [1, 2]), r"an edge joins two variables, but edge 1 is \(2, 2\)\. Drop it"),
        (([0, 1], [1]), "equally long"),
        (([0.0], [1.0]), "whole numbers; they are float64"),
        (([True], [False]), "they are bool"),
        ((["a"], ["b"]), "whole numbers"),
        ((np.array([[0]]), np.array([[1]])), "equally long rows"),
        ((0, 1), "equally long rows"),
        ([[0, 1], [1, 2], [0, 2]], "two equally long arrays"),
        (7, "two equally long arrays"),
        ("learn", "two equally long arrays"),
    ],
)
def test_bad_edges_are_refused_with_the_first_bad_one(edges, message):
    with pytest.raises(ValueError, match=rf"^edges: .*{message}"):
        checked_edges(edges, 3)


def test_variables_are_called_by_name_where_they_have_one():
    assert label(("a", "b"), 1) == "'b'"
    assert label((), 1) == label(None, 1) == "column 1"
    assert listed(("a", "b"), np.array([1, 0])) == "'b', 'a'"
    assert listed(None, range(6)).endswith("column 5")
    assert listed(None, range(9)).endswith("column 5 and 3 more")

"""Orders of elimination: permutations of everything, that fill in little."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrices import NAMES, matrix
from nnbm.linalg.dissection import dissect
from nnbm.linalg.fronts import fronts
from nnbm.linalg.graph import compressed
from nnbm.linalg.ordering import elimination_order
from nnbm.linalg.tree import column_counts, elimination_tree, postorder


def graph_of(name, n, seed=0):
    given_matrix = matrix(name, n, seed)
    return compressed(given_matrix.indptr.astype(np.int64), given_matrix.indices.astype(np.int32))[0]


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(1, 400), st.integers(0, 10**6))
def test_every_vertex_once(name, n, seed):
    graph = graph_of(name, n, seed)
    assert np.sort(dissect(graph)).tolist() == list(range(graph.n))
    assert np.sort(elimination_order(graph)).tolist() == list(range(graph.n))


def test_no_vertex_and_no_edge():
    empty = compressed(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))[0]
    assert dissect(empty).size == elimination_order(empty).size == 0
    alone = compressed(np.zeros(201, dtype=np.int64), np.zeros(0, dtype=np.int32))[0]
    assert np.sort(dissect(alone)).tolist() == np.sort(elimination_order(alone)).tolist() == list(range(200))


def filled(graph, order):
    """Entries of the factor, without the zeros that merged fronts store."""
    graph = graph.renumbered(order)
    post = postorder(elimination_tree(graph.starts, graph.neighbours), np.arange(graph.n))
    graph = graph.renumbered(post)
    parent = elimination_tree(graph.starts, graph.neighbours)
    return column_counts(graph.starts, graph.neighbours, parent, graph.weights).sum()


@pytest.mark.parametrize(("name", "share"), [("chain", 3.0), ("tree", 2.5), ("arrow", 2.0)])
def test_what_has_small_separators_hardly_fills_in(name, share):
    graph = graph_of(name, 5000)  # no order has fewer than 2 n - 1 entries
    assert 2 * graph.n - 1 <= filled(graph, dissect(graph)) <= share * graph.n
    assert filled(graph, elimination_order(graph)) <= share * graph.n


def test_the_grids_fill_grows_like_n_log_n():
    """George's own dissection of a grid of side q has 31/4 q² log2 q entries; label order needs q³."""
    for side in (30, 60, 120):
        graph = graph_of("grid", side * side)
        assert filled(graph, dissect(graph)) <= 4 * side**2 * np.log2(side)
        assert filled(graph, dissect(graph)) < 0.5 * filled(graph, np.arange(graph.n))


def test_the_same_graph_has_the_same_order():
    graph = graph_of("random", 2000)
    np.testing.assert_array_equal(dissect(graph), dissect(graph))


def test_metis_is_used_where_it_is():
    pytest.importorskip("pymetis")
    graph = graph_of("grid", 3600)
    order = elimination_order(graph)
    assert not np.array_equal(order, dissect(graph))
    ours, metis = fronts(graph, dissect(graph))[0], fronts(graph, order)[0]
    assert metis.factor_flops < 1.1 * ours.factor_flops


def test_metis_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    graph = graph_of("grid", 900)
    np.testing.assert_array_equal(elimination_order(graph), dissect(graph))

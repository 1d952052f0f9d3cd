"""Symbolic analysis against elimination by the book: sets of neighbours, one vertex at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrices import NAMES, matrix
from nnbm.linalg.fronts import fronts
from nnbm.linalg.graph import Graph, compressed, first_asymmetric
from nnbm.linalg.tree import column_counts, elimination_tree, postorder


def graph_of(given_matrix):
    """The graph of a matrix, its columns not merged."""
    found = given_matrix.tocoo()
    off = found.row != found.col
    order = np.lexsort((found.col[off], found.row[off]))
    starts = np.concatenate([[0], np.cumsum(np.bincount(found.row[off], minlength=found.shape[0]))])
    return Graph(
        starts.astype(np.int64), found.col[off][order].astype(np.int32), np.ones(found.shape[0], dtype=np.int64)
    )


def eliminated(graph):
    """The later neighbours of each vertex at its turn."""
    near = [set(graph.neighbours[graph.starts[i] : graph.starts[i + 1]].tolist()) for i in range(graph.n)]
    for i in range(graph.n):
        near[i] = {j for j in near[i] if j > i}
        for j in near[i]:
            near[j] |= near[i] - {j}
    return near


@given(st.sampled_from(NAMES), st.integers(1, 40), st.integers(0, 10**6))
def test_tree_and_counts(name, n, seed):
    graph = graph_of(matrix(name, n, seed))
    rng = np.random.default_rng(seed)
    graph = graph.renumbered(rng.permutation(graph.n))
    parent = elimination_tree(graph.starts, graph.neighbours)
    near = eliminated(graph)
    assert parent.tolist() == [min(below, default=-1) for below in near]
    post = postorder(parent, np.arange(graph.n))
    graph = graph.renumbered(post)
    weights = rng.integers(1, 4, graph.n)
    parent = elimination_tree(graph.starts, graph.neighbours)
    near = eliminated(graph)
    assert ((parent > np.arange(graph.n)) | (parent == -1)).all()
    expected = [weights[i] + sum(weights[j] for j in near[i]) for i in range(graph.n)]
    assert column_counts(graph.starts, graph.neighbours, parent, weights).tolist() == expected


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(1, 60), st.integers(0, 10**6))
def test_fronts_hold_the_factor_and_little_more(name, n, seed):
    graph = graph_of(matrix(name, n, seed))
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, graph.n)
    graph = Graph(graph.starts, graph.neighbours, weights)
    found, order = fronts(graph, rng.permutation(graph.n))
    assert sorted(order) == list(range(graph.n))
    near = eliminated(graph.renumbered(order))
    begins = np.concatenate([[0], np.cumsum(weights[order])])
    assert found.n == begins[-1]
    total = 0
    for f in range(found.parent.size):
        own = range(found.columns[f], found.columns[f + 1])
        border = found.border[found.starts[f] : found.starts[f + 1]].tolist()
        assert border == sorted(set(border))
        rows = set(own) | set(border)
        members = [v for v in range(graph.n) if begins[v] in own]
        needed = {row for v in members for u in near[v] for row in range(begins[u], begins[u + 1])}
        assert needed - set(own) == set(border)  # merged fronts hold nothing that none of their columns needs
        total += len(own) * len(rows)
        parent = found.parent[f]
        assert (parent == -1) == (not border)
        if border:
            above = set(range(found.columns[parent], found.columns[parent + 1]))
            above |= set(found.border[found.starts[parent] : found.starts[parent + 1]].tolist())
            assert parent > f
            assert set(border) <= above
    assert found.entries == total


@pytest.mark.parametrize("name", NAMES)
def test_rooms_are_enough_and_not_too_much(name):
    found, _ = fronts(
        graph_of(matrix(name, 200, 0)), np.random.default_rng(0).permutation(matrix(name, 200, 0).shape[0])
    )
    border, columns = np.diff(found.starts), np.diff(found.columns)
    stack, most = [], 0
    for f in range(found.parent.size):
        own = border[f] ** 2
        most = max(most, sum(size for size, _ in stack) + own)
        while stack and stack[-1][1] == f:
            stack.pop()
        stack.append((own, found.parent[f]))
    assert found.update_room == most
    path = np.zeros(found.parent.size, dtype=np.int64)
    for f in range(found.parent.size - 1, -1, -1):
        path[f] = (border[f] + columns[f]) ** 2 + (path[found.parent[f]] if found.parent[f] >= 0 else 0)
    assert found.inverse_room == path.max()


@settings(max_examples=40)
@given(st.sampled_from(NAMES), st.integers(1, 30), st.integers(0, 10**6))
def test_equal_columns_become_one_vertex(name, n, seed):
    given_matrix = matrix(name, n, seed)
    n = given_matrix.shape[0]
    columns = [
        frozenset(given_matrix.indices[a:b].tolist())
        for a, b in zip(given_matrix.indptr, given_matrix.indptr[1:], strict=False)
    ]
    graph, vertex = compressed(given_matrix.indptr.astype(np.int64), given_matrix.indices.astype(np.int32))
    for i in range(n):
        for j in range(n):
            assert (vertex[i] == vertex[j]) == (columns[i] == columns[j])
    assert graph.weights.tolist() == np.bincount(vertex).tolist()
    near = {(int(vertex[i]), int(vertex[j])) for i in range(n) for j in columns[i] if vertex[i] != vertex[j]}
    owner = np.repeat(np.arange(graph.n), np.diff(graph.starts))
    assert set(zip(owner.tolist(), graph.neighbours.tolist(), strict=True)) == near
    assert owner.size == len(near)


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_a_missing_mirror_image_is_found(n, seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((n, n)) < 0.5
    dense |= dense.T
    i, j = rng.integers(0, n, 2)
    dense[i, j] ^= True
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)
    entry = first_asymmetric(indptr, columns.astype(np.int32))
    if i == j:
        assert entry == -1
    else:
        assert {int(rows[entry]), int(columns[entry])} == {i, j}

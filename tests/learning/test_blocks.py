"""Node-wise blocks: the whole they are pieces of, both ways of solving, and what has no solution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnbm.learning import blocks as module
from nnbm.learning.blocks import Blocks, weighted_gram
from nnbm.learning.edges import EdgeSet


def random_blocks(seed, n=5, rank=None):
    """Positive definite where rank is None, else every node's form has that rank."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, k=1)
    chosen = rng.random(i.size) < 0.6
    e = EdgeSet(n, i[chosen], j[chosen])
    sizes = [near.size + 2 for near in e.neighbours]
    roots = [rng.normal(size=(size, size + 2 if rank is None else rank)) for size in sizes]
    gradient = tuple(rng.normal(size=size) for size in sizes)
    return Blocks(e, float(rng.integers(1, 50)), rng.normal(), gradient, tuple(a @ a.T for a in roots))


def as_function(blocks, theta):
    """The sum of quadratic forms, written out: node i sees b_i, w_ii and the w_ij of its neighbours, in their order."""
    e, n = blocks.edges, blocks.edges.n
    bias, dense = theta[:n], e.symmetric(theta[2 * n :], theta[n : 2 * n])
    value = 0.0
    for node, near in enumerate(e.neighbours):
        own = np.concatenate([[bias[node], dense[node, node]], dense[node, near]])
        value += blocks.gradient[node] @ own + 0.5 * own @ blocks.curvature[node] @ own
    return value


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_the_whole_is_the_sum_of_what_nodes_say(seed):
    found = random_blocks(seed)
    theta = np.random.default_rng(seed + 1).normal(size=found.edges.parameters)
    expected = found.total_gradient() @ theta + 0.5 * theta @ found.matrix() @ theta
    assert as_function(found, theta) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found.sparse_matrix().toarray(), found.matrix(), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.matrix(), found.matrix().T)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]))
@settings(max_examples=30)
def test_both_ways_of_solving_agree(seed, ridge):
    found = random_blocks(seed)
    right = np.random.default_rng(seed + 1).normal(size=found.edges.parameters)
    penalty = np.full(right.size, ridge)
    penalty[: 2 * found.edges.n] = 0.0
    expected = np.linalg.solve(found.matrix() + np.diag(penalty), right)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.solve(right, penalty), expected, rtol=1e-6, atol=1e-7 * size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE_PARAMETERS", 0)
        np.testing.assert_allclose(found.solve(right, penalty), expected, rtol=1e-4, atol=1e-5 * size)


def test_merged_blocks_are_averages_by_rows():
    one, two = random_blocks(0), random_blocks(0)
    two = Blocks(one.edges, 3.0 * one.total, two.value + 1.0, tuple(2 * g for g in two.gradient), two.curvature)
    both = one.merged(two)
    assert both.total == 4.0 * one.total
    assert both.value == pytest.approx(one.value + 0.75)
    np.testing.assert_allclose(both.total_gradient(), 1.75 * one.total_gradient(), rtol=1e-12)
    np.testing.assert_allclose(both.matrix(), one.matrix(), rtol=1e-12)


@pytest.mark.parametrize("limit", [0, 5000])
def test_a_parameter_that_nothing_speaks_of_has_no_solution(limit, monkeypatch):
    monkeypatch.setattr(module, "DENSE_PARAMETERS", limit)
    found = random_blocks(0)
    curvature = list(found.curvature)
    curvature[0] = curvature[0].copy()
    curvature[0][1] = curvature[0][:, 1] = 0.0  # w_00
    silent = Blocks(found.edges, found.total, found.value, found.gradient, tuple(curvature))
    assert silent.solve(silent.total_gradient()) is None


def test_a_singular_form_has_no_solution_but_a_penalised_one():
    found = random_blocks(0, rank=1)
    assert found.solve(found.total_gradient()) is None
    assert found.solve(found.total_gradient(), 1e-3) is not None


@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 10**6))
def test_weighted_gram_is_the_weighted_sum_of_squares(k, rows, seed):
    rng = np.random.default_rng(seed)
    design, weights = rng.normal(size=(k, rows)), rng.uniform(0.0, 2.0, rows)
    found = weighted_gram(design, np.sqrt(weights))
    np.testing.assert_allclose(found, (design * weights) @ design.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)

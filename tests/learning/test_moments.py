"""Moments in one pass: against NumPy, merged in any order, stable far from zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import model_of, own_edges, table_of

from nnbm.learning.edges import EdgeSet
from nnbm.learning.moments import moments
from nnbm.learning.rows import Rows
from nnbm.learning.statistics import mean_statistics, sufficient_statistics


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_numpy(weighted):
    table = table_of("grid")
    weights = np.random.default_rng(0).integers(0, 3, table.shape[0]) if weighted else None
    found = moments(Rows.checked(table, weights=weights), EdgeSet.complete(9))
    np.testing.assert_allclose(found.mean, np.average(table, axis=0, weights=weights), rtol=1e-13)
    covariance = np.cov(table.T, bias=True, aweights=weights)
    np.testing.assert_allclose(found.dense_covariance, covariance, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.second_moment, np.average(table**2, axis=0, weights=weights), rtol=1e-12)


def test_edges_alone_give_what_all_pairs_give():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    whole, part = moments(rows, EdgeSet.complete(9)), moments(rows, e)
    np.testing.assert_allclose(part.covariance, whole.dense_covariance[e.i, e.j], rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(part.variance, whole.variance, rtol=1e-12)
    outside = part.edges.symmetric(np.ones(e.size), 1.0) == 0
    assert (part.dense_covariance[outside] == 0).all()


@pytest.mark.parametrize("complete", [True, False])
@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_parts_merge_to_the_whole_wherever_they_are_cut(complete, seed):
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(2, 6)), int(rng.integers(6, 60))
    table = rng.gamma(rng.uniform(0.2, 5.0), size=(count, n)) * 10.0 ** rng.uniform(-3, 3)
    weights = rng.uniform(0.1, 3.0, count)
    e = EdgeSet.complete(n) if complete else EdgeSet(n, np.arange(n - 1), np.arange(1, n))
    whole = moments(Rows.checked(table, weights=weights), e)
    cuts = np.sort(rng.choice(np.arange(1, count), 3, replace=False))
    parts = [
        moments(Rows(np.ascontiguousarray(x.T), w), e)
        for x, w in zip(np.split(table, cuts), np.split(weights, cuts), strict=True)
    ]
    size = whole.variance.max()
    forward = parts[0].merged(parts[1]).merged(parts[2]).merged(parts[3])
    paired = parts[3].merged(parts[0]).merged(parts[2].merged(parts[1]))
    for name in ("mean", "variance", "covariance"):
        for merged in (forward, paired):
            np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-10, atol=1e-12 * size)
    assert forward.total == pytest.approx(weights.sum())


def test_a_table_longer_than_a_batch_is_merged_to_the_same():
    rng = np.random.default_rng(0)
    table = np.sort(rng.gamma(2.0, size=(40_000, 2)), axis=0)  # sorted, so that batches differ as much as can be
    found = moments(Rows.checked(table), EdgeSet.complete(2))
    np.testing.assert_allclose(found.dense_covariance, np.cov(table.T, bias=True), rtol=1e-11)


@pytest.mark.parametrize("complete", [True, False])
def test_nothing_cancels_far_from_zero(complete):
    """Mean 1e8, standard deviation 1: <x²> - <x>² would lose every digit."""
    rng = np.random.default_rng(0)
    small = np.round(rng.normal(size=(40_000, 3)) * 2.0**20) / 2.0**20  # so that adding 2^27 is exact
    shift = 2.0**27
    e = EdgeSet.complete(3) if complete else EdgeSet(3, np.array([0, 1]), np.array([1, 2]))
    far = moments(Rows.checked(small + shift), e)
    np.testing.assert_allclose(far.mean - shift, small.mean(axis=0), atol=1e-6)
    expected = np.cov(small.T, bias=True)
    # a mean is known to 3e-8, and enters as a product with the distance of two batches' means, some hundredths
    np.testing.assert_allclose(far.variance, np.diagonal(expected), atol=1e-8)
    np.testing.assert_allclose(far.covariance, expected[e.i, e.j], atol=1e-8)


def test_the_units_of_a_column_are_its_own():
    table, unit = table_of("trio"), np.array([1e-6, 1.0, 1e9])
    e = EdgeSet.complete(3)
    here, there = moments(Rows.checked(table), e), moments(Rows.checked(table * unit), e)
    np.testing.assert_allclose(there.covariance, here.covariance * unit[e.i] * unit[e.j], rtol=1e-9)
    np.testing.assert_allclose(there.variance, here.variance * unit**2, rtol=1e-11)


@pytest.mark.parametrize("complete", [True, False])
def test_mean_statistics_are_the_means_of_the_statistics(complete):
    rows = Rows.checked(table_of("grid"), weights=np.random.default_rng(0).uniform(0.0, 2.0, 4000))
    e = EdgeSet.complete(9) if complete else own_edges(model_of("grid"))
    expected = rows.average(sufficient_statistics(rows, e))
    np.testing.assert_allclose(mean_statistics(moments(rows, e)), expected, rtol=1e-12)

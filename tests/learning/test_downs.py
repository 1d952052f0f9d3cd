"""Downs in one shot: EQ 10 read literally, and its own inference as the check."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_tables import model_of, own_edges, table_of

import nnbm
from nnbm.learning.downs import downs
from nnbm.learning.edges import EdgeSet
from nnbm.learning.moments import Moments, moments
from nnbm.learning.rows import Rows


def as_written(m, second, covariance):
    """EQ 10, sum by sum, on all pairs."""
    n = m.size
    a, b = np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        for j in range(n):
            if i == j:
                a[i, i] = (2.0 * m[i] ** 2 - second[i]) / (2.0 * m[i] ** 4)
            else:
                a[i, j] = -covariance[i, j] / (m[i] ** 2 * m[j] ** 2)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        b[i] = -1.0 / m[i] + 2.0 * a[i, i] * m[i] + sum(a[i, j] * m[j] for j in others)
        b[i] -= m[i] * sum(a[i, j] ** 2 * m[j] ** 2 for j in others) + 2.0 * a[i, i] ** 2 * m[i] ** 3
    return b, a


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_downs_is_the_formula(n, seed):
    rng = np.random.default_rng(seed)
    data = moments(Rows.checked(rng.gamma(1.2, size=(50, n))), EdgeSet.complete(n))
    found = downs(data).parameters
    bias, coupling = as_written(data.mean, data.second_moment, data.dense_covariance)
    np.testing.assert_allclose(found.dense, coupling, rtol=1e-10)
    np.testing.assert_allclose(found.bias, bias, rtol=1e-9, atol=1e-9 * np.abs(bias).max())


def test_pairs_that_are_no_edges_count_as_uncorrelated():
    data = moments(Rows.checked(table_of("grid")), own_edges(model_of("grid")))
    bias, coupling = as_written(data.mean, data.second_moment, data.dense_covariance)
    found = downs(data).parameters
    np.testing.assert_allclose(found.dense, coupling, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(found.bias, bias, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
def test_infer_by_downs_finds_the_moments_again():
    """Close to exponentials (b far below zero) the expansion converges; there the round trip closes."""
    model = nnbm.gallery.square_grid(3, 3, coupling=0.4, bias=(-4.0, -3.0))
    table = nnbm.sample(model, 2500, chains=4, thin=3, seed=0, threads=1, progress=False).flat
    e = own_edges(model)
    data = moments(Rows.checked(table), e)
    scaled = downs(data).parameters
    if (scaled.diagonal <= 0).any():  # more spread than an exponential: no model, so give the moments a little less
        data = Moments(e, 1.0, data.mean, np.minimum(data.variance, 0.97 * data.mean**2), data.covariance)
        scaled = downs(data).parameters
    found = nnbm.infer(scaled.model(), "downs")
    np.testing.assert_allclose(found.mean, data.mean, rtol=1e-7)
    np.testing.assert_allclose(found.second_moment, data.second_moment, rtol=1e-7)
    np.testing.assert_allclose(found.covariance[e.i, e.j], data.covariance, atol=1e-8)


def test_units_do_not_matter():
    table, unit = table_of("trio"), np.array([1e-5, 1.0, 1e4])
    e = EdgeSet.complete(3)
    plain = downs(moments(Rows.checked(table), e)).parameters.in_units(unit)
    found = downs(moments(Rows.checked(table * unit), e)).parameters
    np.testing.assert_allclose(found.vector, plain.vector, rtol=1e-8)


def test_without_couplings_near_an_exponential_it_is_right_to_second_order():
    """<x> = m exactly at small r m²: the error of b falls as the third power of A_ii m²."""
    from nnbm.site import HALF_LINE

    errors = []
    for r in (0.02, 0.01):
        site = HALF_LINE.moments([-1.0], [r])
        e = EdgeSet.complete(1)
        found = downs(Moments(e, 1.0, site.mean, site.variance, np.empty(0))).parameters
        errors.append(abs(found.bias[0] + 1.0))
    assert errors[0] < 1e-2
    assert errors[1] < errors[0] / 3.0


def test_a_negative_diagonal_is_returned_and_has_no_model():
    data = moments(Rows.checked(np.random.default_rng(0).gamma(0.4, size=(500, 2))), EdgeSet.complete(2))
    found = downs(data).parameters
    assert (found.diagonal < 0).all()
    with pytest.raises(ValueError, match="the fitted w_ii of 'p', 'q' is not positive"):
        found.model(["p", "q"])

"""Statistics and their covariances, and the factor of matrices in mixed units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import model_of, own_edges, table_of, truth

from nnbm.learning.edges import EdgeSet
from nnbm.learning.parameters import Parameters
from nnbm.learning.rows import Rows
from nnbm.learning.statistics import (
    covariance_over,
    inverse_covariance,
    require_dense,
    sufficient_statistics,
)
from nnbm.linalg.dense import balanced


def test_statistics_are_the_slopes_of_the_log_density():
    model, e = model_of("grid"), own_edges(model_of("grid"))
    table = table_of("grid")[:20]
    found = sufficient_statistics(Rows.of_draws(table), e)
    np.testing.assert_allclose(truth(model).vector @ found, -model.energy(table), rtol=1e-11, atol=1e-12)
    for k in range(e.parameters):  # linear in theta, so a unit step is the derivative
        unit = Parameters.from_vector(e, np.eye(e.parameters)[k])
        slope = unit.bias @ table.T - 0.5 * np.einsum("ri,ij,rj->r", table, unit.dense, table)
        np.testing.assert_allclose(found[k], slope, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_over_rows_is_that_of_numpy(weighted):
    table = table_of("grid")
    weights = np.random.default_rng(0).integers(0, 4, table.shape[0]) if weighted else None
    rows = Rows.checked(table, weights=weights)
    found = covariance_over(rows, lambda batch: np.concatenate([batch.columns, batch.columns[:2] ** 2]))
    values = np.concatenate([table.T, table.T[:2] ** 2])
    np.testing.assert_allclose(found, np.cov(values, bias=True, aweights=weights), rtol=1e-10, atol=1e-13)


def test_covariance_over_many_batches_is_that_of_numpy_whatever_their_order():
    rng = np.random.default_rng(0)
    table = np.sort(rng.gamma(2.0, size=(30_000, 2)), axis=0)
    found = covariance_over(Rows.checked(table), lambda batch: batch.columns)
    np.testing.assert_allclose(found, np.cov(table.T, bias=True), rtol=1e-9)


@pytest.mark.parametrize(("k", "count"), [(3, 12), (8, 30), (8, 300)])
def test_the_inverse_of_a_sampled_covariance_is_unbiased(k, count):
    """Wishart draws; the bound is four standard errors of the mean, and the plain inverse fails it."""
    rng = np.random.default_rng(k)
    root = rng.normal(size=(k, k)) + 2.0 * np.eye(k)
    truth_ = np.linalg.inv(root @ root.T)
    plain, corrected = [], []
    for _ in range(2000):
        x = root @ rng.normal(size=(k, count))
        covariance = np.cov(x, bias=True) * count / (count - 1)
        plain.append(np.linalg.inv(covariance).diagonal())
        corrected.append(inverse_covariance(covariance, count).diagonal())
    error = np.std(corrected, axis=0, ddof=1) / np.sqrt(2000)
    assert (np.abs(np.mean(corrected, axis=0) - truth_.diagonal()) < 4.0 * error).all()
    assert (np.mean(plain, axis=0) - truth_.diagonal() > 4.0 * error).all()


def test_too_few_draws_have_no_inverse_covariance():
    assert inverse_covariance(np.eye(5), 7) is None
    assert inverse_covariance(np.eye(5), 8) is not None
    assert inverse_covariance(np.ones((5, 5)), 100) is None


def test_matrices_of_too_many_parameters_are_refused():
    require_dense(EdgeSet.complete(90), "floor")
    with pytest.raises(ValueError, match=r"^floor: matrices of 5150 x 5150 .* at most 5000"):
        require_dense(EdgeSet.complete(100), "floor")


@given(st.integers(1, 10), st.integers(0, 10**6))
@settings(max_examples=40)
def test_balanced_solves_and_inverts_in_any_units(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n))
    tame = a @ a.T + 0.5 * np.eye(n)
    unit = 10.0 ** rng.uniform(-60, 60, n)
    found = balanced(tame * unit * unit[:, None])
    right = rng.normal(size=n)
    np.testing.assert_allclose(found.solve(right * unit) * unit, np.linalg.solve(tame, right), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.inverse() * unit * unit[:, None], np.linalg.inv(tame), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 1e9], [1e9, 1e18]],
        [[1.0, 1.0 - 1e-14], [1.0 - 1e-14, 1.0]],
        [[0.0]],
        [[-1.0]],
        [[np.nan]],
        [[1.0, np.nan], [np.nan, 1.0]],
    ],
)
def test_what_is_singular_up_to_rounding_has_no_balanced_factor(matrix):
    assert balanced(np.array(matrix)) is None

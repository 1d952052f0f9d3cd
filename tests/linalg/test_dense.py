"""Factors of dense matrices against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbm.linalg.dense import factor, solve_in_place


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_every_verb_against_numpy(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n))
    matrix = a @ a.T + 0.5 * np.eye(n)
    kept = matrix.copy()
    found = factor(matrix)
    assert found is not None
    assert (matrix == kept).all()
    right = rng.normal(size=(n, 3))
    np.testing.assert_allclose(found.solve(right), np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.solve(right[:, 0]), np.linalg.solve(matrix, right[:, 0]), rtol=1e-8, atol=1e-10)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found.inverse(), inverse, rtol=1e-8, atol=1e-10)
    assert (found.inverse() == found.inverse().T).all()
    np.testing.assert_allclose(found.inverse_diagonal(), np.diagonal(inverse), rtol=1e-8)
    np.testing.assert_allclose(found.matrix(), matrix, rtol=1e-10, atol=1e-12)
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "matrix", [[[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[-1.0]], [[np.nan]], [[1.0, np.nan], [np.nan, 1.0]]]
)
def test_what_is_not_positive_definite_has_no_factor(matrix):
    assert factor(np.array(matrix)) is None


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])
def test_blocks_and_both_ways_to_an_inverse(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    matrix = a @ a.T / n + np.eye(n)
    found = factor(matrix.copy(order="F"), overwrite=True)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found.inverse(), inverse, rtol=1e-9, atol=1e-12)
    assert (found.inverse() == found.inverse().T).all()
    np.testing.assert_allclose(np.tril(found.half_inverse()), np.tril(inverse), rtol=1e-9, atol=1e-12)
    right = a[0].copy()
    solve_in_place(found.lower, right)
    np.testing.assert_allclose(right, inverse @ a[0], rtol=1e-9, atol=1e-12)


def test_a_factor_takes_the_memory_it_is_given():
    matrix = np.asfortranarray(np.eye(3) + 0.1)
    assert np.shares_memory(factor(matrix, overwrite=True).lower, matrix)

"""NNBM: energies, conditionals, edges, identity, and every kind of bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nnbm
from nnbm import NNBM, NotCopositive
from nnbm.copositive import Verdict

W = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.5], [0.0, -0.5, 1.5]])
B = np.array([0.5, -0.2, 0.1])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_array])
def test_kinds_agree(kind):
    model = NNBM(B, kind(W))
    x = np.random.default_rng(0).exponential(size=(4, 5, 3))
    expected = np.array([[-B @ p + 0.5 * p @ W @ p for p in row] for row in x])
    np.testing.assert_allclose(model.energy(x), expected, rtol=1e-13)
    assert model.energy(x[0, 0]).shape == ()
    assert sparse.issparse(model.coupling) == sparse.issparse(kind(W))
    assert [a.tolist() for a in model.edges] == [[0, 1], [1, 2]]
    assert model.edge_couplings.tolist() == [0.3, -0.5]
    assert model.diagonal.tolist() == [1.0, 2.0, 1.5]
    np.testing.assert_array_equal(model.graph.toarray(), W - np.diag(np.diag(W)))
    assert model.coupling.dtype == np.float64


def test_a_sparse_model_may_have_no_edges():
    model = NNBM([0.5, 1.0], sparse.csr_array(np.diag([1.0, 2.0])))
    assert model.edge_couplings.shape == (0,)
    assert model.graph.nnz == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_conditional_is_the_energy_along_one_axis(seed, n):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n))
    model = NNBM(rng.normal(size=n), a @ a.T + 0.1 * np.eye(n))
    x, i = rng.exponential(size=(3, n)), int(rng.integers(n))
    l, r = model.conditional(i, x)
    moved = x.copy()
    moved[:, i] = rng.exponential(size=3)
    along = lambda t: -l * t + 0.5 * r * t**2  # noqa: E731
    np.testing.assert_allclose(
        model.energy(moved) - model.energy(x), along(moved[:, i]) - along(x[:, i]), rtol=1e-9, atol=1e-9
    )
    assert model.conditional(i - n, x)[1] == r
    assert model.conditional(i, x[0])[0] == pytest.approx(l[0])


def test_permutation_and_scaling_of_the_energy():
    model, x = NNBM(B, W), np.array([0.3, 1.2, 0.7])
    order = [2, 0, 1]
    assert NNBM(B[order], W[np.ix_(order, order)]).energy(x[order]) == pytest.approx(model.energy(x))
    assert NNBM(B / 3, W / 9).energy(3 * x) == pytest.approx(model.energy(x))


def test_a_model_cannot_change():
    bias, coupling = B.copy(), W.copy()
    model = NNBM(bias, coupling)
    bias[0], coupling[0, 0] = 9.0, 9.0
    assert model == NNBM(B, W)
    with pytest.raises(ValueError, match="read-only"):
        model.bias[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.coupling[0, 0] = 1.0
    with pytest.raises(AttributeError):
        model.bias = B
    sparse_input = sparse.csr_array(W)
    model = NNBM(B, sparse_input)
    sparse_input.data[:] = 7.0
    assert model == NNBM(B, sparse.csr_array(W))
    with pytest.raises(ValueError, match="read-only"):
        model.coupling.data[0] = 2.0


def test_equality_and_hash():
    a, same = NNBM(B, W), NNBM(B.tolist(), W.tolist())
    assert a == same
    assert hash(a) == hash(same)
    assert a != NNBM(B + 1e-9, W)
    assert a != NNBM(B, sparse.csr_array(W))  # the same law, but not the same kind
    assert NNBM(B, sparse.csr_array(W)) == NNBM(B, sparse.coo_array(W))
    assert NNBM(B, sparse.csr_array(W)) != NNBM(B, sparse.csr_array(W + np.eye(3)))
    assert a != NNBM(B, W, names=["a", "b", "c"])
    assert a != "NNBM"


def test_repr_tells_size_edges_and_definiteness():
    assert repr(NNBM(B, W)) == "NNBM(n=3, edges=2, dense, positive definite)"
    assert repr(nnbm.gallery.square_grid(6, 6)) == "NNBM(n=36, edges=60, sparse, copositive)"


def test_rounding_asymmetry_is_repaired_not_refused():
    rng = np.random.default_rng(0)
    uneven = W * (1 + 1e-15 * rng.normal(size=W.shape))
    for kind in (np.array, sparse.csr_array):
        model = NNBM(B, kind(uneven))
        dense = model.coupling.toarray() if sparse.issparse(model.coupling) else model.coupling
        assert (dense == dense.T).all()


def test_explicit_zeros_and_duplicates_of_sparse_input():
    doubled = sparse.coo_array(([0.5, 0.5, 1.0, 0.0, 0.0], ([0, 0, 1, 0, 1], [0, 0, 1, 1, 0])), shape=(2, 2))
    model = NNBM([0.0, 0.0], doubled)
    assert model.edges[0].size == 0
    assert model.coupling.toarray().tolist() == [[1, 0], [0, 1]]


def bad(i, j, value):
    w = W.copy()
    w[i, j] = value
    return w


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("coupling", "error", "message"),
    [
        (bad(0, 1, np.nan), ValueError, r"every value must be finite, but coupling.*= nan"),
        (bad(2, 2, np.inf), ValueError, r"every value must be finite, but coupling.*= inf"),
        (
            bad(0, 1, 0.31),
            ValueError,
            r"symmetric, but coupling\[0, 1\] = 0.31 and coupling\[1, 0\] = 0.3\. Use",
        ),
        (bad(0, 2, 0.1), ValueError, r"symmetric, but coupling\[0, 2\] = 0.1 and coupling\[2, 0\] = 0.0"),
        (bad(1, 1, 0.0), ValueError, r"every w_ii must be positive, but diagonal of coupling\[1\] = 0.0"),
        (bad(1, 1, -2.0), ValueError, r"every w_ii must be positive.*= -2.0.*Z is infinite"),
        (W[:2], ValueError, r"a square matrix \(n, n\) is needed; its shape is \(2, 3\)"),
        (W * 1j, TypeError, "real numbers are needed, but its dtype is complex128. Drop the imaginary"),
        (np.eye(4), ValueError, "same n variables, but bias has 3 and coupling 4"),
    ],
)
def test_bad_coupling_is_named(kind, coupling, error, message):
    with pytest.raises(error, match=message):
        NNBM(B, kind(coupling))


@pytest.mark.parametrize(
    ("bias", "error", "message"),
    [
        ([0.0, np.nan, 0.0], ValueError, r"bias: every value must be finite, but bias\[1\] = nan"),
        ([[0.0, 0.0, 0.0]], ValueError, r"bias: one number per variable, shape \(n,\)"),
        (["a", "b", "c"], TypeError, "bias: real numbers are needed"),
        (np.array([1, 2, None]), TypeError, "bias: real numbers are needed, but its dtype is object"),
        ([], ValueError, r"its shape is \(0,\)"),
    ],
)
def test_bad_bias_is_named(bias, error, message):
    with pytest.raises(error, match=message):
        NNBM(bias, W)


def test_object_coupling_is_refused():
    with pytest.raises(TypeError, match="coupling: real numbers are needed, but its dtype is object"):
        NNBM(B, W.astype(object))


def test_infinite_partition_function_comes_with_a_witness():
    with pytest.raises(NotCopositive, match=r"x\[1\] = .*, x\[2\] = .* has x'Wx = -0\..*diagonal") as caught:
        NNBM(B, [[1.0, 0, 0], [0, 1.0, -1.4], [0, -1.4, 1.0]])
    x = caught.value.witness
    assert (x >= 0).all()
    assert x[0] == 0
    assert 1.4 * 2 * x[1] * x[2] > x[1] ** 2 + x[2] ** 2


def test_couplings_past_positive_definiteness_are_welcome():
    model = NNBM([0.0, 0.0], [[1.0, 3.0], [3.0, 1.0]])
    assert model.copositivity.verdict is Verdict.COPOSITIVE


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0.1, -0.2, 0.3], r"x: the model lives on x >= 0, but x\[1\] = -0.2"),
        ([[0.1, 0.2, 0.3], [0.1, 0.2, np.nan]], r"x: every value must be finite, but x\[1, 2\] = nan"),
        ([0.1, 0.2], "x: the last axis must hold the 3 variables"),
        (0.5, "x: the last axis must hold the 3 variables"),
    ],
)
def test_bad_points_are_named(x, message):
    with pytest.raises(ValueError, match=message):
        NNBM(B, W).energy(x)


def test_bad_site_and_names():
    with pytest.raises(IndexError, match="site: 0 to 2 is meant, but site = 3"):
        NNBM(B, W).conditional(3, B**2)
    with pytest.raises(ValueError, match="there are 2 for 3 variables"):
        NNBM(B, W, names=["a", "b"])
    with pytest.raises(ValueError, match="'a' stands more than once"):
        NNBM(B, W, names=["a", "b", "a"])

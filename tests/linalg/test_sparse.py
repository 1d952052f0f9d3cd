"""Sparse factors, solves and selected inverses against dense algebra, on patterns of every kind."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from matrices import NAMES, blocks, from_edges, matrix
from nnbm.linalg.sparse import Inertia, analyse, factor


def in_units(dense):
    """Units (n,) in which the rows of a matrix have entries of order 1, and the matrix in them."""
    unit = 1.0 / np.sqrt(abs(dense).max(axis=1))
    return unit, dense * unit * unit[:, None]


def against_dense(given_matrix, tolerance=1e-12, found=None):
    """Every verb against NumPy; errors count relative to the condition, in units where entries are of order 1."""
    dense = given_matrix.toarray()
    n = dense.shape[0]
    unit, scaled = in_units(dense)
    values = np.linalg.eigvalsh(scaled)
    inverse = np.linalg.inv(scaled)
    bound = tolerance * max(1.0, abs(values).max() / abs(values).min())
    found = factor(given_matrix) if found is None else found
    assert found is not None
    assert found.inertia == ((values > 0).sum(), (values < 0).sum())
    sign, log_determinant = np.linalg.slogdet(scaled)
    assert sign == (-1) ** found.inertia.negative
    expected = log_determinant - 2 * np.log(unit).sum()
    assert found.log_determinant == pytest.approx(expected, rel=1e-13, abs=n * bound)
    rows = np.repeat(np.arange(n), np.diff(given_matrix.indptr))
    columns = given_matrix.indices
    on_pattern, diagonal = found.selected_inverse()
    scale = abs(inverse).max()
    error = abs(on_pattern / (unit[rows] * unit[columns]) - inverse[rows, columns]).max(initial=0.0)
    assert error <= bound * scale
    mirrored = sparse.csr_array((on_pattern, columns, given_matrix.indptr), shape=(n, n))
    assert (mirrored != mirrored.T).nnz == 0
    assert abs(diagonal / unit**2 - inverse.diagonal()).max() <= bound * scale
    right = np.random.default_rng(n).normal(size=(n, 3))
    solution = found.solve(right / unit[:, None]) / unit[:, None]
    assert abs(solution - inverse @ right).max() <= bound * abs(inverse @ right).max()
    alone = found.solve(right[:, 0] / unit) / unit
    assert abs(alone - solution[:, 0]).max() <= bound * abs(inverse @ right).max()
    return found


@given(st.sampled_from(NAMES), st.integers(1, 90), st.integers(0, 10**6))
def test_positive_definite_matrices_on_any_graph(name, n, seed):
    given_matrix = matrix(name, n, seed)
    found = against_dense(given_matrix, 1e-14)
    assert found.inertia == Inertia(given_matrix.shape[0], 0)
    assert found.boosts is None


@given(st.sampled_from(NAMES), st.integers(1, 60), st.integers(0, 10**6))
@example("random", 60, 1)
def test_indefinite_matrices_on_any_graph(name, n, seed):
    against_dense(matrix(name, n, seed, definite=False))


@given(st.sampled_from(NAMES), st.integers(1, 40), st.integers(0, 10**6), st.booleans())
def test_matrices_of_blocks(name, n, seed, definite):
    given_matrix = blocks(matrix(name, n, seed), seed, definite)
    symbolic = analyse(given_matrix)
    # the two columns of a block are eliminated one after the other
    assert (abs(np.diff(symbolic.place.reshape(-1, 2), axis=1)) == 1).all()
    against_dense(given_matrix, found=symbolic.factor(given_matrix.data))


@given(st.sampled_from(NAMES), st.integers(1, 60), st.integers(0, 10**6))
def test_the_recursion_serves_indefinite_matrices_too(name, n, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nnbm.linalg.sparse._FEW", 0)  # small ones are solved for otherwise
        against_dense(matrix(name, n, seed, definite=False), 1e-9)


@given(st.integers(2, 40), st.integers(0, 10**6))
def test_zeros_on_the_diagonal_are_no_obstacle(n, seed):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    keep = (rng.random(i.size) < 4 / n) | (j == n - 1 - i)  # the last makes it regular but for accidents
    given_matrix = from_edges(n, i[keep], j[keep], rng.normal(size=keep.sum()), np.zeros(n))
    if n % 2 == 0 and np.linalg.cond(in_units(given_matrix.toarray())[1]) < 1e6:
        assert against_dense(given_matrix).boosts is not None


@given(st.sampled_from(NAMES), st.integers(2, 60), st.integers(0, 10**6))
def test_units_do_not_matter(name, n, seed):
    given_matrix = matrix(name, n, seed)
    n = given_matrix.shape[0]
    unit = 2.0 ** np.random.default_rng(seed).integers(-300, 300, n)
    changed = given_matrix.copy()
    changed.data = (changed.data * np.repeat(unit, np.diff(changed.indptr))) * unit[changed.indices]
    plain, found = factor(given_matrix), factor(changed)
    np.testing.assert_array_equal(found.pivots, plain.pivots)
    np.testing.assert_array_equal(found.solve(np.ones(n) * unit), plain.solve(np.ones(n)) / unit)
    assert found.log_determinant == pytest.approx(plain.log_determinant + 2 * np.log(unit).sum(), rel=1e-13, abs=1e-9)


@given(st.sampled_from(NAMES), st.integers(2, 70), st.integers(0, 10**6), st.booleans())
def test_names_do_not_matter(name, n, seed, definite):
    given_matrix = matrix(name, n, seed, definite)
    n = given_matrix.shape[0]
    names = np.random.default_rng(seed).permutation(n)
    renamed = sparse.csr_array(given_matrix[names][:, names])
    renamed.sort_indices()
    plain, found = factor(given_matrix), factor(renamed)
    assert found.inertia == plain.inertia
    condition = np.linalg.cond(given_matrix.toarray())
    near = {"rtol": 1e-12 * condition, "atol": 1e-12 * condition * abs(plain.inverse_diagonal()).max()}
    np.testing.assert_allclose(found.inverse_diagonal(), plain.inverse_diagonal()[names], **near)
    assert found.log_determinant == pytest.approx(plain.log_determinant, abs=1e-12 * n * condition)


def test_one_analysis_serves_any_values():
    symbolic = analyse(matrix("random", 200, 0))
    rows = np.repeat(np.arange(200), np.diff(symbolic.indptr))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = sparse.csr_array((rng.normal(size=symbolic.indices.size), symbolic.indices, symbolic.indptr))
        given_matrix = sparse.csr_array(values + values.T + 3 * sparse.eye_array(200))
        against_dense(given_matrix, found=symbolic.factor(given_matrix.data))
    zeros = np.where(rows == symbolic.indices, 2.0, 0.0)  # explicit zeros stay in the pattern
    on_pattern, diagonal = symbolic.factor(zeros).selected_inverse()
    np.testing.assert_array_equal(on_pattern, np.where(rows == symbolic.indices, 0.5, 0.0))
    np.testing.assert_array_equal(diagonal, 0.5)


def test_a_factor_does_not_hang_on_the_callers_array():
    given_matrix = matrix("grid", 100, 3, definite=False)
    found = factor(given_matrix)
    before = found.solve(np.ones(100))
    given_matrix.data[:] = np.nan
    np.testing.assert_array_equal(found.solve(np.ones(100)), before)


def test_the_memory_of_a_factor_serves_the_next():
    first, second = matrix("grid", 400, 1), matrix("grid", 400, 2)
    symbolic = analyse(first)
    old = symbolic.factor(first.data)
    found = symbolic.factor(second.data, replacing=old)
    assert found.panels is old.panels
    np.testing.assert_array_equal(found.panels, symbolic.factor(second.data).panels)
    against_dense(second, 1e-14, found)
    with pytest.raises(ValueError, match="replacing: a factor of this analysis is needed"):
        analyse(first).factor(first.data, replacing=old)


def test_none_and_one_and_two():
    empty = factor(sparse.csr_array((0, 0)))
    assert empty.inertia == (0, 0)
    assert empty.log_determinant == 0.0
    assert empty.solve(np.zeros(0)).shape == (0,)
    assert empty.inverse_on_pattern().shape == (0,)
    assert empty.inverse_diagonal().shape == (0,)
    one = factor(sparse.csr_array([[-4.0]]))
    assert one.inertia == (0, 1)
    np.testing.assert_array_equal(one.inverse_on_pattern(), [-0.25])
    two = factor(sparse.csr_array([[0.0, 2.0], [2.0, 0.0]]))
    assert two.inertia == (1, 1)
    assert two.log_determinant == pytest.approx(np.log(4.0), rel=1e-14)
    np.testing.assert_allclose(two.inverse_on_pattern(), [0.5, 0.5], rtol=1e-14)  # the diagonal is not in the pattern
    np.testing.assert_allclose(two.inverse_diagonal(), [0.0, 0.0], atol=1e-15)


def test_diagonal_matrices_are_exact():
    diagonal = np.array([3.0, -1e-200, 7.0, 1e200, -0.1])
    found = factor(sparse.diags_array(diagonal).tocsr())
    assert found.inertia == (3, 2)
    np.testing.assert_allclose(found.inverse_diagonal(), 1 / diagonal, rtol=1e-15)
    np.testing.assert_allclose(found.solve(diagonal), np.ones(5), rtol=1e-15)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 60, 900])
def test_a_graphs_laplacian_is_singular_and_nearly_so_it_is_not(name, n):
    given_matrix = matrix(name, n, 5)
    n = given_matrix.shape[0]
    ones = sparse.csr_array((np.ones(given_matrix.data.size), given_matrix.indices, given_matrix.indptr))
    laplacian = sparse.csr_array(sparse.diags_array(ones.sum(axis=1)) - ones)
    laplacian = sparse.csr_array(laplacian + 0 * ones)
    assert factor(laplacian) is None
    nearly = laplacian + sparse.diags_array(np.full(n, 1e-6))
    assert factor(nearly).inertia == (n, 0)
    beyond = laplacian - sparse.diags_array(np.full(n, 1e-6))
    components, _ = sparse.csgraph.connected_components(ones)
    assert factor(beyond).inertia == (n - components, components)


@pytest.mark.parametrize(
    "dense",
    [
        [[0.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        [[1.0, 1e8], [1e8, 1e16]],
        np.zeros((200, 200)) + np.diag(np.arange(200.0)),
    ],
)
def test_what_is_singular_has_no_factor(dense):
    assert factor(sparse.csr_array(np.array(dense))) is None
    full = sparse.csr_array(np.ones_like(np.array(dense)))  # the same with its zeros in the pattern
    assert analyse(full).factor(np.array(dense).ravel()) is None


def test_the_inertia_of_a_grid_is_known():
    side = 40
    path = sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    eye = sparse.eye_array(side)
    grid = sparse.csr_array(sparse.kron(path, eye) + sparse.kron(eye, path))
    cosines = 2 * np.cos(np.pi * np.arange(1, side + 1) / (side + 1))
    eigenvalues = (cosines[:, None] + cosines).ravel()
    for shift in (-3.9, -1.01, 0.013, 0.5, 2.02, 3.999):
        shifted = sparse.csr_array(grid - shift * sparse.eye_array(side**2))
        found = factor(shifted)
        assert found.inertia == ((eigenvalues > shift).sum(), (eigenvalues < shift).sum())
        error = found.log_determinant - np.log(abs(eigenvalues - shift)).sum()
        assert abs(error) <= 1e-12 * side**2 / abs(eigenvalues - shift).min()
        trace = found.inverse_diagonal().sum() - (1 / (eigenvalues - shift)).sum()
        assert abs(trace) <= 1e-11 * (1 / abs(eigenvalues - shift)).sum() / abs(eigenvalues - shift).min()


@pytest.mark.parametrize("name", ["complete", "grid", "random"])
def test_large_fronts_through_blas(name):
    n = {"complete": 500, "grid": 1600, "random": 1200}[name]
    given_matrix = matrix(name, n, 1)
    assert analyse(given_matrix).fronts.largest > {"complete": 499, "grid": 60, "random": 120}[name]
    against_dense(given_matrix, 1e-14)


def grid_and_shift(side, shift):
    """The adjacency of a grid less a shift, its inverse's exact diagonal, the number of negative eigenvalues."""
    path = sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    eye = sparse.eye_array(side)
    grid = sparse.csr_array(sparse.kron(path, eye) + sparse.kron(eye, path) - shift * sparse.eye_array(side**2))
    modes = np.arange(1, side + 1)
    cosines = 2 * np.cos(np.pi * modes / (side + 1))
    weights = 2 / (side + 1) * np.sin(np.pi * np.outer(modes, modes) / (side + 1)) ** 2
    eigenvalues = cosines[:, None] + cosines - shift
    return grid, (weights @ (1 / eigenvalues) @ weights.T).ravel(), int((eigenvalues < 0).sum())


@pytest.mark.parametrize("side", [30, 150])
def test_an_inverse_far_inside_the_spectrum_is_right_or_refused(side):
    refused = 0
    for shift in (-4.1, -3.99, -3.7, -2.5, -1.01, 0.0137, 0.5, 2.02, 3.6, 3.9):
        given_matrix, exact, negative = grid_and_shift(side, shift)
        found = factor(given_matrix)
        assert found.inertia.negative == negative
        try:
            diagonal = found.inverse_diagonal()
        except np.linalg.LinAlgError:
            assert shift > -3.9  # few negative eigenvalues are harmless
            refused += 1
        else:
            assert abs(diagonal - exact).max() <= 1e-6 * abs(exact).max()
        right = np.cos(np.arange(side**2))
        solution = found.solve(right)  # solves are refined and stay right
        assert abs(given_matrix @ solution - right).max() <= 1e-13 * abs(solution).max()
    assert refused < 3 if side == 30 else 2 < refused < 9


def test_a_barely_definite_inverse_is_right():
    side = 150
    lowest = -4 * np.cos(np.pi / (side + 1))
    for gap in (1e-3, 1e-6, 1e-9):
        given_matrix, exact, _ = grid_and_shift(side, lowest - gap)
        found = factor(given_matrix)
        assert found.inertia.negative == 0
        assert abs(found.inverse_diagonal() - exact).max() <= 1e-14 / gap * abs(exact).max()


def test_a_residual_tells_of_a_wrong_factor():
    """Negative control: the comparison with dense algebra sees one wrong entry in the last digits."""
    given_matrix = matrix("grid", 64, 2)
    changed = given_matrix.copy()
    changed.data[changed.data == changed.data.max()] *= 1 + 1e-9
    with pytest.raises(AssertionError):
        against_dense(given_matrix, found=factor(changed))


def test_growth_is_allowed_where_boosts_run_out(monkeypatch):
    many = [matrix("random", 300, seed, definite=False) for seed in range(8)]
    most = max(0 if found.boosts is None else found.boosts.columns.size for found in map(factor, many))
    assert most > 1
    monkeypatch.setattr("nnbm.linalg.sparse._MOST_BOOSTED", 1)
    for given_matrix in many:
        found = against_dense(given_matrix, 1e-9)
        assert found.boosts is None or found.boosts.columns.size == 1


def test_too_many_exchanges_are_an_error_that_says_so():
    n = 20_000
    i = np.arange(0, n - 1)
    zigzag = from_edges(n, i, i + 1, np.ones(n - 1), np.zeros(n))
    with pytest.raises(np.linalg.LinAlgError, match="more than 64 rows"):
        factor(zigzag)


def test_the_inverse_times_the_matrix_has_the_right_trace():
    given_matrix = blocks(matrix("grid", 2500, 0), 0)
    found = factor(given_matrix)
    n = given_matrix.shape[0]
    assert (found.inverse_on_pattern() * given_matrix.data).sum() == pytest.approx(n, rel=1e-13)


@pytest.mark.parametrize(
    ("given_matrix", "kind", "message"),
    [
        (np.eye(2), TypeError, "matrix: a scipy.sparse matrix is needed, but it is a ndarray"),
        (sparse.csr_array((2, 3)), ValueError, r"matrix: it must be square, but its shape is \(2, 3\)"),
        (sparse.csr_array([[1.0, 1.0], [0.0, 1.0]]), ValueError, r"symmetric, but \[0, 1\] has no mirror image"),
        (sparse.csr_array([[1.0, 0.0], [1.0, 1.0]]), ValueError, r"symmetric, but \[1, 0\] has no mirror image"),
        (sparse.csr_array([[1.0, 2.0], [3.0, 1.0]]), ValueError, r"symmetric, but \[0, 1\] = 2.0 differs"),
        (sparse.csr_array([[1.0, np.nan], [np.nan, 1.0]]), ValueError, r"finite, but matrix\[0, 1\] = nan"),
        (sparse.csr_array([[1j]]), TypeError, "real numbers are needed"),
    ],
)
def test_errors_of_a_matrix(given_matrix, kind, message):
    with pytest.raises(kind, match=message):
        factor(given_matrix)


def test_errors_of_values_and_right_sides():
    symbolic = analyse(matrix("chain", 3, 0))
    with pytest.raises(ValueError, match=r"each of the pattern's 7 entries is needed, but their shape is \(3,\)"):
        symbolic.factor(np.ones(3))
    with pytest.raises(ValueError, match=r"values\[2\] = inf"):
        symbolic.factor([1.0, 1.0, np.inf, 1.0, 1.0, 1.0, 1.0])
    found = symbolic.factor([3.0, 1.0, 1.0, 3.0, 1.0, 1.0, 3.0])
    with pytest.raises(ValueError, match=r"right: its shape must be \(3,\) or \(3, k\), but it is \(2,\)"):
        found.solve(np.ones(2))
    with pytest.raises(ValueError, match=r"right: .*\(3, 1, 1\)"):
        found.solve(np.ones((3, 1, 1)))
    with pytest.raises(ValueError, match=r"right\[0\] = nan"):
        found.solve([np.nan, 0.0, 0.0])


@settings(max_examples=20)
@given(st.sampled_from(NAMES), st.integers(1, 300), st.integers(0, 10**6))
def test_predictions_are_the_factors_of_dense_matrices(name, n, seed):
    symbolic = analyse(matrix(name, n, seed))
    assert symbolic.factor(matrix(name, n, seed).data).panels.size == symbolic.entries
    assert symbolic.bytes >= 8 * (symbolic.entries + symbolic.fronts.update_room)
    if name == "complete":  # one front: r (r + 2) operations with r rows left
        left = np.arange(n)
        assert symbolic.flops == (left * (left + 2.0)).sum()
        assert symbolic.inverse_flops == n**3
        assert symbolic.entries == n * n

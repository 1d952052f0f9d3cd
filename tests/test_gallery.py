"""The gallery's models are the equations they cite."""

import numpy as np
import pytest
from scipy import sparse

from nnbm import gallery


def test_square_grid():
    model = gallery.square_grid(3, 4, coupling=0.8, bias=(-0.4, 0.4), seed=1)
    assert model.n == 12
    place = {(r, c): r * 4 + c for r in range(3) for c in range(4)}
    expected = sorted(
        (place[r, c], place[r + dr, c + dc])
        for r, c in place
        for dr, dc in ((0, 1), (1, 0))
        if (r + dr, c + dc) in place
    )
    assert list(zip(*(a.tolist() for a in model.edges), strict=True)) == expected
    assert (model.edge_couplings == 0.8).all()
    assert (model.diagonal == 1).all()
    assert (np.abs(model.bias) <= 0.4).all()
    assert model == gallery.square_grid(3, 4, seed=1)
    assert model != gallery.square_grid(3, 4, seed=2)


def test_the_papers_grid_is_not_positive_definite():
    lowest = np.linalg.eigvalsh(gallery.square_grid(6, 6).coupling.toarray())[0]
    assert lowest == pytest.approx(-1.88, abs=0.01)  # EQ 9


def test_orientation_tuning():
    model = gallery.orientation_tuning(12, beta=7.0, epsilon=1.5)
    i, j = np.indices((12, 12))
    expected = 7.0 * ((i == j) + 1 / 12 - 1.5 / 12 * np.cos(2 * np.pi * np.abs(i - j) / 12))
    np.testing.assert_allclose(model.coupling, expected, atol=1e-14)
    assert (model.bias == 7.0).all()
    for shift in range(1, 12):  # exactly invariant, so that its symmetry is a test of everything else
        assert (np.roll(model.coupling, (shift, shift), (0, 1)) == model.coupling).all()


@pytest.mark.parametrize(("n", "beta", "epsilon"), [(36, 10, 2.0), (36, 10, 4.0), (25, 50, 4.0)])
def test_the_tuning_regimes_of_the_literature_are_proven_copositive(n, beta, epsilon):
    from nnbm.copositive import Verdict

    model = gallery.orientation_tuning(n, beta=beta, epsilon=epsilon)
    assert model.copositivity.verdict is Verdict.COPOSITIVE


def test_two_modes_has_two():
    model = gallery.two_modes(competition=3.0, bias=(3.0, 3.2))
    at = np.array([[3.0, 0.0], [0.0, 3.2]])
    step = 1e-3
    for mode in at:
        around = np.maximum(mode + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), 0.0)
        around = around[(around != mode).any(axis=1)]
        assert (model.energy(around) > model.energy(mode)).all()
    assert model.energy([0.75, 0.75]) > model.energy(at).max()  # a ridge between them


def test_random_graph():
    model = gallery.random_graph(500, degree=4.0, strength=0.7, seed=3)
    i, j = model.edges
    assert i.size == 1000
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == 1000
    assert (i < j).all()
    assert (model.edge_couplings < 0).any()
    assert (model.edge_couplings > 0).any()
    assert model == gallery.random_graph(500, degree=4.0, strength=0.7, seed=3)
    complete = gallery.random_graph(7, degree=6.0)
    assert complete.edges[0].size == 21


def test_random_graph_reaches_every_pair():
    for n in (2, 3, 10, 45, 1000):
        possible = n * (n - 1) // 2
        i, j = gallery._upper_pairs(np.arange(possible), n)
        expected_i, expected_j = np.triu_indices(n, 1)
        assert (i == expected_i).all()
        assert (j == expected_j).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_from_least_squares_is_the_gaussian_posterior(kind):
    rng = np.random.default_rng(0)
    a, y, sigma = rng.uniform(size=(20, 5)), rng.normal(size=20), 0.3
    model = gallery.from_least_squares(kind(a), y, sigma)
    assert sparse.issparse(model.coupling) == (kind is sparse.csr_array)
    x = rng.exponential(size=(6, 5))
    misfit = 0.5 * np.square(y - x @ a.T).sum(axis=1) / sigma**2
    np.testing.assert_allclose(np.diff(model.energy(x)), np.diff(misfit), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gallery.square_grid(0, 3), "rows, columns: at least 1"),
        (lambda: gallery.square_grid(2, 2, bias=(1, -1)), "low <= high"),
        (lambda: gallery.orientation_tuning(1), "at least 2 neurons"),
        (lambda: gallery.orientation_tuning(8, beta=-1), "beta: .* must be positive"),
        (lambda: gallery.orientation_tuning(36, epsilon=12.0), "x'Wx"),
        (lambda: gallery.two_modes(competition=0.5), "Raise competition"),
        (lambda: gallery.two_modes(bias=(1.0, 9.0)), "Raise competition"),
        (lambda: gallery.random_graph(5, degree=7), "at most 4 neighbours"),
        (lambda: gallery.from_least_squares(np.ones((3, 2)), np.ones(4), 1.0), r"\(3, 2\) and \(4,\)"),
        (lambda: gallery.from_least_squares(np.ones((3, 2)), np.ones(3), 0.0), "sigma"),
        (lambda: gallery.from_least_squares(np.eye(3) * [1, 0, 1], np.ones(3), 1.0), "column 1 of design gives 0.0"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()

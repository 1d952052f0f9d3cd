"""The Cramér-Rao floor against Fisher information by quadrature."""

import numpy as np
import pytest
from known_tables import model_of, quadrature, table_of, truth

import nnbm
from nnbm.learning.edges import EdgeSet
from nnbm.learning.floor import Floor, fisher_information, floor, floor_from_draws
from nnbm.learning.parameters import Parameters

SMALL = {
    "one variable": nnbm.NNBM([0.4], [[1.2]]),
    "one near an exponential": nnbm.NNBM([-3.0], [[1.0]]),
    "pair": nnbm.NNBM([0.5, -0.3], [[1.0, -0.6], [-0.6, 1.5]]),
    "pair, not positive definite": nnbm.NNBM([0.8, 0.5], [[1.0, 1.6], [1.6, 2.0]]),
}


def drawn_from(model, draws, seed):
    return nnbm.sample(model, draws // 4, chains=4, thin=4, seed=seed, threads=1, progress=False).flat


@pytest.mark.parametrize("name", SMALL)
def test_the_floor_is_that_of_quadrature(name):
    """Twenty parts of the draws tell how far the floor of one part may be off, and so that of all."""
    model = SMALL[name]
    e = EdgeSet.complete(model.n)
    exact = np.sqrt(np.diagonal(np.linalg.inv(quadrature(truth(model, e)).fisher)) / 1000)
    parts = np.split(drawn_from(model, 80_000, 0), 20)
    found = np.array([floor_from_draws(part, 1000, e).errors.vector for part in parts])
    error = found.std(axis=0, ddof=1) / np.sqrt(20)
    assert (error < 0.03 * exact).all()
    assert (np.abs(found.mean(axis=0) - exact) < 4.5 * error + 2e-3 * exact).all()
    assert (np.abs(1.1 * found.mean(axis=0) - exact) > 4.5 * error).all()  # a tenth more would be seen
    whole = floor(model, 1000, edges=e, draws=80_000, thin=4, seed=1).errors.vector
    assert (np.abs(whole - exact) < 6.0 * error + 2e-3 * exact).all()


@pytest.mark.parametrize("name", SMALL)
def test_the_information_is_that_of_quadrature(name):
    model = SMALL[name]
    e = EdgeSet.complete(model.n)
    exact = quadrature(truth(model, e)).fisher
    found = np.array([fisher_information(part, e) for part in np.split(drawn_from(model, 80_000, 2), 20)])
    error = found.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(found.mean(axis=0) - exact) < 4.5 * error + 1e-3 * np.abs(exact)).all()


def test_the_floor_falls_as_one_over_the_root_of_the_rows():
    draws, e = table_of("grid"), EdgeSet(9, *model_of("grid").edges)
    one, hundred = floor_from_draws(draws, 100, e), floor_from_draws(draws, 10_000, e)
    np.testing.assert_allclose(one.errors.vector, 10.0 * hundred.errors.vector, rtol=1e-10)
    assert one.e_b == pytest.approx(10.0 * hundred.e_b)
    assert one.e_w == pytest.approx(10.0 * hundred.e_w)


def test_the_floor_carries_the_units_of_its_parameters():
    draws, e, unit = table_of("trio"), EdgeSet.complete(3), np.array([1e-5, 1.0, 1e4])
    plain, scaled = floor_from_draws(draws, 50, e), floor_from_draws(draws * unit, 50, e)
    np.testing.assert_allclose(scaled.errors.vector, plain.errors.in_units(unit).vector, rtol=1e-7)


def test_mean_errors_are_means_over_biases_and_over_all_couplings():
    e = EdgeSet.complete(2)
    found = Floor(10.0, Parameters(e, np.array([1.0, 3.0]), np.array([1.0, 1.0]), np.array([4.0])))
    assert found.e_b == pytest.approx(2.0 * np.sqrt(2.0 / np.pi))
    assert found.e_w == pytest.approx(2.0 * np.sqrt(2.0 / np.pi))


def test_more_edges_raise_the_floor():
    """What must be learned, too, costs precision: F^-1 of part of the parameters is never the smaller one."""
    draws, part = table_of("grid"), EdgeSet(9, *model_of("grid").edges)
    whole = EdgeSet.complete(9)
    few, many = floor_from_draws(draws, 100, part).errors, floor_from_draws(draws, 100, whole).errors
    assert (many.bias > few.bias * 0.999).all()
    assert (many.dense[part.i, part.j] > few.couplings * 0.98).all()  # the factors for few draws differ a little


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt:RuntimeWarning")
@pytest.mark.parametrize("count", [120, 200, 1000])
def test_few_draws_give_a_number_or_an_error_but_never_nan(count):
    e = EdgeSet.complete(9)
    try:
        found = floor_from_draws(table_of("grid")[:count], 100, e)
    except ValueError as error:
        assert "Ask for more" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(found.errors.vector).all()


def test_too_few_draws_or_too_many_parameters_are_refused():
    with pytest.raises(ValueError, match=r"^draws: 20 do not determine the Fisher information of 54 parameters"):
        floor_from_draws(table_of("grid")[:20], 100, EdgeSet.complete(9))
    with pytest.raises(ValueError, match=r"^floor: matrices of 5150"):
        floor_from_draws(np.ones((10, 100)), 100, EdgeSet.complete(100))

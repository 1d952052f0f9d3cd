"""Pseudo-likelihood: its value against quadrature, derivatives against differences, and its maximum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import model_of, own_edges, slopes, table_of, truth
from scipy.integrate import quad
from scipy.optimize import minimize

import nnbm
from nnbm.draw import truncated_normal
from nnbm.learning import blocks as blocks_module
from nnbm.learning.edges import EdgeSet
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import (
    conditional_means,
    log_pseudolikelihoods,
    pseudolikelihood,
    pseudolikelihood_blocks,
    pseudolikelihood_scores,
)
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import pseudolikelihood_errors
from nnbm.site import HALF_LINE


def mean_value(theta, e, table):
    """The mean log pseudo-likelihood through the model's own conditionals and sites."""
    model = Parameters.from_vector(e, theta).model()
    total = 0.0
    for node in range(e.n):
        l, r = model.conditional(node, table)
        x = table[:, node]
        total += (l * x - 0.5 * r * x**2 - HALF_LINE.moments(l, r).log_partition).mean()
    return total


def test_the_value_is_the_sum_of_log_conditionals_by_quadrature():
    model, table = model_of("trio"), table_of("trio")[:6]
    expected = np.zeros(6)
    for row, x in enumerate(table):
        for node in range(3):
            along = np.tile(x, (1, 1))

            def density(value, along=along, node=node):
                along[0, node] = value
                return np.exp(-model.energy(along)[0])

            mass = quad(density, 0.0, 30.0, epsabs=1e-13, epsrel=1e-12, points=[1.0, 3.0])[0]
            expected[row] += np.log(density(x[node]) / mass)
    rows = Rows.of_draws(table)
    np.testing.assert_allclose(log_pseudolikelihoods(rows, truth(model, EdgeSet.complete(3))), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["grid", "random graph", "complete"])
def test_blocks_rows_and_conditionals_have_one_value(name):
    table, here = table_of(name), truth(model_of(name))
    weights = np.random.default_rng(0).uniform(0.0, 2.0, table.shape[0])
    rows = Rows.checked(table, weights=weights)
    of_rows = log_pseudolikelihoods(rows, here)
    assert of_rows.shape == (table.shape[0],)
    assert pseudolikelihood_blocks(rows, here).value == pytest.approx(np.average(of_rows, weights=weights), rel=1e-11)
    assert of_rows.mean() == pytest.approx(mean_value(here.vector, here.edges, table), rel=1e-11)


@pytest.mark.parametrize("name", ["grid", "complete", "trio"])
def test_conditional_means_are_those_of_the_models_conditionals(name):
    model, table = model_of(name), table_of(name)[:200]
    found = conditional_means(Rows.of_draws(table), truth(model))
    for node in range(model.n):
        expected = HALF_LINE.moments(*model.conditional(node, table)).mean
        np.testing.assert_allclose(found[node], expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["grid", "complete", "trio"])
def test_gradient_and_curvature_are_finite_differences(name):
    table, here = table_of(name)[:300], truth(model_of(name))
    rows, e = Rows.of_draws(table), here.edges
    theta = here.vector * np.random.default_rng(0).uniform(0.9, 1.1, here.vector.size)
    at = lambda t: pseudolikelihood_blocks(rows, Parameters.from_vector(e, t))  # noqa: E731
    found = at(theta)
    np.testing.assert_allclose(found.total_gradient(), slopes(lambda t: at(t).value, theta), rtol=1e-6, atol=1e-8)
    expected = -slopes(lambda t: at(t).total_gradient(), theta)
    np.testing.assert_allclose(found.matrix(), expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())
    assert np.linalg.eigvalsh(found.matrix())[0] > 0
    assert pseudolikelihood_blocks(rows, Parameters.from_vector(e, theta), curved=False).curvature == ()


def test_derivatives_hold_deep_beyond_the_wall_and_far_from_it():
    """Fields of -60, 0 and +60 standard deviations."""
    e = EdgeSet.complete(2)
    for bias in (-60.0, 0.0, 60.0):
        theta = np.array([bias, 0.5 * bias, 1.0, 2.0, 0.3])
        l = theta[:2] - 0.3
        rows = Rows.of_draws(np.column_stack([truncated_normal(l[k], theta[2 + k], 50, seed=k) for k in (0, 1)]))
        at = lambda t, rows=rows: pseudolikelihood_blocks(rows, Parameters.from_vector(e, t))  # noqa: E731
        gradient = slopes(lambda t, at=at: at(t).value, theta, 1e-6)
        found = at(theta)
        size = np.sqrt(np.diagonal(found.matrix()))
        np.testing.assert_allclose(found.total_gradient() / size, gradient / size, atol=1e-5)
        curvature = -slopes(lambda t, at=at: at(t).total_gradient(), theta, 1e-6)
        np.testing.assert_allclose(found.matrix() / np.outer(size, size), curvature / np.outer(size, size), atol=1e-5)


def test_scores_are_every_rows_own_gradient_and_vanish_in_the_mean():
    table, here = table_of("grid"), truth(model_of("grid"))
    rows, e = Rows.checked(table), here.edges
    found = pseudolikelihood_scores(rows, here)
    for row in range(5):
        one = Rows.of_draws(table[[row]])
        expected = slopes(lambda t, one=one: log_pseudolikelihoods(one, Parameters.from_vector(e, t))[0], here.vector)
        np.testing.assert_allclose(found[:, row], expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.mean(axis=1), pseudolikelihood_blocks(rows, here).total_gradient(), atol=1e-11)
    maximum = pseudolikelihood(rows, e).parameters
    np.testing.assert_allclose(pseudolikelihood_scores(rows, maximum).mean(axis=1), 0.0, atol=1e-7)


def test_batches_merge_to_the_whole():
    here = truth(model_of("grid"))
    rows = Rows.checked(table_of("grid"))
    one = pseudolikelihood_blocks(rows, here)
    parts = [pseudolikelihood_blocks(batch, here) for batch in rows.batches(900)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    assert merged.value == pytest.approx(one.value, rel=1e-12)
    np.testing.assert_allclose(merged.total_gradient(), one.total_gradient(), atol=1e-12)
    np.testing.assert_allclose(merged.matrix(), one.matrix(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("name", ["grid", "trio"])
def test_the_maximum_is_that_of_a_general_maximiser(name, ridge):
    table, e = table_of(name)[:1000], own_edges(model_of(name))
    rows = Rows.checked(table)
    scale = table.mean(axis=0)
    near = Rows(rows.columns / scale[:, None], rows.weights)
    n = e.n

    def cost(theta):
        found = pseudolikelihood_blocks(near, Parameters.from_vector(e, theta), curved=False)
        d, w = theta[n : 2 * n], theta[2 * n :]
        penalty = ridge * (0.5 * w @ w + np.sum(d - 1.0 - np.log(d)))
        slope = ridge * np.concatenate([np.zeros(n), 1.0 - 1.0 / d, w])
        return penalty - found.value, slope - found.total_gradient()

    start = np.repeat([0.0, 1.0, 0.0], [e.n, e.n, e.size])
    bounds = [(None, None)] * e.n + [(1e-6, None)] * e.n + [(None, None)] * e.size
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    best = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    found = pseudolikelihood(rows, e, ridge=ridge).parameters.in_units(1.0 / scale)
    assert cost(found.vector)[0] <= best.fun + 1e-12
    np.testing.assert_allclose(found.vector, best.x, atol=2e-4)
    np.testing.assert_allclose(cost(found.vector)[1], 0.0, atol=1e-7)


def test_any_start_leads_to_the_one_maximum():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    best = pseudolikelihood(rows, e).parameters.vector
    rng = np.random.default_rng(0)
    for _ in range(4):
        start = Parameters(e, rng.uniform(-3, 3, 9), rng.uniform(0.05, 5, 9), rng.uniform(-1, 2, e.size))
        np.testing.assert_allclose(pseudolikelihood(rows, e, start=start).parameters.vector, best, atol=1e-7)


@pytest.mark.parametrize("build", [lambda: nnbm.gallery.square_grid(6, 6), nnbm.gallery.orientation_tuning])
def test_the_papers_models_take_at_most_eight_steps(build):
    model = build()
    rows = Rows.checked(nnbm.sample(model, 1250, chains=4, thin=10, seed=0, threads=1, progress=False).flat)
    assert pseudolikelihood(rows, own_edges(model)).iterations <= 8


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_renumbering_and_rescaling_do_the_same_to_the_answer(seed):
    rng = np.random.default_rng(seed)
    table, e = table_of("trio"), EdgeSet.complete(3)
    order, unit = rng.permutation(3), 10.0 ** rng.uniform(-6, 6, 3)
    plain = pseudolikelihood(Rows.checked(table), e).parameters
    found = pseudolikelihood(Rows.checked((table * unit)[:, order]), e).parameters.in_units(1.0 / unit[order])
    np.testing.assert_allclose(found.dense, plain.dense[np.ix_(order, order)], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.bias, plain.bias[order], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("name", ["grid", "complete"])
def test_the_iterative_path_ends_where_the_dense_one_does(name, ridge, monkeypatch):
    rows, e = Rows.checked(table_of(name)), own_edges(model_of(name))
    dense = pseudolikelihood(rows, e, ridge=ridge)
    monkeypatch.setattr(blocks_module, "DENSE_PARAMETERS", 0)
    iterative = pseudolikelihood(rows, e, ridge=ridge)
    np.testing.assert_allclose(iterative.parameters.vector, dense.parameters.vector, atol=1e-6)
    assert iterative.iterations <= dense.iterations + 2


def test_one_variable_is_maximum_likelihood():
    table = table_of("trio")[:, [0]]
    found = pseudolikelihood(Rows.checked(table), EdgeSet.complete(1)).parameters
    l, r = HALF_LINE.from_moments(table.mean(axis=0), (table**2).mean(axis=0))
    np.testing.assert_allclose([found.bias[0], found.diagonal[0]], [l[0], r[0]], atol=1e-7)


@pytest.mark.parametrize("name", ["grid", "random graph", "trio"])
def test_many_rows_find_the_truth_and_tell_it_from_another(name):
    table, here = table_of(name, 40_000, seed=1), truth(model_of(name))
    rows = Rows.checked(table)
    found = pseudolikelihood(rows, here.edges).parameters
    errors = pseudolikelihood_errors(rows, found).vector
    z = (found.vector - here.vector) / errors
    assert np.abs(z).max() < 5.0
    assert (z**2).mean() < 12.0  # 3.5 sd, were they all one
    wrong = here.vector + 0.3 * np.resize([1.0, -1.0], z.size)
    assert (((found.vector - wrong) / errors) ** 2).mean() > 24.0


def test_a_ridge_shrinks_couplings_to_0_and_diagonals_to_1_in_units_of_the_means():
    table, e, penalties = table_of("trio"), EdgeSet.complete(3), []
    rows, scale = Rows.checked(table), table.mean(axis=0)
    for ridge in (0.0, 1e-2, 1e-1, 1.0, 1e9):
        found = pseudolikelihood(rows, e, ridge=ridge).parameters.in_units(1.0 / scale)
        d, w = found.diagonal, found.couplings
        penalties.append(0.5 * w @ w + np.sum(d - 1.0 - np.log(d)))
    assert (np.diff(penalties) < 0).all()
    assert penalties[-1] < 1e-12
    # what is left is b: the mean of every variable is matched, in its unit
    np.testing.assert_allclose(HALF_LINE.moments(found.bias, found.diagonal).mean, 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    "table",
    [
        np.random.default_rng(0).gamma(1.5, size=(4, 4)),  # fewer rows than parameters of one node
        np.random.default_rng(0).gamma(0.3, size=(3, 4)),
        np.repeat(np.random.default_rng(1).gamma(1.5, size=(200, 1)), 4, axis=1) * [1.0, 2.0, 3.0, 4.0],
    ],
)
def test_a_hopeless_table_is_called_so(table):
    with pytest.raises(ValueError, match=r"^X: the pseudo-likelihood of 14 parameters has no maximum that \d+ rows"):
        pseudolikelihood(Rows.checked(table), EdgeSet.complete(4))


def test_more_spread_than_an_exponential_has_no_maximum_of_one_variable():
    """<x²> > 2 <x>²: the likelihood of one variable grows until w_ii reaches 0."""
    table = np.random.default_rng(0).gamma(0.3, size=(500, 1))
    with pytest.raises(ValueError, match="has no maximum"):
        pseudolikelihood(Rows.checked(table), EdgeSet.complete(1))

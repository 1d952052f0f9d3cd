"""Score matching: the minimiser of its objective as written, consistent, and indifferent to units and batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import model_of, own_edges, slopes, table_of, truth
from scipy.optimize import minimize

from nnbm.learning.edges import EdgeSet
from nnbm.learning.parameters import Parameters
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import score_matching_errors
from nnbm.learning.score_matching import (
    WEIGHTS,
    score_matching,
    score_matching_blocks,
    score_matching_scores,
)


def objective(theta, e, y, weight, row_weights=None):
    """EQ 8 as written, y (rows, n) in units of the means."""
    here = Parameters.from_vector(e, theta)
    h, slope = (f(y) for f in WEIGHTS[weight])
    g = here.bias - y @ here.dense
    of_rows = (0.5 * h * g**2 - h * here.diagonal + slope * g).sum(axis=1)
    return np.average(of_rows, weights=row_weights)


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_vanish_at_the_wall_and_slopes_are_theirs(name):
    h, slope = WEIGHTS[name]
    y = np.array([0.1, 0.4, 0.9, 1.3, 5.0, 40.0])
    assert h(np.zeros(1))[0] == 0.0
    assert (h(y) > 0).all()
    np.testing.assert_allclose(slope(y), (h(y + 1e-6) - h(y - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-9)
    assert np.isfinite(slope(np.array([1e4]))).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_estimate_is_the_minimiser_of_the_objective(weight, weighted):
    table, e = table_of("grid")[:600], own_edges(model_of("grid"))
    row_weights = np.random.default_rng(0).uniform(0.0, 2.0, 600) if weighted else None
    found = score_matching(Rows.checked(table, weights=row_weights), e, weight=weight).parameters
    scale = np.average(table, axis=0, weights=row_weights)
    theta = found.in_units(1.0 / scale).vector
    gradient = slopes(lambda t: objective(t, e, table / scale, weight, row_weights), theta)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-7)
    value = objective(theta, e, table / scale, weight, row_weights)
    for seed in range(5):
        away = theta + 0.03 * np.random.default_rng(seed).normal(size=theta.size)
        assert objective(away, e, table / scale, weight, row_weights) > value


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_estimate_is_what_a_general_minimiser_finds(ridge):
    table, e = table_of("trio"), EdgeSet.complete(3)
    scale = table.mean(axis=0)

    def penalised(t):
        return objective(t, e, table / scale, "log") + 0.5 * ridge * (t[6:] @ t[6:] + np.sum((t[3:6] - 1.0) ** 2))

    best = minimize(penalised, np.zeros(9), method="BFGS", options={"gtol": 1e-7})
    found = score_matching(Rows.checked(table), e, ridge=ridge).parameters.in_units(1.0 / scale)
    np.testing.assert_allclose(found.vector, best.x, atol=2e-4)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_blocks_are_gradient_and_curvature_of_the_objective(weight):
    table, e = table_of("trio")[:200], EdgeSet.complete(3)
    scale = np.array([1.0, 0.5, 2.0])
    blocks = score_matching_blocks(Rows.checked(table / scale), e, weight)
    rng = np.random.default_rng(0)
    base = objective(np.zeros(9), e, table / scale, weight)
    for _ in range(5):
        theta = rng.normal(size=9)
        expected = base + blocks.total_gradient() @ theta + 0.5 * theta @ blocks.matrix() @ theta
        assert objective(theta, e, table / scale, weight) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_scores_are_every_rows_own_gradient(weight):
    table, e = table_of("grid")[:7], own_edges(model_of("grid"))
    scale, here = table_of("grid").mean(axis=0), truth(model_of("grid"))
    found = score_matching_scores(Rows.of_draws(table / scale), here.in_units(1.0 / scale), weight)
    theta = here.in_units(1.0 / scale).vector
    for row in range(7):
        expected = slopes(lambda t, row=row: objective(t, e, table[[row]] / scale, weight), theta)
        np.testing.assert_allclose(found[:, row], expected, rtol=1e-5, atol=1e-7)


def test_scores_of_all_rows_vanish_at_the_estimate():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    found = score_matching(rows, e).parameters
    scores = score_matching_scores(
        Rows(rows.columns / rows.columns.mean(axis=1)[:, None]), found.in_units(1.0 / rows.columns.mean(axis=1))
    )
    np.testing.assert_allclose(scores.mean(axis=1), 0.0, atol=1e-9 * scores.std())


def test_batches_merge_to_the_whole():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    one = score_matching_blocks(rows, e)
    parts = [score_matching_blocks(batch, e) for batch in rows.batches(700)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    np.testing.assert_allclose(merged.total_gradient(), one.total_gradient(), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(merged.matrix(), one.matrix(), rtol=1e-10, atol=1e-13)
    assert merged.total == one.total


@given(st.integers(0, 10**6), st.sampled_from(sorted(WEIGHTS)))
@settings(max_examples=20)
def test_renumbering_and_rescaling_do_the_same_to_the_answer(seed, weight):
    rng = np.random.default_rng(seed)
    table, e = table_of("grid"), EdgeSet.complete(9)
    order, unit = rng.permutation(9), 10.0 ** rng.uniform(-6, 6, 9)
    plain = score_matching(Rows.checked(table), e, weight=weight).parameters
    found = score_matching(Rows.checked((table * unit)[:, order]), e, weight=weight).parameters.in_units(
        1.0 / unit[order]
    )
    np.testing.assert_allclose(found.dense, plain.dense[np.ix_(order, order)], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.bias, plain.bias[order], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["grid", "random graph", "trio"])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_many_rows_find_the_truth_and_tell_it_from_another(weight, name):
    """All parameters within five of their standard errors; a model 0.3 away is rejected."""
    table = table_of(name, 40_000, seed=1)
    model, rows = model_of(name), Rows.checked(table)
    here = truth(model)
    found = score_matching(rows, here.edges, weight=weight).parameters
    errors = score_matching_errors(rows, found, weight=weight).vector
    z = (found.vector - here.vector) / errors
    assert np.abs(z).max() < 5.0
    assert (z**2).mean() < 12.0  # 3.5 sd, were they all one
    assert errors.max() < 0.12
    wrong = here.vector + 0.3 * np.resize([1.0, -1.0], z.size)
    assert (((found.vector - wrong) / errors) ** 2).mean() > 24.0


def test_a_ridge_shrinks_couplings_to_0_and_diagonals_to_1_in_units_of_the_means():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    scale, norms = table_of("grid").mean(axis=0), []
    for ridge in (0.0, 1e-2, 1e-1, 1.0, 1e9):
        found = score_matching(rows, e, ridge=ridge).parameters.in_units(1.0 / scale)
        norms.append(np.sum(found.couplings**2) + np.sum((found.diagonal - 1.0) ** 2))
    assert (np.diff(norms) < 0).all()
    assert norms[-1] < 1e-12


@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: np.column_stack([x, 2.0 * x[:, 0]]),
        lambda x: np.column_stack([x, x[:, 0] + x[:, 1]]),
        lambda x: np.column_stack([x, x[:, 0]])[:4],
    ],
)
def test_what_is_singular_is_called_so(spoil):
    table = spoil(table_of("trio"))
    with pytest.raises(ValueError, match=rf"^X: {table.shape[0]} rows do not determine 14 parameters: .* singular"):
        score_matching(Rows.checked(table), EdgeSet.complete(4))
    assert np.isfinite(score_matching(Rows.checked(table), EdgeSet.complete(4), ridge=0.1).parameters.vector).all()


def test_unknown_weights_are_refused():
    with pytest.raises(ValueError, match=r"^weight: one of log, .* but weight = 'cubic'"):
        score_matching(Rows.checked(table_of("trio")), EdgeSet.complete(3), weight="cubic")

"""Standard errors: the formula, the spread over repeated tables, and how often 95% intervals hold the truth."""

from collections.abc import Callable

import numpy as np
import pytest
from known_tables import model_of, own_edges, quadrature, slopes, table_of, truth

import nnbm
from nnbm.learning.edges import EdgeSet
from nnbm.learning.likelihood import likelihood
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.learning.pseudolikelihood import log_pseudolikelihoods, pseudolikelihood, pseudolikelihood_blocks
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import pseudolikelihood_errors, score_matching_errors
from nnbm.learning.score_matching import score_matching

QUANTILE = 1.959964  # of the normal: 95% lie within


def by_pseudolikelihood(rows: Rows, edges: EdgeSet) -> tuple[Estimate, Parameters]:
    found = pseudolikelihood(rows, edges)
    return found, pseudolikelihood_errors(rows, found.parameters)


def by_score_matching(rows: Rows, edges: EdgeSet) -> tuple[Estimate, Parameters]:
    found = score_matching(rows, edges)
    return found, score_matching_errors(rows, found.parameters)


def by_likelihood(rows: Rows, edges: EdgeSet) -> tuple[Estimate, Parameters]:
    found = likelihood(rows, edges, threads=1)
    return found, found.errors


ESTIMATORS: dict[str, Callable[[Rows, EdgeSet], tuple[Estimate, Parameters]]] = {
    "pseudolikelihood": by_pseudolikelihood,
    "score matching": by_score_matching,
    "likelihood": by_likelihood,
}


def test_errors_are_the_sandwich_as_written():
    """H^-1 J H^-1 / N with H and J from differences of log_pseudolikelihoods, in the table's own units."""
    table, e = table_of("trio"), EdgeSet.complete(3)
    rows = Rows.checked(table)
    here = pseudolikelihood(rows, e).parameters
    scores = slopes(lambda t: log_pseudolikelihoods(rows, Parameters.from_vector(e, t)), here.vector)
    gradient = lambda t: pseudolikelihood_blocks(rows, Parameters.from_vector(e, t)).total_gradient()  # noqa: E731
    bread = np.linalg.inv(slopes(gradient, here.vector))
    expected = np.sqrt(np.diagonal(bread @ (scores.T @ scores / 4000) @ bread) / 4000)
    np.testing.assert_allclose(pseudolikelihood_errors(rows, here).vector, expected, rtol=1e-4)


def test_errors_of_one_variable_are_those_of_maximum_likelihood():
    """The model being true, H = J = F; the bound is four standard errors of a fourth moment from 40,000 rows."""
    model = nnbm.NNBM([0.4], [[1.2]])
    table = nnbm.sample(model, 10_000, chains=4, thin=2, seed=0, threads=1, progress=False).flat
    rows, e = Rows.checked(table), EdgeSet.complete(1)
    errors = pseudolikelihood_errors(rows, pseudolikelihood(rows, e).parameters).vector
    fisher = quadrature(truth(model, e)).fisher
    np.testing.assert_allclose(errors, np.sqrt(np.diagonal(np.linalg.inv(fisher)) / 40_000), rtol=0.05)


@pytest.mark.parametrize("name", ["pseudolikelihood", "score matching"])
def test_errors_carry_the_units_of_their_parameters(name):
    table, unit = table_of("grid"), 10.0 ** np.linspace(-3, 3, 9)
    e = own_edges(model_of("grid"))
    _, plain = ESTIMATORS[name](Rows.checked(table), e)
    _, scaled = ESTIMATORS[name](Rows.checked(table * unit), e)
    np.testing.assert_allclose(scaled.vector, plain.in_units(unit).vector, rtol=1e-6)


@pytest.mark.parametrize("errors", [pseudolikelihood_errors, score_matching_errors])
def test_what_is_not_determined_has_infinite_errors(errors):
    rows = Rows.of_draws(table_of("grid")[:1])  # one row for 54 parameters
    e = EdgeSet.complete(9)
    found = errors(rows, Parameters(e, np.zeros(9), np.ones(9), np.zeros(e.size)))
    assert np.isinf(found.vector).all()


def test_too_many_parameters_have_none():
    e = EdgeSet.complete(100)
    rows = Rows(np.random.default_rng(0).gamma(1.0, size=(100, 20)))
    with pytest.raises(ValueError, match=r"^standard errors: matrices of 5150 x 5150"):
        score_matching_errors(rows, Parameters(e, np.zeros(100), np.ones(100), np.zeros(e.size)))


def deviations(name: str, model: nnbm.NNBM, tables) -> tuple[np.ndarray, np.ndarray]:
    """(tables, parameters) estimates minus the truth, and their standard errors."""
    e = own_edges(model)
    here, missed, claimed = truth(model).vector, [], []
    for table in tables:
        found, errors = ESTIMATORS[name](Rows.checked(table), e)
        missed.append(found.parameters.vector - here)
        claimed.append(errors.vector)
    return np.array(missed), np.array(claimed)


def coverage(missed: np.ndarray, claimed: np.ndarray) -> tuple[float, float]:
    """How often intervals hold the truth, pooled over parameters, and its standard error, from table to table."""
    held = (np.abs(missed) < QUANTILE * claimed).mean(axis=1)
    return float(held.mean()), float(held.std(ddof=1) / np.sqrt(held.size))


@pytest.mark.parametrize("name", ["pseudolikelihood", "score matching"])
def test_errors_are_the_spread_over_repeated_tables(name):
    """200 tables of 600 rows. An sd from 200 has a standard error of 5%; the spread of 30 of them adds nothing."""
    tables = np.split(table_of("grid", 120_000, seed=2), 200)
    missed, claimed = deviations(name, model_of("grid"), [np.random.default_rng(0).permutation(t) for t in tables])
    ratio = claimed.mean(axis=0) / missed.std(axis=0, ddof=1)
    assert np.abs(ratio - 1.0).max() < 4.0 / np.sqrt(2.0 * 199) + 0.03
    assert abs(ratio.mean() - 1.0) < 0.06
    held, error = coverage(missed, claimed)
    binomial = np.sqrt(0.95 * 0.05 / missed.size)
    assert error < 4.0 * binomial  # parameters of one table depend on each other, but not much
    assert abs(held - 0.95) < 4.0 * max(error, binomial) + 0.005  # 600 rows are not infinitely many
    # negative controls: errors a fifth too small or too large are found out
    for wrong in (0.8, 1.25):
        assert abs(coverage(missed, wrong * claimed)[0] - 0.95) > 4.0 * max(error, binomial) + 0.005


def test_likelihood_covers_the_truth_on_small_tables():
    tables = np.split(table_of("grid", 60_000, seed=2), 30)
    missed, claimed = deviations("likelihood", model_of("grid"), tables)
    held, error = coverage(missed, claimed)
    assert abs(held - 0.95) < 4.0 * max(error, np.sqrt(0.95 * 0.05 / missed.size)) + 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "tables"), [(lambda: nnbm.gallery.square_grid(6, 6), 40), (nnbm.gallery.orientation_tuning, 20)]
)
def test_intervals_cover_the_truth_on_the_papers_models(build, tables):
    """N = 10,000. Measured: grid .949, .951, .950 (80 other tables), ring .948, .948, .945 (20 other tables)."""
    model = build()
    drawn = [nnbm.sample(model, 2500, chains=4, thin=20, seed=k, threads=1, progress=False).flat for k in range(tables)]
    found = {name: coverage(*deviations(name, model, drawn)) for name in ESTIMATORS}
    print(model, found)  # noqa: T201
    for held, error in found.values():
        assert error < 0.006
        assert 0.93 < held < 0.97

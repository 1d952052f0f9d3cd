"""Maximum likelihood on draws against the maximum by quadrature, within its own Monte-Carlo noise."""

import numpy as np
import pytest
from known_tables import exact_maximum, model_of, own_edges, quadrature, table_of

import nnbm
from nnbm.learning.edges import EdgeSet
from nnbm.learning.likelihood import likelihood
from nnbm.learning.moments import moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import pseudolikelihood
from nnbm.learning.rows import Rows
from nnbm.learning.statistics import mean_statistics
from nnbm.site import HALF_LINE

PAIRS = {
    "attracting": nnbm.NNBM([0.5, -0.3], [[1.0, -0.6], [-0.6, 1.5]]),
    "repelling, not positive definite": nnbm.NNBM([0.8, 0.5], [[1.0, 1.6], [1.6, 2.0]]),
}
SEEDS = 12


def percent_of_noise(found):
    return float(found.remarks[0].removeprefix("Monte-Carlo noise adds ").split("%")[0])


@pytest.mark.parametrize("name", PAIRS)
def test_two_variables_against_quadrature(name):
    """The mean over seeds lies within its own noise of the maximum; the noise of one run is small against its error."""
    table = nnbm.sample(PAIRS[name], 500, chains=4, thin=5, seed=0, threads=1, progress=False).flat
    rows, e = Rows.checked(table), EdgeSet.complete(2)
    start = pseudolikelihood(rows, e).parameters
    exact = exact_maximum(e, mean_statistics(moments(rows, e)), start.vector)
    error = np.sqrt(np.diagonal(np.linalg.inv(quadrature(Parameters.from_vector(e, exact)).fisher)) / 2000)
    runs = [likelihood(rows, e, seed=seed, threads=1) for seed in range(SEEDS)]
    found = np.array([run.parameters.vector for run in runs])
    noise = found.std(axis=0, ddof=1)
    assert (noise < 0.2 * error).all()
    # a step that is called settled leaves a second-order rest, here below 2% of a standard error
    assert (np.abs(found.mean(axis=0) - exact) < 5.0 * noise / np.sqrt(SEEDS) + 0.02 * error).all()
    if np.abs(start.vector - exact).max() > 0.3 * error.max():  # else pseudo-likelihood happens to be as good
        assert np.abs((found - exact) / error).max() < np.abs((start.vector - exact) / error).max()
    claimed = np.array([run.errors.vector for run in runs])
    spread = claimed.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    assert (np.abs(claimed.mean(axis=0) - error) < 5.0 * spread + 0.01 * error).all()


def test_one_variable_has_next_to_no_noise():
    """Its pseudo-likelihood is its likelihood: control variates leave what their sampled coefficients are off by."""
    table = table_of("trio")[:, [0]]
    found = likelihood(Rows.checked(table), EdgeSet.complete(1), threads=1)
    l, r = HALF_LINE.from_moments(table.mean(axis=0), (table**2).mean(axis=0))
    gap = (found.parameters.vector - np.concatenate([l, r])) / found.errors.vector
    assert np.abs(gap).max() < 0.1
    assert percent_of_noise(found) < 1.0
    fisher = quadrature(found.parameters).fisher
    np.testing.assert_allclose(found.errors.vector, np.sqrt(np.diagonal(np.linalg.inv(fisher)) / 4000), rtol=0.06)


def test_weights_count_like_repeats():
    table, repeats = table_of("trio")[:800], np.random.default_rng(0).integers(0, 3, 800)
    e = EdgeSet.complete(3)
    runs = [
        likelihood(rows, e, seed=0, threads=1)
        for rows in (Rows.checked(table, weights=repeats), Rows.checked(np.repeat(table, repeats, axis=0)))
    ]
    # the starts of the chains are drawn from other tables, so agreement is up to Monte-Carlo noise
    gap = (runs[0].parameters.vector - runs[1].parameters.vector) / runs[1].errors.vector
    assert np.abs(gap).max() < 0.5
    np.testing.assert_allclose(runs[0].errors.vector, runs[1].errors.vector, rtol=0.1)


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads():
    rows, e = Rows.checked(table_of("trio")), EdgeSet.complete(3)
    one, two = (likelihood(rows, e, seed=4, threads=threads).parameters.vector for threads in (1, 2))
    other = likelihood(rows, e, seed=5, threads=1).parameters.vector
    np.testing.assert_allclose(one, two, rtol=1e-12)
    assert (one != other).all()


def test_a_start_far_off_leads_to_the_same_maximum_and_errors():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    near = likelihood(rows, e, seed=0, threads=1)
    start = Parameters(e, near.parameters.bias + 0.4, near.parameters.diagonal * 1.5, near.parameters.couplings * 0.5)
    far = likelihood(rows, e, seed=1, start=start, threads=1)
    assert far.iterations > 1
    gap = (far.parameters.vector - near.parameters.vector) / near.errors.vector
    assert (gap**2).mean() < 0.1  # what settles leaves 0.02, and noise of both
    apart = far.errors.vector / near.errors.vector - 1.0
    assert np.sqrt((apart**2).mean()) < 0.06  # of 8,000 draws: 2 to 3% each
    assert np.abs(apart).max() < 0.16  # the largest of 30, five standard deviations


def test_monte_carlo_noise_does_not_become_bias():
    """The mean over 40 seeds of few draws against one run of many, in standard errors, averaged over the w_ii."""
    rows, e = Rows.checked(table_of("complete")), own_edges(model_of("complete"))
    start = pseudolikelihood(rows, e).parameters
    many = likelihood(rows, e, start=start, draws=200_000, seed=0, threads=1)
    gaps = []
    for seed in range(40):
        few = likelihood(rows, e, start=start, draws=2000, seed=seed, threads=1)
        gaps.append(((few.parameters.diagonal - many.parameters.diagonal) / many.errors.diagonal).mean())
    assert abs(np.mean(gaps)) < 0.05 + 4.0 * np.std(gaps, ddof=1) / np.sqrt(40)


def test_units_do_not_matter():
    table, unit = table_of("trio"), np.array([1e-4, 1.0, 1e5])
    e = EdgeSet.complete(3)
    plain = likelihood(Rows.checked(table), e, seed=0, threads=1)
    scaled = likelihood(Rows.checked(table * unit), e, seed=0, threads=1)
    gap = (scaled.parameters.in_units(1.0 / unit).vector - plain.parameters.vector) / plain.errors.vector
    assert np.abs(gap).max() < 0.3  # rounding may send the chains other ways
    np.testing.assert_allclose(scaled.errors.in_units(1.0 / unit).vector, plain.errors.vector, rtol=0.1)


def test_too_few_draws_are_told():
    rows, e = Rows.checked(table_of("grid")), own_edges(model_of("grid"))
    enough, few, fewest = (likelihood(rows, e, draws=draws, seed=0, threads=1) for draws in (None, 640, 112))
    assert percent_of_noise(few) > 2.0 * max(percent_of_noise(enough), 0.2)
    assert percent_of_noise(fewest) > 2.0 * percent_of_noise(few)
    assert len(enough.remarks) == 1
    assert any("7 draws per chain are too few to tell" in said for said in fewest.doubts)


def test_too_many_parameters_are_refused():
    rows = Rows(np.random.default_rng(0).gamma(1.0, size=(100, 20)))
    with pytest.raises(ValueError, match=r"^likelihood: matrices of 5150 x 5150"):
        likelihood(rows, EdgeSet.complete(100))


@pytest.mark.parametrize("names", [None, (), ("a", "b", "c")])
def test_names_may_be_missing(names):
    rows = Rows.checked(table_of("trio"))
    plain = likelihood(rows, EdgeSet.complete(3), seed=0, threads=1).parameters.vector
    named = likelihood(rows, EdgeSet.complete(3), seed=0, threads=1, names=names).parameters.vector
    np.testing.assert_array_equal(named, plain)


def test_a_hopeless_table_is_called_so():
    with pytest.raises(ValueError, match=r"^X: .* has no maximum"):
        likelihood(Rows.checked(np.random.default_rng(0).gamma(1.5, size=(4, 4))), EdgeSet.complete(4))

"""Estimators between other ends: the truth within the errors, Gaussian algebra without walls, what must not matter."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import nnbm
from nnbm import NNBM, NonnegativeBoltzmann, sample
from nnbm.learning.ascent import ascent
from nnbm.learning.edges import EdgeSet
from nnbm.learning.fit import Request, fit, fit_moments
from nnbm.learning.inverse import INVERSES, inverse
from nnbm.learning.moments import moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import (
    RidgePenalty,
    log_pseudolikelihoods,
    pseudolikelihood,
    pseudolikelihood_blocks,
)
from nnbm.learning.rows import Rows
from nnbm.learning.score_matching import WEIGHTS, score_matching

# every kind of ends along a chain, one w_ii negative
LOWER = np.array([0.0, -np.inf, -1.0, 0.5, -np.inf, -1.0])
UPPER = np.array([np.inf, np.inf, 1.5, np.inf, 0.3, 1.0])
CONSISTENT = ("score_matching", "pseudolikelihood", "likelihood")


@functools.cache
def truth() -> NNBM:
    w = np.diag([1.0, 1.3, 2.0, 1.0, 1.5, -0.8])
    for i, value in enumerate([0.4, -0.5, 0.6, -0.4, 0.7]):
        w[i, i + 1] = w[i + 1, i] = value
    return NNBM([0.3, -0.2, 0.5, 0.4, 0.1, -0.2], w, lower=LOWER, upper=UPPER)


@functools.cache
def table() -> np.ndarray:
    return sample(truth(), 5000, chains=4, thin=5, seed=0).flat


def rows_of(x, lower=LOWER, upper=UPPER) -> Rows:
    return Rows.checked(x, lower=lower, upper=upper)


def edges() -> EdgeSet:
    return EdgeSet(6, *truth().edges)


def true_vector() -> np.ndarray:
    return Parameters.of_model(truth(), edges()).vector


@pytest.mark.parametrize("method", CONSISTENT)
def test_the_truth_lies_within_the_errors_and_other_ends_do_not_tell_it(method):
    found = fit(rows_of(table()), edges(), Request(method)).estimate
    scores = (found.parameters.vector - true_vector()) / found.errors.vector
    assert np.abs(scores).max() < 4.5
    assert 0.4 < np.sqrt(np.mean(scores**2)) < 1.7
    if method != "likelihood":
        blind = fit(rows_of(table(), -np.inf, np.inf), edges(), Request(method)).estimate
        assert np.abs((blind.parameters.vector - true_vector()) / blind.errors.vector).max() > 10.0


def test_score_matching_is_near_pseudolikelihood():
    errors = [fit(rows_of(table()), edges(), Request(m)).estimate.errors.vector for m in CONSISTENT[:2]]
    assert (errors[0] / errors[1]).mean() < 1.3


@pytest.mark.parametrize("weight", WEIGHTS)
def test_every_weight_is_consistent(weight):
    found = score_matching(rows_of(table()), edges(), weight=weight).parameters.vector
    errors = fit(rows_of(table()), edges(), Request("score_matching")).estimate.errors.vector
    assert np.abs((found - true_vector()) / errors).max() < 8.0  # some weights are less efficient


def test_the_gradient_is_that_of_finite_differences():
    rows, e, theta, step = rows_of(table()[:500]), edges(), true_vector(), 1e-5
    found = pseudolikelihood_blocks(rows, Parameters.from_vector(e, theta)).total_gradient()
    for k in range(theta.size):
        up, down = (
            log_pseudolikelihoods(rows, Parameters.from_vector(e, theta + t * step * np.eye(theta.size)[k])).mean()
            for t in (1, -1)
        )
        assert found[k] == pytest.approx((up - down) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("method", ["score_matching", "pseudolikelihood", *INVERSES])
def test_mirrors_units_and_the_origin_do_not_matter(method):
    rng = np.random.default_rng(0)
    scale, move = rng.uniform(0.3, 4.0, 6) * rng.choice([-1.0, 1.0], 6), rng.normal(size=6)
    ends = np.sort([scale * LOWER + move, scale * UPPER + move], axis=0)
    plain = fit(rows_of(table()), edges(), Request(method)).estimate.parameters
    other = fit(rows_of(table() * scale + move, *ends), edges(), Request(method)).estimate.parameters
    np.testing.assert_allclose(other.dense * np.outer(scale, scale), plain.dense, atol=2e-6)
    np.testing.assert_allclose((other.bias - other.dense @ move) * scale, plain.bias, atol=2e-6)


@pytest.mark.parametrize("method", ["auto", "score_matching", "pseudolikelihood", "isusp", "ep"])
@pytest.mark.parametrize("place", [1.0, 1e3])
def test_without_walls_every_estimator_is_gaussian_algebra(method, place):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5)) + place * rng.normal(size=5)
    found = fit(rows_of(x, -np.inf, np.inf), EdgeSet.complete(5), Request(method)).estimate.parameters
    precision = np.linalg.inv(np.cov(x.T, bias=True))
    np.testing.assert_allclose(found.dense, precision, rtol=0, atol=1e-10 * np.abs(precision).max())
    bias = precision @ x.mean(axis=0)
    np.testing.assert_allclose(found.bias, bias, rtol=0, atol=1e-10 * np.abs(bias).max())


@pytest.mark.parametrize("method", INVERSES)
def test_the_loop_closes(method):
    data = moments(rows_of(table()), edges())
    found = nnbm.infer(fit_moments(data, Request(method)).model, method)
    np.testing.assert_allclose(found.mean, data.mean, atol=1e-7)
    if method != "ep":  # the inverse is of its Gaussian's covariances
        i, j = edges().i, edges().j
        np.testing.assert_allclose(found.covariance[i, j], data.covariance, atol=1e-7)


def test_the_climb_ends_where_the_inverse_does():
    data = moments(rows_of(table()), edges())
    climbed, direct = ascent(data).parameters, inverse(data).parameters
    np.testing.assert_allclose(climbed.vector, direct.vector, atol=1e-5)


def test_a_ridge_draws_towards_independence():
    rows = rows_of(table()[:300])
    free, mild, strong = (pseudolikelihood(rows, EdgeSet.complete(6), ridge=r).parameters for r in (0.0, 10.0, 1000.0))
    sizes = [np.abs(found.couplings).sum() for found in (free, mild, strong)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 0.1 * sizes[0]
    assert abs(strong.diagonal[5]) < 0.1 * abs(free.diagonal[5])


def test_values_outside_are_named():
    with pytest.raises(ValueError, match=r"between `lower` and `upper` of each variable, but row 3 of 'e' is 0.31"):
        Rows.checked(_spoiled(), names=list("abcdef"), lower=LOWER, upper=UPPER)
    with pytest.raises(ValueError, match=r"the model lives on 0 <= x <= 1, but row 0 of column 1 is 1.5"):
        Rows.checked([[0.5, 1.5], [0.2, 0.3]], upper=1.0)


def _spoiled():
    x = table()[:5].copy()
    x[3, 4] = 0.31
    return x


def test_downs_says_what_it_needs():
    with pytest.raises(ValueError, match="downs expands around exponentials on x >= 0"):
        fit(rows_of(table()), edges(), Request("downs"))


@pytest.mark.parametrize("method", ["auto", "isusp"])
def test_the_estimator_keeps_its_ends(method, tmp_path):
    est = NonnegativeBoltzmann(method, edges=truth().edges, lower=LOWER, upper=UPPER).fit(table())
    np.testing.assert_array_equal(est.model_.upper, UPPER)
    assert ((est.sample(100, seed=0) >= LOWER) & (est.sample(100, seed=0) <= UPPER)).all()
    assert ((est.transform(table()[:50]) >= LOWER) & (est.transform(table()[:50]) <= UPPER)).all()
    est.save(tmp_path / "fit.npz")
    back = NonnegativeBoltzmann.load(tmp_path / "fit.npz")
    assert back.model_ == est.model_
    np.testing.assert_array_equal(back.score_samples(table()[:10]), est.score_samples(table()[:10]))
    with pytest.raises(ValueError, match="between `lower` and `upper`"):
        back.score_samples(_spoiled())


def test_parts_of_a_table_are_between_the_same_ends():
    est = NonnegativeBoltzmann("isusp", edges=truth().edges, lower=LOWER, upper=UPPER)
    whole = est.fit(table()).coupling_.toarray()
    for part in np.array_split(table(), 3):
        est.partial_fit(part)
    np.testing.assert_allclose(est.coupling_.toarray(), whole, atol=1e-9)
    with pytest.raises(ValueError, match="lower, upper: moments between the same ends are needed, but they changed"):
        est.set_params(upper=UPPER + 1.0).partial_fit(table()[:100])


def test_scikit_learn_copies_and_searches_with_ends():
    x = table()[:600]
    est = NonnegativeBoltzmann("score_matching", edges=truth().edges, lower=LOWER, upper=UPPER)
    copied = clone(est).fit(x)
    np.testing.assert_array_equal(copied.coupling_.toarray(), est.fit(x).coupling_.toarray())
    search = GridSearchCV(clone(est), {"ridge": [0.0, 1000.0], "upper": [UPPER, UPPER + 5.0]}, cv=3).fit(x)
    assert search.best_params_["ridge"] == 0.0
    np.testing.assert_array_equal(search.best_params_["upper"], UPPER)  # the true ends predict best


@pytest.mark.parametrize("seed", range(3))
def test_the_ridge_between_other_ends_is_its_own_integral(seed):
    rng, step = np.random.default_rng(seed), 1e-6
    penalty = RidgePenalty.of(rows_of(table()[:50]), edges(), 0.7)
    at = rng.uniform(0.2, 2.0, edges().parameters)
    at[6:12] *= np.where(np.isfinite(UPPER - LOWER), rng.choice([-1.0, 1.0], 6), 1.0)
    for k, direction in enumerate(np.eye(at.size)):
        up, down = at + step * direction, at - step * direction
        slope = (penalty.value(up) - penalty.value(down)) / (2 * step)
        bend = (penalty.gradient(up)[k] - penalty.gradient(down)[k]) / (2 * step)
        assert penalty.gradient(at)[k] == pytest.approx(slope, abs=1e-7)
        assert penalty.curvature(at)[k] == pytest.approx(bend, rel=1e-6, abs=1e-7)


def test_labelled_ends_are_those_of_the_columns():
    frame = pd.DataFrame(table()[:500], columns=list("abcdef"))
    upper, lower = pd.Series(UPPER, index=frame.columns), pd.Series(LOWER, index=frame.columns)
    est = NonnegativeBoltzmann("isusp", edges=truth().edges, lower=lower, upper=upper).fit(frame)
    np.testing.assert_array_equal(est.model_.upper, UPPER)
    with pytest.raises(ValueError, match="upper: its labels must be those of the variables, in the same order"):
        NonnegativeBoltzmann("isusp", lower=lower, upper=upper[::-1]).fit(frame)
    with pytest.raises(ValueError, match="lower: its labels must be those of the variables"):
        NNBM(np.zeros(6), np.eye(6), lower=lower[::-1], upper=9.0, names=list("abcdef"))
    assert NNBM(np.zeros(6), np.eye(6), lower=lower, upper=9.0).names == ()  # nothing to compare with


@pytest.mark.parametrize("far", [1e6, 1e150, 1e308])
@pytest.mark.parametrize("method", ["score_matching", "pseudolikelihood", *INVERSES])
def test_a_wall_where_nothing_is_does_not_matter(method, far):
    x = sample(nnbm.gallery.square_grid(2, 2, coupling=0.4), 1000, seed=0).flat
    plain, found = (NonnegativeBoltzmann(method, upper=upper).fit(x).coupling_ for upper in (np.inf, far))
    # score matching weighs by the distance from both walls, which is 1/far nearer than that from one
    np.testing.assert_allclose(found, plain, atol=1e-6 if method == "score_matching" else 1e-9)


def test_the_likelihood_without_walls_is_gaussian_algebra_within_its_noise():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3))
    found = fit(rows_of(x, -np.inf, np.inf), EdgeSet.complete(3), Request("likelihood")).estimate
    precision = np.linalg.inv(np.cov(x.T, bias=True))
    apart = np.abs(found.parameters.dense - precision) / found.errors.dense
    assert apart.max() < 0.5  # Monte-Carlo noise is a part of the errors
    floor = np.sqrt((np.outer(np.diag(precision), np.diag(precision)) + precision**2) / 400)
    np.testing.assert_allclose(found.errors.dense, floor, rtol=0.15)


def test_the_climb_without_walls_is_gaussian_algebra():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 4)) @ (np.eye(4) + 0.1 * rng.normal(size=(4, 4))) + 1.0
    data = moments(rows_of(x, -np.inf, np.inf), EdgeSet.complete(4))
    precision = np.linalg.inv(np.cov(x.T, bias=True))
    np.testing.assert_allclose(ascent(data).parameters.dense, precision, atol=1e-8)


def test_moments_alone_between_other_ends():
    data = moments(rows_of(table()), EdgeSet.complete(6))
    est = NonnegativeBoltzmann(lower=LOWER, upper=UPPER).fit_moments(data.mean, data.dense_covariance)
    direct = inverse(data, "isusp").parameters
    np.testing.assert_allclose(est.bias_, direct.bias, rtol=1e-6)
    with pytest.raises(ValueError, match="a mean lies strictly inside the domain"):
        NonnegativeBoltzmann(upper=1.0).fit_moments([0.5, 1.2], np.eye(2) * 0.1)

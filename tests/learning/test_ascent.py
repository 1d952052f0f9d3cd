"""The ascent ends where its inference method has the data's moments: where `inverse` ends, or beyond its reach."""

import numpy as np
import pytest
from known_tables import exact_maximum, model_of, own_edges, table_of

import nnbm
from nnbm.learning.ascent import ascent
from nnbm.learning.edges import EdgeSet
from nnbm.learning.inverse import inverse
from nnbm.learning.moments import Moments, moments
from nnbm.learning.rows import Rows
from nnbm.learning.statistics import mean_statistics

QUIET = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")


def data_of(name: str, complete: bool = False) -> Moments:
    edges = EdgeSet.complete(model_of(name).n) if complete else own_edges(model_of(name))
    return moments(Rows.checked(table_of(name)), edges)


def in_units(found, data: Moments) -> np.ndarray:
    """The parameters in units where every standard deviation is 1, in which the ascent's tolerance is meant."""
    return found.parameters.in_units(1.0 / np.sqrt(data.variance)).vector


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("name", ["grid", "random graph", "complete"])
@pytest.mark.parametrize("method", ["susp", "isusp"])
def test_the_ascent_ends_where_the_inverse_does(method, name, complete):
    data = data_of(name, complete)
    climbed, direct = ascent(data, method), inverse(data, method)
    assert climbed.method == f"ascent ({method})"
    np.testing.assert_allclose(in_units(climbed, data), in_units(direct, data), atol=1e-5)


@QUIET
@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, method) for name in ("grid", "complete", "trio") for method in ("susp", "isusp", "ep")),
        ("trio", "auto"),
        ("trio", "exact"),
    ],
)
def test_infer_finds_the_moments_again(name, method, complete):
    """EP's covariance is its linear response here, where `inverse` takes its Gaussian's: they are two estimators."""
    data = data_of(name, complete)
    e, sd = data.edges, np.sqrt(data.variance)
    found = nnbm.infer(ascent(data, method).parameters.model(), method, throw=False)
    np.testing.assert_allclose(found.mean / sd, data.mean / sd, atol=3e-7)
    np.testing.assert_allclose(found.second_moment / sd**2, data.second_moment / sd**2, atol=3e-7)
    covariance = found.covariance[e.i, e.j]
    np.testing.assert_allclose(covariance / (sd[e.i] * sd[e.j]), data.covariance / (sd[e.i] * sd[e.j]), atol=3e-6)


def test_with_exact_inference_it_is_maximum_likelihood():
    """Two variables against Newton's method on quadratures."""
    table = table_of("trio")[:, :2]
    data = moments(Rows.checked(table), EdgeSet.complete(2))
    climbed = ascent(data, "exact").parameters
    expected = exact_maximum(data.edges, mean_statistics(data), climbed.vector * 1.02)
    np.testing.assert_allclose(climbed.vector, expected, atol=3e-6)


def test_units_do_not_matter():
    data, unit = data_of("grid"), 10.0 ** np.linspace(-3, 3, 9)
    e = data.edges
    scaled = Moments(e, 1.0, data.mean * unit, data.variance * unit**2, data.covariance * unit[e.i] * unit[e.j])
    one, other = ascent(data), ascent(scaled)
    np.testing.assert_allclose(in_units(other, scaled), in_units(one, data), atol=1e-6)


@pytest.mark.parametrize("method", ["naive", "tap", "newton"])
def test_methods_without_covariances_are_refused(method):
    with pytest.raises(ValueError, match=rf"^method: .* covariances is needed .*but method = '{method}'"):
        ascent(data_of("grid"), method)


def test_variables_with_more_spread_than_an_exponential_are_named():
    data = data_of("grid")
    variance = data.variance.copy()
    variance[4] = 1.1 * data.mean[4] ** 2
    with pytest.raises(nnbm.NoSite, match="does not hold for 'e'"):
        ascent(Moments(data.edges, 1.0, data.mean, variance, data.covariance), names="abcdefghi")


def test_a_climb_that_ends_before_says_so():
    e = EdgeSet(4, np.array([0, 0, 1, 2]), np.array([1, 3, 2, 3]))
    impossible = Moments(e, 1.0, np.full(4, 1.2), np.ones(4), np.array([0.99, -0.99, 0.99, 0.99]))
    with pytest.raises(nnbm.NotConverged, match=r"^X: the ascent with isusp ended after \d+ steps"):
        ascent(impossible)

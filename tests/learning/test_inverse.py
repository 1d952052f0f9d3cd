"""The inverse problem: infer, by the same method, finds the data's moments again; and all that follows from that."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import model_of, own_edges, slopes, table_of

import nnbm
from nnbm import Options, infer
from nnbm.learning import inverse as module
from nnbm.learning.edges import EdgeSet
from nnbm.learning.inverse import INVERSES, _by_fixed_point, _by_newton, _Equations, _sites, inverse, sites_of
from nnbm.learning.moments import Moments, moments
from nnbm.learning.rows import Rows
from nnbm.site import HALF_LINE

TIGHT = Options(tolerance=1e-12)
# what is learned from draws of the trio and the ring lies at the edge of what mean fields describe, and infer says so
QUIET = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")


def data_of(name: str, complete: bool = False) -> Moments:
    edges = EdgeSet.complete(model_of(name).n) if complete else own_edges(model_of(name))
    return moments(Rows.checked(table_of(name)), edges)


def covariance_by(method, model):
    """(n, n) the covariance that the method's own equations speak of: EP's is its Gaussian's, not the response."""
    found = infer(model, method, options=TIGHT, throw=False)
    assert found.converged
    if method != "ep":
        return found, found.covariance
    coupling = model.coupling if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()
    return found, np.linalg.inv(coupling + np.diag(1.0 / found.variance - found.r))


@QUIET
@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("name", ["grid", "random graph", "complete", "trio"])
@pytest.mark.parametrize("method", INVERSES)
def test_infer_finds_the_moments_again(method, name, complete):
    data = data_of(name, complete)
    e = data.edges
    found, covariance = covariance_by(method, inverse(data, method, options=TIGHT).parameters.model())
    sd = np.sqrt(data.variance)
    np.testing.assert_allclose(found.mean / sd, data.mean / sd, atol=1e-8)
    np.testing.assert_allclose(found.second_moment / sd**2, data.second_moment / sd**2, atol=1e-7)
    scale = sd[e.i] * sd[e.j]
    np.testing.assert_allclose(covariance[e.i, e.j] / scale, data.covariance / scale, atol=1e-7)
    if method != "susp":
        np.testing.assert_allclose(np.diagonal(covariance), data.variance, rtol=1e-7)


@pytest.mark.parametrize("method", INVERSES)
def test_exact_susceptibilities_give_the_model_back(method):
    """From a method's own moments of a model, that model."""
    model = model_of("grid")
    found, covariance = covariance_by(method, model)
    e = own_edges(model)
    data = Moments(e, 1.0, found.mean, found.variance, covariance[e.i, e.j])
    learned = inverse(data, method, options=TIGHT).parameters
    np.testing.assert_allclose(learned.couplings, model.edge_couplings, atol=1e-7)
    np.testing.assert_allclose(learned.diagonal, model.diagonal, atol=1e-7)
    np.testing.assert_allclose(learned.bias, model.bias, atol=1e-7)


def equations_of(data: Moments, method: str) -> _Equations:
    here = data.standardised()
    return _Equations(here.edges, here.covariance, _sites(here.site, *sites_of(here), method), method != "susp")


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("method", INVERSES)
def test_the_jacobian_is_that_of_finite_differences(method, complete):
    equations = equations_of(data_of("grid", complete), method)
    rng = np.random.default_rng(0)
    y = equations.uncoupled + rng.uniform(-0.05, 0.05, equations.uncoupled.size)
    first, second = equations.pairs
    here = equations.state(y)
    expected = slopes(lambda y: equations.state(y).covariance[first, second], y)
    jacobian = equations.jacobian(here)
    np.testing.assert_allclose(jacobian, expected, atol=1e-8)
    for _ in range(3):
        move = rng.normal(size=y.size)
        np.testing.assert_allclose(equations.change(here, move), jacobian @ move, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("method", INVERSES)
def test_krylov_ends_where_the_dense_jacobian_does(method, complete, monkeypatch):
    data = data_of("grid", complete)
    dense = inverse(data, method).parameters
    monkeypatch.setattr(module, "_DENSE_UNKNOWNS", 0)
    np.testing.assert_allclose(inverse(data, method).parameters.vector, dense.vector, atol=1e-7)


@pytest.mark.parametrize("method", ["isusp", "ep"])
@pytest.mark.parametrize("name", ["grid", "random graph", "complete", "trio"])
def test_fixed_point_and_newton_agree_on_complete_graphs(method, name):
    equations = equations_of(data_of(name, complete=True), method)
    for found, expected in zip(_by_fixed_point(equations, TIGHT)[:2], _by_newton(equations, TIGHT)[:2], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_ep_of_a_complete_graph_is_its_closed_form():
    """EQ 7: w_ij = [C^-1]_ij, w_ii = [C^-1]_ii - 1/s_i + r_i, b = C^-1 m - m/s + l."""
    data = data_of("trio", complete=True)
    precision = np.linalg.inv(data.dense_covariance)
    l, r = HALF_LINE.from_mean_variance(data.mean, data.variance)
    found = inverse(data, "ep").parameters
    diagonal = np.diagonal(precision) - 1.0 / data.variance + r
    np.testing.assert_allclose(found.dense, precision - np.diag(np.diagonal(precision) - diagonal), rtol=1e-8)
    np.testing.assert_allclose(found.bias, precision @ data.mean - data.mean / data.variance + l, rtol=1e-8, atol=1e-9)


def test_isusp_obeys_the_equations_of_the_paper():
    """EQ 7's b and w_ii from w and Λ, and EQ 4.1 written as the inverse of the 2n x 2n Hessian."""
    data = data_of("grid", complete=True)
    e, m, s, n = data.edges, data.mean, data.variance, 9
    l, r = HALF_LINE.from_mean_variance(m, s)
    found = inverse(data, "isusp").parameters
    w = e.symmetric(found.couplings)
    reaction = found.diagonal - r - (w**2) @ s
    np.testing.assert_allclose(found.bias, l + w @ m + (found.diagonal - r) * m, rtol=1e-9, atol=1e-10)
    site = HALF_LINE.moments(l, r)
    a, c, d = site.variance, site.covariance_x_xx, site.variance_xx
    det = a * d - c * c
    hessian = np.block(
        [
            [
                w - 2.0 * w**2 * np.outer(m, m) + np.diag((w**2) @ s + reaction + d / det),
                w**2 * m[:, None] - np.diag(c / det),
            ],
            [(w**2 * m[:, None]).T - np.diag(c / det), -0.5 * w**2 + np.diag(a / det)],
        ]
    )
    np.testing.assert_allclose(np.linalg.inv(hessian)[:n, :n], data.dense_covariance, atol=1e-8)


@given(st.integers(0, 10**6), st.sampled_from(INVERSES), st.booleans())
@settings(max_examples=25)
def test_renumbering_and_rescaling_the_variables_does_the_same_to_the_answer(seed, method, complete):
    rng = np.random.default_rng(seed)
    table, e = table_of("random graph"), own_edges(model_of("random graph"))
    e = EdgeSet.complete(10) if complete else e
    order, unit = rng.permutation(10), 10.0 ** rng.uniform(-4, 4, 10)
    place = np.argsort(order)
    i, j = place[e.i], place[e.j]
    code = np.sort(np.minimum(i, j) * 10 + np.maximum(i, j))
    changed = inverse(moments(Rows.checked((table * unit)[:, order]), EdgeSet(10, code // 10, code % 10)), method)
    plain = inverse(moments(Rows.checked(table), e), method).parameters
    expected = plain.in_units(unit)
    w = expected.dense[np.ix_(order, order)]
    size = np.sqrt(np.outer(np.diagonal(w), np.diagonal(w)))
    np.testing.assert_allclose(changed.parameters.dense / size, w / size, atol=1e-7)
    np.testing.assert_allclose(changed.parameters.bias * unit[order], plain.bias[order], atol=1e-7)


@pytest.mark.parametrize("method", INVERSES)
def test_disconnected_parts_are_learned_apart(method):
    data = data_of("grid")
    e = data.edges
    double = EdgeSet(18, np.concatenate([e.i, e.i + 9]), np.concatenate([e.j, e.j + 9]))
    twice = Moments(double, 1.0, *(np.tile(part, 2) for part in (data.mean, data.variance, data.covariance)))
    one, two = inverse(data, method).parameters, inverse(twice, method).parameters
    for name in ("bias", "diagonal", "couplings"):
        np.testing.assert_allclose(getattr(two, name), np.tile(getattr(one, name), 2), atol=1e-9)


@pytest.mark.parametrize("edges", [EdgeSet.complete(4), EdgeSet(4, np.array([0]), np.array([2]))])
@pytest.mark.parametrize("method", INVERSES)
def test_independent_variables_are_exact(method, edges):
    l, r = np.array([0.5, -3.0, 20.0, -100.0]), np.array([1.0, 0.2, 5.0, 1.0])
    site = HALF_LINE.moments(l, r)
    found = inverse(Moments(edges, 1.0, site.mean, site.variance, np.zeros(edges.size)), method).parameters
    np.testing.assert_allclose(found.couplings, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.bias, l, rtol=1e-8)
    np.testing.assert_allclose(found.diagonal, r, rtol=1e-7)


def test_no_edges_need_no_solution():
    e = EdgeSet(2, np.empty(0, int), np.empty(0, int))
    site = HALF_LINE.moments([1.0, -1.0], 1.0)
    found = inverse(Moments(e, 1.0, site.mean, site.variance, np.empty(0)), "isusp").parameters
    np.testing.assert_allclose(found.bias, [1.0, -1.0], rtol=1e-10)


@pytest.mark.parametrize("method", INVERSES)
def test_variables_with_more_spread_than_an_exponential_are_named(method):
    data = data_of("grid")
    variance = data.variance.copy()
    variance[[2, 5]] = [data.mean[2] ** 2, 3.0 * data.mean[5] ** 2]
    spread = Moments(data.edges, 1.0, data.mean, variance, data.covariance)
    with pytest.raises(nnbm.NoSite, match=r"^X: .*does not hold for column 2, column 5\. Use score_matching") as caught:
        inverse(spread, method)
    np.testing.assert_array_equal(caught.value.indices, [2, 5])
    with pytest.raises(nnbm.NoSite, match=r"for 'c', 'f'"):
        inverse(spread, method, names="abcdefghi")


@pytest.mark.parametrize("method", INVERSES)
def test_moments_that_no_couplings_have_are_refused(method):
    """A ring of three whose covariances would need a correlation of -0.9 each: no distribution has them."""
    e = EdgeSet.complete(3)
    impossible = Moments(e, 1.0, np.full(3, 1.2), np.ones(3), np.full(3, -0.9))
    with pytest.raises((nnbm.NotConverged, ValueError), match=r"^X: ") as caught:
        inverse(impossible, method)
    assert "score_matching" in str(caught.value) or "singular" in str(caught.value)


@pytest.mark.parametrize("method", INVERSES)
def test_where_nothing_is_found_it_is_said_how_far_it_went(method):
    """A square without diagonals whose neighbours' correlations no positive definite matrix has."""
    e = EdgeSet(4, np.array([0, 0, 1, 2]), np.array([1, 3, 2, 3]))
    impossible = Moments(e, 1.0, np.full(4, 1.2), np.ones(4), np.array([0.99, -0.99, 0.99, 0.99]))
    with pytest.raises(nnbm.NotConverged, match=r"^X: no couplings .* these 4 covariances: \d+% of them") as caught:
        inverse(impossible, method)
    assert len(caught.value.result) > 1


@pytest.mark.parametrize("method", ["isusp", "ep"])
def test_a_singular_covariance_is_called_so(method):
    """A column that is a sum of others, whichever way rounding turns the last pivot."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table = rng.gamma(2.5, size=(500, 3))
        rows = Rows.checked(np.column_stack([table, table @ rng.uniform(0.1, 3.0, 3)]))
        with pytest.raises(ValueError, match="the covariance matrix is singular"):
            inverse(moments(rows, EdgeSet.complete(4)), method)


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match=r"^method: one of susp, isusp, ep is meant, but method = 'tap'"):
        inverse(data_of("grid"), "tap")


@QUIET
def test_the_papers_models_are_learned_to_its_accuracy():
    """EQ 9: I-SusP's errors on the paper's two models, 10,000 rows; one trial may differ from the average."""
    for model, e_b, e_w in (
        (nnbm.gallery.square_grid(6, 6), 0.095, 0.060),
        (nnbm.gallery.orientation_tuning(), 0.467, 0.107),
    ):
        table = nnbm.sample(model, 2500, chains=4, thin=10, seed=3, threads=1, progress=False).flat
        e = own_edges(model)
        found = inverse(moments(Rows.checked(table), e), "isusp").parameters
        w_error = np.concatenate([found.couplings - model.edge_couplings, found.diagonal - model.diagonal])
        assert np.abs(found.bias - model.bias).mean() < 1.6 * e_b
        assert np.abs(w_error).mean() < 1.3 * e_w

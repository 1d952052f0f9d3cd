"""infer(): every method where its answer is known, the verdicts, and that nothing wrong is ever silent."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import nnbm
from nnbm import NNBM, Options, Status, infer
from nnbm.inference.cumulants import Expansion
from nnbm.inference.ep import EP
from nnbm.inference.problem import Problem, closed_step
from nnbm.inference.solver import iterate
from nnbm.site import HALF_LINE
from targets import integrate

CLOSED = ["naive", "tap", "susp", "tap3", "isusp", "isusp3", "ep"]
JUDGED = [*CLOSED, "epc", "pairs"]
QUIET = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")


@pytest.mark.parametrize("method", [*JUDGED, "exact", "auto"])
def test_independent_variables_are_exact(method):
    model = NNBM([0.5, -3.0, 20.0], np.diag([1.0, 0.2, 5.0]), names=["a", "b", "c"])
    r = infer(model, method)
    site = HALF_LINE.moments(model.bias, model.diagonal)
    np.testing.assert_allclose(r.mean, site.mean, rtol=1e-9)
    np.testing.assert_allclose(r.variance, site.variance, rtol=1e-9)
    np.testing.assert_allclose(r.second_moment, site.second_moment, rtol=1e-9)
    assert r.log_partition == pytest.approx(site.log_partition.sum(), rel=1e-9)
    if method != "tap":
        np.testing.assert_allclose(r.covariance, np.diag(site.variance), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(r.correlation, np.eye(3), atol=1e-9)
    assert r.status is Status.CONVERGED
    assert r.label(1) == "b"


@pytest.mark.parametrize("method", ["isusp", "isusp3", "ep", "epc", "pairs"])
def test_far_from_the_wall_everything_is_gaussian(method):
    """Mean 20 sd from the wall: means W^-1 b, covariances W^-1, ln Z of the Gaussian."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 6))
    w = a @ a.T / 6 + np.eye(6)
    model = NNBM(w @ np.full(6, 20.0), w)
    r = infer(model, method)
    np.testing.assert_allclose(r.mean, 20.0, rtol=1e-8)
    if method in ("ep", "epc", "pairs"):
        np.testing.assert_allclose(r.covariance, np.linalg.inv(w), rtol=1e-8)
        expected = 0.5 * model.bias @ r.mean + 3 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(w)[1]
        assert r.log_partition == pytest.approx(expected, rel=1e-9)


def trio(seed):
    rng = np.random.default_rng(seed)
    c = rng.uniform(-0.6, 2.0, 3) * rng.choice([0.3, 0.7, 1.0, 1.3])
    w = np.array([[1, c[0], c[1]], [c[0], 1, c[2]], [c[1], c[2], 1]])
    lowest = np.linalg.eigvalsh(w)[0]
    if lowest < 0.05 and (c < -0.2).any():
        return None  # hardly normalisable: the reference's box would be too small
    try:
        return NNBM(rng.uniform(-2, 3, 3), w)
    except nnbm.NotCopositive:
        return None


TRIOS = [model for model in map(trio, range(140)) if model is not None]


@QUIET
@pytest.mark.parametrize("method", JUDGED)
def test_errors_beyond_a_twentieth_of_an_sd_are_never_silent(method):
    """Random models of three variables, one mode or several, against quadrature: the status must have warned."""
    reliable = 0
    for model in TRIOS:
        exact = integrate(model, 22.0)
        sd = np.sqrt(np.diagonal(exact.covariance))
        r = infer(model, method, throw=False)
        if r.status is Status.CONVERGED:
            reliable += 1
            of_means = np.abs((r.mean - exact.mean) / sd).max()
            of_spreads = np.abs(r.standard_deviation / sd - 1.0).max()
            assert of_means < 0.05, (model.coupling, model.bias)
            assert of_spreads < 0.07, (model.coupling, model.bias)
            assert max(of_means, of_spreads) < 3 * r.expected_error + 0.005
    assert reliable > 20  # the claim is not kept by never being sure


def forest(seed):
    """A star that competes, unconnected pairs that do, or a random tree; variables of different units."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    w = np.eye(n)
    for child in range(1, n):
        parent = [0, child - 1, rng.integers(max(0, child - 3), child)][seed % 3]
        if seed % 3 != 1 or child % 2:
            w[child, parent] = w[parent, child] = rng.uniform(0.0, 1.5) * rng.choice([0.3, 1.0])
    unit = np.exp(rng.uniform(-2.0, 2.0, n))
    return NNBM((rng.uniform(-1.0, 2.0, n) * rng.choice([0.5, 2.0])) / unit, w / np.outer(unit, unit))


@QUIET
def test_errors_on_forests_are_never_silent():
    reliable = 0
    for model in map(forest, range(60)):
        exact = infer(model, "exact")
        for method in JUDGED:
            r = infer(model, method, throw=False)
            if r.status is Status.CONVERGED:
                reliable += 1
                assert np.abs((r.mean - exact.mean) / exact.standard_deviation).max() < 0.05
                assert np.abs(r.standard_deviation / exact.standard_deviation - 1.0).max() < 0.07
    assert reliable > 60


@QUIET
@pytest.mark.parametrize(
    ("bias", "chain"),
    [
        ([-1.2, 2.8, 2.5, -1.1], [(0, 1, 0.56), (0, 3, 1.38), (1, 2, 0.98)]),
        ([3.46, 3.93, 1.41, 1.25], [(0, 1, 0.93), (2, 3, 1.12)]),
    ],
)
def test_ep_warns_where_two_modes_begin_to_form(bias, chain):
    """Means are right to 0.02 sd and the closures agree, but standard deviations are off by more than a twentieth."""
    w = np.eye(4)
    for i, j, coupling in chain:
        w[i, j] = w[j, i] = coupling
    model = NNBM(bias, w)
    exact = infer(model, "exact")
    r = infer(model, "ep", throw=False)
    assert np.abs(r.standard_deviation / exact.standard_deviation - 1.0).max() > 0.05
    assert r.converged
    assert r.status is Status.INACCURATE


@QUIET
def test_isusp_and_ep_are_accurate_where_they_say_so():
    for model in TRIOS:
        exact = integrate(model, 22.0)
        sd = np.sqrt(np.diagonal(exact.covariance))
        for method, ln_z_error in (("isusp", 0.01), ("ep", 0.03)):
            r = infer(model, method, throw=False)
            if r.status is Status.CONVERGED:
                assert np.abs((r.covariance - exact.covariance) / np.outer(sd, sd)).max() < 0.1
                assert r.log_partition == pytest.approx(exact.log_partition, abs=ln_z_error)


@pytest.mark.parametrize("coupling", [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6])
@QUIET
def test_isusp_converges_on_the_grid(coupling):
    r = infer(nnbm.gallery.square_grid(6, 6, coupling=coupling), "isusp")
    assert r.converged
    assert r.history[-1] < 1e-9 or min(r.history) < 1e-9
    np.testing.assert_allclose(np.diagonal(r.covariance), r.variance, rtol=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("method", ["isusp", "ep"])
def test_orientation_tuning_converges_and_is_uniform(epsilon, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nnbm.UnreliableWarning)
        r = infer(nnbm.gallery.orientation_tuning(36, epsilon=epsilon), method)
    # at 2.5 EP's standard deviations are off by 0.042, which it says
    assert r.status is (Status.INACCURATE if (epsilon, method) == (2.5, "ep") else Status.CONVERGED)
    assert r.history[-1] < 1e-9
    np.testing.assert_allclose(r.mean, r.mean.mean(), rtol=1e-7)


def test_where_the_stable_solution_ends_is_said():
    with pytest.raises(
        nnbm.NotConverged, match=r"isusp: no stable solution .* ends when 9\d% of the couplings"
    ) as caught:
        infer(nnbm.gallery.square_grid(6, 6, coupling=1.8), "isusp")
    assert caught.value.result.status is Status.UNSTABLE
    assert not caught.value.result.converged


@pytest.mark.parametrize("epsilon", [3.0, 4.0])
@pytest.mark.parametrize("method", [*JUDGED, "auto"])
def test_the_bump_regime_is_reported(epsilon, method):
    with pytest.raises(nnbm.NotConverged, match="several modes"):
        infer(nnbm.gallery.orientation_tuning(36, epsilon=epsilon), method)


@pytest.mark.parametrize("bias", [(6.0, 6.0), (6.0, 7.0), (15.0, 16.0)])
@pytest.mark.parametrize("method", JUDGED)
def test_two_modes_are_found_and_listed(bias, method):
    with pytest.warns(nnbm.UnreliableWarning, match="several modes"):
        r = infer(nnbm.gallery.two_modes(bias=bias), method, throw=False)
    assert not r.status.reliable
    listed = [r, *r.alternatives] if r.converged else r.alternatives
    winners = {int(solution.mean.argmax()) for solution in listed}
    assert winners == {0, 1}
    if r.converged:
        assert r.status is Status.SEVERAL_MODES
        assert r.mean.argmax() == np.argmax(bias) or bias[0] == bias[1]  # the better by free energy


def test_checkerboards_of_a_driven_grid_are_found():
    model = nnbm.gallery.square_grid(6, 6, bias=(3.6, 4.4))
    with pytest.warns(nnbm.UnreliableWarning, match="several modes"):
        r = infer(model, "naive")
    first, second = r.mean, r.alternatives[0].mean
    board = np.indices((6, 6)).sum(axis=0).ravel() % 2
    assert (first[board == 0].mean() - first[board == 1].mean()) * (
        second[board == 0].mean() - second[board == 1].mean()
    ) < 0


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_permutation_scaling_and_disconnected_parts(seed):
    rng = np.random.default_rng(seed)
    model = nnbm.gallery.random_graph(6, degree=3.0, strength=0.5, seed=seed % 1000)
    w, order, c = model.coupling.toarray(), rng.permutation(6), float(rng.choice([1e-4, 0.3, 50.0]))
    for method in ("isusp", "tap3", "isusp3", "ep", "epc", "pairs"):
        r = infer(model, method)
        permuted = infer(NNBM(model.bias[order], w[np.ix_(order, order)]), method)
        np.testing.assert_allclose(permuted.mean, r.mean[order], rtol=1e-7)
        scaled = infer(NNBM(model.bias / c, w / c**2), method)
        np.testing.assert_allclose(scaled.mean, c * r.mean, rtol=1e-7)
        np.testing.assert_allclose(scaled.covariance, c * c * r.covariance, rtol=1e-6, atol=1e-9 * c * c)
        assert scaled.log_partition == pytest.approx(r.log_partition + 6 * np.log(c), abs=1e-6)
        both = infer(NNBM(np.tile(model.bias, 2), sparse.kron(np.eye(2), w, format="csr")), method)
        np.testing.assert_allclose(both.mean, np.tile(r.mean, 2), rtol=1e-7)
        assert both.log_partition == pytest.approx(2 * r.log_partition, abs=1e-6)
        np.testing.assert_allclose(both.covariance[:6, 6:], 0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["naive", "susp", "tap3", "ep", "epc", "pairs"])
def test_covariance_is_the_response_of_the_means(method):
    model = nnbm.gallery.square_grid(3, 3, coupling=0.3)
    tight, h = Options(tolerance=1e-12), 1e-5
    covariance = infer(model, method, options=tight).covariance
    for k in range(9):
        step = h * np.eye(9)[k]
        up, down = (infer(NNBM(model.bias + d, model.coupling), method, options=tight).mean for d in (step, -step))
        np.testing.assert_allclose((up - down) / (2 * h), covariance[:, k], atol=1e-7)


@pytest.mark.parametrize("method", ["naive", "susp", "tap3", "ep", "epc", "pairs"])
def test_means_are_the_derivative_of_ln_z(method):
    """Each of these free energies is stationary in its own variables."""
    model, h = nnbm.gallery.square_grid(3, 3, coupling=0.3), 1e-5
    r = infer(model, method)
    for k in (0, 4):
        step = h * np.eye(9)[k]
        up, down = (infer(NNBM(model.bias + d, model.coupling), method).log_partition for d in (step, -step))
        assert (up - down) / (2 * h) == pytest.approx(r.mean[k], rel=1e-6)


def test_cumulant_correction_is_the_derivative_of_r():
    model = nnbm.gallery.random_graph(10, degree=4.0, strength=1.0)
    w = model.coupling.toarray()
    diagonal = np.diagonal(w).copy()

    def solution(bias):
        problem = Problem(bias, diagonal, w - np.diag(diagonal), HALF_LINE)
        found = iterate(lambda y: closed_step(problem, EP(), y), problem.uncoupled, Options(tolerance=1e-12))
        assert found.converged
        return problem.point(found.y)

    shift, h = Expansion.at(solution(model.bias)).mean_shift(), 1e-4
    for k in range(4):
        step = h * np.eye(10)[k]
        up, down = (Expansion.at(solution(model.bias + d)).value for d in (step, -step))
        assert (up - down) / (2 * h) == pytest.approx(shift[k], rel=1e-5, abs=1e-9)


def test_naive_is_a_lower_bound():
    for model in TRIOS[:30]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nnbm.UnreliableWarning)
            r = infer(model, "naive", throw=False)
        if r.converged:
            assert r.log_partition <= integrate(model, 22.0).log_partition + 1e-7


def test_auto_is_exact_where_that_is_cheap():
    path = nnbm.gallery.square_grid(1, 10)
    assert infer(path).method == "exact"
    assert infer(nnbm.gallery.two_modes(bias=(6.0, 7.0))).status is Status.CONVERGED
    assert infer(nnbm.gallery.square_grid(3, 3, coupling=0.3)).method == "pairs"


def test_auto_takes_pairs_while_they_are_cheap():
    assert infer(nnbm.gallery.square_grid(6, 6, coupling=1.2)).method == "pairs"  # EP ends at 1.07
    assert infer(nnbm.gallery.orientation_tuning(36, epsilon=2.0)).method == "epc"  # 702 moments
    grid = nnbm.gallery.square_grid(12, 12, coupling=0.9)  # 552, and epc warns
    assert infer(grid).method == "pairs"


@QUIET
def test_auto_takes_the_one_that_does_not_warn():
    ring = nnbm.gallery.orientation_tuning(36, epsilon=2.5)
    assert infer(ring, "isusp").status.reliable
    assert not infer(ring, "epc").status.reliable
    assert not infer(ring, "pairs").status.reliable
    assert infer(ring).method == "isusp"


@QUIET
def test_auto_takes_what_is_left_and_says_what_is_not():
    """A model in which only third order has a solution, on a branch of one mode: it warns."""
    model = next(m for m in map(loop, range(200)) if not infer(m, "pairs", throw=False).converged and
                 not infer(m, "isusp", throw=False).converged and infer(m, "tap3", throw=False).converged)  # fmt: skip
    r = infer(model)
    assert r.method == "tap3"
    assert not r.status.reliable
    assert "pairs was tried, too" in r.detail


def loop(seed):
    """Four variables that compete strongly, all with all."""
    rng = np.random.default_rng(seed)
    off = np.triu(rng.uniform(0.0, 2.2, (4, 4)), 1)
    return NNBM(rng.uniform(-2.0, 4.0, 4), off + off.T + np.eye(4))


def test_auto_is_within_a_tenth_of_the_best_wherever_it_does_not_warn():
    """`make accuracy`'s own figures."""
    rows = json.loads((Path(__file__).parents[2] / "benchmarks" / "accuracy.json").read_text())
    quiet = [row for row in rows if row["scores"]["auto"]["status"] == ""]
    assert len(quiet) > 20
    assert max(row["auto_ratio"] for row in quiet) <= 1.1
    assert max(row["scores"]["auto"]["mean"] for row in quiet) <= 0.003


def test_downs_where_it_holds_and_where_it_does_not():
    weak = NNBM([-8.0, -6.0, -7.0], np.eye(3) + 0.3)
    r = infer(weak, "downs")
    exact = integrate(weak, 8.0)
    np.testing.assert_allclose(r.mean, exact.mean, rtol=2e-3)
    np.testing.assert_allclose(r.covariance, exact.covariance, atol=1e-2 * exact.covariance.max())
    assert r.log_partition == pytest.approx(exact.log_partition, abs=2e-3)
    with pytest.raises(nnbm.NotConverged, match="downs: not converged"):
        infer(nnbm.gallery.square_grid(6, 6), "downs")


def test_what_a_method_lacks_is_said():
    model = nnbm.gallery.square_grid(3, 3, coupling=0.3)
    tap = infer(model, "tap")
    assert tap.covariance is None
    with pytest.raises(ValueError, match="'tap' has no covariance"):
        _ = tap.correlation
    with pytest.raises(ValueError, match="'ep' has none"):
        _ = infer(model, "ep").susceptibilities
    with pytest.raises(ValueError, match=r"method: one of auto, naive.* but method = 'bp'"):
        infer(model, "bp")
    with pytest.raises(ValueError, match="up to n = 10000, but n = 10201"):
        infer(nnbm.gallery.square_grid(101, 101, coupling=0.2))
    with pytest.raises(nnbm.NotConverged, match="not converged"):
        infer(nnbm.gallery.square_grid(6, 6), "isusp", options=Options(sweeps=1))


def test_repr_and_history():
    r = infer(nnbm.gallery.square_grid(6, 6, coupling=0.4), "isusp")
    assert repr(r).startswith("Inference(isusp, n=36, converged, to 0.00")
    assert r.iterations == len(r.history) < 12
    assert r.history[-1] < 1e-9


def test_auto_survives_what_quadrature_does_not():
    """A ridge of correlation beyond 0.9998, and a model without any edge."""
    ridge = NNBM([1.0, 1.0], [[1.0, -0.99999], [-0.99999, 1.0]])
    with pytest.raises((ValueError, RuntimeError)):
        infer(ridge, "exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nnbm.UnreliableWarning)
        assert infer(ridge, throw=False).method in ("pairs", "epc", "isusp")
    assert infer(NNBM(np.zeros(5), sparse.eye_array(5, format="csr"))).method == "exact"

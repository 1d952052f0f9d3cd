"""Pairwise expectation consistency: pairs against tensor rules, the free energy by differences, exact answers."""

import numpy as np
import pytest
from test_domains import grid
from test_infer import QUIET, TRIOS, forest

import nnbm
from nnbm import NNBM, Options, Status, infer
from nnbm.inference import pair_sites, pairs
from nnbm.inference.infer import problem_of
from nnbm.inference.pair_density import STATISTICS, pair_moments, pair_span, span
from nnbm.inference.pair_entropy import PairPoint
from nnbm.inference.pair_sites import SiteEntropies
from nnbm.inference.pair_state import Edges, PairState
from nnbm.inference.problem import Problem
from nnbm.inference.solver import iterate
from nnbm.site import HALF_LINE, Box
from targets import integrate

TIGHT = Options(tolerance=1e-12, memory=0)


def solution(problem, options=TIGHT):
    """The minimum, as a point."""
    edges = Edges.of(problem.off)
    newton = pairs._Newton(problem, edges)
    start = PairState.suggested(problem.point(problem.uncoupled), edges)
    assert iterate(newton, start.vector, options).converged
    return newton.point


ENDS = {
    "half lines": ((0.0, np.inf), (0.0, np.inf)),
    "intervals": ((-1.0, 1.0), (0.5, 3.0)),
    "an upper end and none": ((-np.inf, 1.5), (-np.inf, np.inf)),
    "facing half lines": ((-np.inf, 1.0), (-2.0, np.inf)),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("seed", range(4))
def test_pair_moments_against_a_tensor_rule(name, seed):
    """ln Z, means, and all covariances of x, y, -x²/2, -y²/2, -xy; curvatures below 0 between two ends."""
    rng = np.random.default_rng(seed)
    x, y = (np.array(end) for end in ENDS[name])
    l, r, k = rng.normal(size=2), rng.uniform(0.5, 2.0, 2), rng.uniform(-0.4, 0.4)
    if name == "intervals":
        r[seed % 2] -= 2.0
    natural = np.array([[*l, *r, k]]).T
    alone = Box(*np.array([x, y]).T).moments(l, r)
    near = span(l[:1], r[:1], x[:1], x[1:])
    ends = pair_span(natural, near, (x[:1], x[1:]), (y[:1], y[1:]))
    assert ends[0][0] >= x[0]
    assert ends[1][0] <= x[1]
    wide = 12.0 * np.sqrt(alone.variance) + 4.0
    low, high = np.maximum([x[0], y[0]], alone.mean - wide), np.minimum([x[1], y[1]], alone.mean + wide)
    nodes, weights = np.polynomial.legendre.leggauss(160)
    first, second = (low[:, None] + 0.5 * (high - low)[:, None] * (1.0 + nodes)).reshape(2, -1)
    a, b = np.meshgrid(first, second, indexing="ij")
    log_mass = l[0] * a + l[1] * b - 0.5 * (r[0] * a * a + r[1] * b * b) - k * a * b
    mass = np.exp(log_mass) * np.outer(weights, weights) * np.prod(0.5 * (high - low))
    total = mass.sum()
    mass /= total
    mean = np.array([(mass * a).sum(), (mass * b).sum()])
    da, db = a - mean[0], b - mean[1]
    statistics = STATISTICS[:, None, None] * np.stack([da, db, da * da, db * db, da * db])  # taken from the means
    statistics -= (mass * statistics).sum(axis=(1, 2))[:, None, None]
    expected = np.einsum("ij,aij,bij->ab", mass, statistics, statistics)
    found = pair_moments(natural, ends, Box(*(np.array([end]) for end in y)))
    assert found.log_partition[0] == pytest.approx(np.log(total), abs=1e-9)
    np.testing.assert_allclose(found.values[:2, 0], mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance[0], expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(found.values[2:, 0], [expected[0, 0], expected[1, 1], expected[0, 1]], rtol=1e-8)


@pytest.mark.parametrize("mean_of", [1.0, 6.0])
def test_two_modes_far_apart_are_in_sight(mean_of):
    """A pair that competes: its site's moments are an exponential's, but the nodes must not go that far."""
    natural = np.array([[mean_of, mean_of, 1.0, 1.0, 2.0]]).T
    model = NNBM([mean_of, mean_of], [[1.0, 2.0], [2.0, 1.0]])
    exact = infer(model, "exact")
    zero, far = np.zeros(1), np.full(1, np.inf)
    ends = pair_span(natural, span(-1.0 / exact.mean[:1], zero, zero, far), (zero, far), (zero, far))
    found = pair_moments(natural, ends, HALF_LINE)
    np.testing.assert_allclose(found.values[:2, 0], exact.mean, rtol=1e-7)
    assert found.log_partition[0] == pytest.approx(exact.log_partition, abs=1e-7)


def test_entropies_of_sites_join_those_of_exponentials_smoothly():
    """Value and slopes are continuous where v = 2 m², and slopes are differences on either side; between any ends."""
    site = Box([0.0, -np.inf, -1.0, -np.inf], [np.inf, 2.0, 1.0, np.inf])
    problem = Problem(np.zeros(4), np.ones(4), np.zeros((4, 4)), site)

    def at(mean, share):
        m = np.array([mean, 2.0 - mean, 0.1, 0.3])
        return SiteEntropies.at(problem, m, np.array([share * mean**2, share * mean**2, 0.2, 3.0 * share]))

    one, other = at(0.7, 1.0 - 2e-7), at(0.7, 1.0 + 1e-9)
    np.testing.assert_allclose(one.value, other.value, atol=1e-6)
    np.testing.assert_allclose(one.slope, other.slope, atol=1e-5)
    assert (other.r[:2] == 0.0).all()
    for share in (0.5, 0.9, 1.5):
        here, h = at(0.7, share), 1e-5
        for axis in range(2):
            results = []
            for sign in (h, -h):
                m, s = np.array([0.7, 1.3, 0.1, 0.3]), np.array([share * 0.49, share * 0.49, 0.2, 3.0 * share])
                (m if axis == 0 else s)[:] += sign
                results.append(SiteEntropies.at(problem, m, s))
            up, down = results
            np.testing.assert_allclose((up.value - down.value) / (2 * h), here.slope[:, axis], rtol=1e-5, atol=1e-7)
            change = (up.slope - down.slope) / (2 * h)
            # by m at fixed s the slope is l - r m
            np.testing.assert_allclose(change, here.curvature[:, axis], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("coupling", [0.6, 2.0])
def test_the_hessian_is_that_of_the_free_energy(coupling):
    """M is dm/db with everything solved anew, and means are slopes of ln Z: also where sites spread beyond v = 2 m²."""
    model = nnbm.gallery.square_grid(3, 3, coupling=coupling)
    r, h = infer(model, "pairs", options=TIGHT), 1e-4
    widest = (r.r == 0.0).any()
    assert widest == (coupling == 2.0)
    for k in (0, 4):
        step = h * np.eye(9)[k]
        up, down = (infer(NNBM(model.bias + d, model.coupling), "pairs", options=TIGHT) for d in (step, -step))
        np.testing.assert_allclose((up.mean - down.mean) / (2 * h), r.covariance[:, k], atol=1e-6)
        assert (up.log_partition - down.log_partition) / (2 * h) == pytest.approx(r.mean[k], abs=1e-6)


@QUIET
@pytest.mark.parametrize("seed", range(12))
def test_two_variables_are_exact(seed):
    rng = np.random.default_rng(seed)
    k = rng.uniform(-0.9, 2.0)
    model = NNBM(rng.uniform(-3.0, 3.0, 2), [[1.0, k], [k, 1.0]])
    r, exact = infer(model, "pairs"), infer(model, "exact")
    assert r.expected_error < 1e-7
    assert r.log_partition == pytest.approx(exact.log_partition, abs=1e-7)
    np.testing.assert_allclose(r.mean, exact.mean, rtol=1e-7)
    np.testing.assert_allclose(r.covariance, exact.covariance, rtol=1e-6)


def test_on_a_tree_the_gaussian_cancels_and_rings_need_it():
    """Negative control of (13.1): without walls it is exact for a triangle, too, where Bethe's free energy is wrong."""
    off = np.array([[0.0, 0.3, -0.2], [0.3, 0.0, 0.25], [-0.2, 0.25, 0.0]])
    for matrix in (off, np.where(np.abs(off) == 0.25, 0.0, off)):
        problem = Problem(np.array([0.5, -0.2, 0.1]), np.ones(3), matrix, Box(-np.inf, np.inf))
        point = solution(problem)
        w = matrix + np.eye(3)
        exact = 0.5 * problem.bias @ point.mean + 1.5 * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(w)[1]
        assert point.log_partition == pytest.approx(exact, abs=1e-10)
        i, j = point.edges.first, point.edges.second
        s, c = point.variance, point.covariances
        bethe = np.log(1.0 - c * c / (s[i] * s[j])).sum() + np.log(s).sum() + point.precision.log_determinant
        assert (abs(bethe) < 1e-10) == (matrix[1, 2] == 0.0)


def compared(models):
    """Largest errors of means, ln Z and (co)variances, in standard deviations, of epc and pairs where both are."""
    found = []
    for model, exact in models:
        sd, row = np.sqrt(np.diagonal(exact.covariance)), []
        for method in ("epc", "pairs"):
            r = infer(model, method, throw=False)
            if r.status not in (Status.CONVERGED, Status.INACCURATE):
                break
            row.append([np.abs((r.mean - exact.mean) / sd).max(), abs(r.log_partition - exact.log_partition),
                        np.abs((r.covariance - exact.covariance) / np.outer(sd, sd)).max()])  # fmt: skip
        if len(row) == 2:
            found.append(row)
    return np.array(found)


@QUIET
def test_it_is_several_times_closer_than_corrected_ep():
    """On trios by quadrature and forests by message passing, wherever both have a solution."""
    cases = [(model, integrate(model, 22.0)) for model in TRIOS[:25]]
    cases += [(model, infer(model, "exact")) for model in map(forest, range(20))]
    found = compared(cases)
    assert len(found) > 20
    before, after = found[:, 0], found[:, 1]
    assert (after.mean(axis=0) < before.mean(axis=0) / 3.0).all()
    assert ((after < before + 1e-7).mean(axis=0) > 0.95).all()


@QUIET
def test_its_expected_error_is_one():
    """The response against the marginals: on models that compete strongly, what passes is right to a fiftieth."""
    passed = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        c = rng.uniform(-0.2, 2.2, 3)
        model = NNBM(rng.uniform(-2.0, 6.0, 3), [[1, c[0], c[1]], [c[0], 1, c[2]], [c[1], c[2], 1]])
        r = infer(model, "pairs", throw=False)
        if r.status is Status.CONVERGED:
            passed += 1
            exact = integrate(model, 22.0)
            sd = np.sqrt(np.diagonal(exact.covariance))
            error = max(np.abs((r.mean - exact.mean) / sd).max(), np.abs(r.standard_deviation / sd - 1.0).max())
            assert error < min(0.03, r.expected_error + 1e-3)
    assert passed > 12


def test_the_grid_where_ep_has_no_solution():
    """Against a long Gibbs run: nearly within its error, where the next best method is three times off it."""
    model = nnbm.gallery.square_grid(4, 4, coupling=1.6)
    r = infer(model, "pairs")
    assert r.status is Status.CONVERGED
    samples = nnbm.sample(model, 12_000, chains=4, thin=10, seed=3)
    batches = samples.draws.reshape(40, -1, 16).mean(axis=1)
    noise = batches.std(axis=0, ddof=1) / np.sqrt(40)
    shift = (r.mean - samples.mean) / np.hypot(noise, 0.003 * r.standard_deviation)
    assert np.abs(shift).max() < 4.0
    with pytest.warns(nnbm.UnreliableWarning):
        other = infer(model, "tap3")
    assert np.abs(r.mean - samples.mean).mean() < 0.5 * np.abs(other.mean - samples.mean).mean()


@pytest.mark.parametrize("wall", [-3.0, 2.0])
def test_a_wall_elsewhere_only_moves_the_answer(wall):
    plain, moved = solution(grid(0.3)), solution(grid(0.3, Box(wall, np.inf), wall))
    np.testing.assert_allclose(moved.mean, plain.mean + wall, rtol=1e-8)
    np.testing.assert_allclose(moved.covariance, plain.covariance, atol=1e-9)


def test_modes_are_looked_for_and_averaged_where_pairs_can():
    """Two variables: the exact average of both modes. A driven checkerboard: it says that there are several."""
    pair = nnbm.gallery.two_modes(competition=1.2, bias=(6.0, 6.0))
    with pytest.warns(nnbm.UnreliableWarning, match="several modes"):
        r = infer(pair, "pairs")
    np.testing.assert_allclose(r.mean, infer(pair, "exact").mean, rtol=1e-6)
    with pytest.warns(nnbm.UnreliableWarning, match="several modes"):
        infer(nnbm.gallery.square_grid(6, 6, bias=(3.6, 4.4)), "pairs")


def test_where_it_ends_is_said():
    with pytest.raises(
        nnbm.NotConverged, match=r"pairs: no stable solution .* ends when \d\d% of the couplings"
    ) as caught:
        infer(nnbm.gallery.random_graph(40, strength=3.0), "pairs")
    assert caught.value.result.covariance.shape == (40, 40)
    with pytest.raises(nnbm.NotConverged, match="pairs: not converged"):
        infer(nnbm.gallery.square_grid(6, 6), "pairs", options=Options(sweeps=1))


def test_too_many_moments_are_refused(monkeypatch):
    monkeypatch.setattr(nnbm.inference.infer, "PAIR_MOMENTS", 20)
    with pytest.raises(ValueError, match="2n \\+ edges moments at a time, up to 20, but these are 30"):
        infer(nnbm.gallery.square_grid(3, 3), "pairs")
    monkeypatch.setattr(nnbm.inference.infer, "_PAIRS_FIRST", 20)
    assert infer(nnbm.gallery.square_grid(3, 3, coupling=0.2)).method == "epc"


def test_no_edges_and_one_variable():
    for model in (NNBM([0.5], [[1.0]]), NNBM([0.5, -1.0], np.diag([1.0, 2.0]))):
        r = infer(model, "pairs")
        np.testing.assert_allclose(r.mean, HALF_LINE.moments(model.bias, np.diagonal(model.coupling)).mean, rtol=1e-10)
        assert r.expected_error < 1e-9


def test_states_that_do_not_exist_are_refused():
    """Means outside, curvatures below 0 at an open end, attraction beyond the norm, a Gaussian that is none."""
    problem = problem_of(nnbm.gallery.square_grid(2, 2, coupling=0.3))
    edges = Edges.of(problem.off)
    right = PairState.suggested(problem.point(problem.uncoupled), edges)
    assert PairPoint.at(problem, edges, right) is not None
    for place, value in ((0, -0.1), (4, np.nan), (8, np.inf), (16, -0.5), (24, -2.0), (28, -1.0)):
        vector = right.vector
        vector[place] = value
        assert PairPoint.at(problem, edges, PairState.from_vector(vector, 4)) is None, place
    assert pair_sites._WIDEST < 1.0

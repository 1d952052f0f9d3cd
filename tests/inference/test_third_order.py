"""F3: its derivatives by differences, the order of its error with negative controls, its response, its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_domains import METHODS, grid
from test_second_order import problem_of

import nnbm
from nnbm import NNBM, Options, infer
from nnbm.inference.closed import infer_closed
from nnbm.inference.isusp3 import ISusP3
from nnbm.inference.jets import bend_by_moments, cumulant_jets, standardised
from nnbm.inference.problem import Point, Problem, Sweep, Target
from nnbm.inference.solver import iterate
from nnbm.inference.tap3 import Tap3
from nnbm.inference.third_order import ThirdOrder
from nnbm.site import HALF_LINE, Box
from targets import integrate

TIGHT = Options(tolerance=1e-13)
seeds = st.integers(0, 10**6)


BOX = Box([0.0, -1.0, -np.inf, -0.5, -3.0], [np.inf, 1.0, np.inf, 2.0, 0.2])


def somewhere(seed, site=HALF_LINE):
    """A point that solves nothing; every coupling and, without other walls, every unit different."""
    rng = np.random.default_rng(seed)
    unit = np.exp(rng.uniform(-2.0, 2.0, 5)) if site is HALF_LINE else np.ones(5)
    off = np.triu(rng.uniform(-0.6, 0.6, (5, 5)), 1)
    bias, diagonal = rng.normal(size=5) / unit, rng.uniform(0.5, 2.0, 5) / unit**2
    problem = Problem(bias, diagonal, (off + off.T) / np.outer(unit, unit), site)
    r = rng.uniform(0.2, 2.0, 5)
    if site is BOX:
        r[[1, 3, 4]] -= 1.0  # between finite ends it may have any sign
    l, r = rng.uniform(-4.0, 4.0, 5) / unit, r / unit**2
    return Point(problem, l, r, site.moments(l, r))


def moved(point, dm, ds):
    """The point whose moments differ by these."""
    site = point.problem.site
    l, r = site.from_mean_variance(point.mean + dm, point.variance + ds)
    return Point(point.problem, l, r, site.moments(l, r))


def slope(point):
    """(2n,) dF3/dm at fixed variances and dF3/ds at fixed means."""
    problem, third = point.problem, point.third_order
    by_variance = 0.5 * (problem.diagonal - point.r - problem.off_squared @ point.variance) + third.by_variance
    return np.concatenate([point.field_error + third.by_mean, by_variance])


@pytest.mark.parametrize("site", [HALF_LINE, BOX])
@settings(max_examples=25)
@given(seeds)
def test_gradient_and_hessian_of_f3_are_differences(site, seed):
    here = somewhere(seed, site)
    unit = np.concatenate([np.sqrt(here.variance), here.variance])
    by_mm, by_ms, by_ss = here.third_order.hessian(here.problem.diagonal - here.r)
    hessian, first = np.block([[by_mm, by_ms], [by_ms.T, by_ss]]), slope(here) * unit
    scale = np.abs(hessian).max()
    for k in range(10):
        step = 1e-5 * unit * np.eye(10)[k]
        up, down = (moved(here, d[:5], d[5:]) for d in (step, -step))
        difference = (Tap3().free_energy(up) - Tap3().free_energy(down)) / 2e-5
        assert difference == pytest.approx(first[k], rel=1e-5, abs=1e-5 * scale)
        np.testing.assert_allclose((slope(up) - slope(down)) * unit / 2e-5, hessian[:, k], rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("z", [-8.0, -3.0, 0.0, 3.0, 6.0])
def test_how_cumulants_bend_with_the_moments(z):
    """The third and the fourth cumulant by mean and variance, from an exponential's to a normal's."""
    l, r = np.array([z * np.sqrt(2.0)]), np.array([2.0])
    moments = HALF_LINE.moments(l, r)
    mean, variance, unit = moments.mean, moments.variance, np.sqrt(moments.variance)
    jets = cumulant_jets(standardised(moments.cumulants, HALF_LINE.higher_cumulants(l, r)))

    def cumulants(dm, ds):
        found = HALF_LINE.moments(*HALF_LINE.from_mean_variance(mean + dm * unit, variance * (1.0 + ds)))
        return found.third_cumulant / unit**3, found.fourth_cumulant / unit**4

    h = 1e-3
    for k, jet in enumerate(jets[2:4]):
        bend = bend_by_moments(jet, jets[0], jets[1])
        value = lambda dm, ds: cumulants(dm, ds)[k]  # noqa: B023, E731
        middle = 2.0 * value(0.0, 0.0)
        np.testing.assert_allclose(bend.mm, (value(h, 0) + value(-h, 0) - middle) / h**2, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(bend.ss, (value(0, h) + value(0, -h) - middle) / h**2, rtol=1e-3, atol=1e-4)
        corners = value(h, h) + value(-h, -h) - value(h, -h) - value(-h, h)
        np.testing.assert_allclose(bend.ms, corners / (4.0 * h**2), rtol=1e-3, atol=1e-4)


TRIANGLE = np.array([[0.0, 1.0, -0.7], [1.0, 0.0, 0.8], [-0.7, 0.8, 0.0]])
STAR = np.zeros((4, 4))
STAR[0, 1:] = STAR[1:, 0] = 1.0, -0.5, 0.8
CHAIN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.8], [0.0, 0.8, 0.0]])


def slopes(shape, method):
    """How fast errors of ln Z, of the means and of the covariances fall with the coupling."""
    strengths, errors, n = np.array([0.025, 0.05, 0.1]), [], len(shape)
    for w in strengths:
        model = NNBM([0.3, -0.2, 0.5, 0.1][:n], np.eye(n) + w * shape)
        exact, r = integrate(model, 16.0) if n == 3 else infer(model, "exact"), infer(model, method, options=TIGHT)
        covariance = 0.0 if r.covariance is None else r.covariance - exact.covariance
        rest = [np.abs(r.mean - exact.mean).max(), np.abs(covariance).max()]
        errors.append([abs(r.log_partition - exact.log_partition), *rest])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.diff(np.log(errors), axis=0) / np.diff(np.log(strengths))[:, None]


@pytest.mark.parametrize(("shape", "least"), [(TRIANGLE, 3.9), (CHAIN, 3.7), (STAR, 3.7)])
def test_the_error_falls_at_the_fourth_order(shape, least):
    """ln Z, means and covariances, on a triangle as on trees; at second order the third power is left."""
    found, before = slopes(shape, "tap3"), slopes(shape, "susp")
    assert (found > least).all()
    assert (found < 4.1).all()
    assert (before < 3.4).all()


@pytest.mark.parametrize("factor", [0.0, -1.0, 0.5])
@pytest.mark.parametrize(("term", "shape"), [("triangles", TRIANGLE), ("cubes", TRIANGLE), ("cubes", STAR)])
def test_it_does_not_with_a_wrong_term(monkeypatch, term, shape, factor):
    """Negative control: either sum dropped, halved or of the other sign leaves an error of third order."""
    right = getattr(ThirdOrder, term).func
    monkeypatch.setattr(ThirdOrder, term, property(lambda self: factor * right(self)))
    assert (slopes(shape, "tap3")[:, 0] < 3.3).all()


@pytest.mark.parametrize("shape", [TRIANGLE, CHAIN, STAR])
def test_diagonal_consistency_makes_ln_z_one_order_better(shape):
    """By integrating over the coupling, as at second order, where it makes 4 of 3."""
    found, before = slopes(shape, "isusp3"), slopes(shape, "isusp")
    assert (found[:, 0] > 4.8).all()
    assert (found[:, 1:] > 3.75).all()
    assert (before[:, 0] < 4.0).all()
    assert (before[:, 1:] < 3.0).all()


def test_the_order_is_the_same_between_other_walls():
    """A half line, an interval with the origin inside and one without, by tensor Gauss-Legendre."""
    site, bias = Box([0.0, -1.0, -1.5], [np.inf, 1.0, 0.2]), np.array([0.3, -0.2, 0.5])
    points, weights = np.polynomial.legendre.leggauss(40)
    ends = np.array([[0.0, -1.0, -1.5], [12.0, 1.0, 0.2]])
    middle, half = ends.mean(axis=0), 0.5 * (ends[1] - ends[0])
    x = np.stack(np.meshgrid(*(middle[:, None] + half[:, None] * points), indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel() * half.prod()
    strengths, errors = np.array([0.05, 0.1, 0.2]), {"tap3": [], "susp": []}
    for w in strengths:
        coupling = np.eye(3) + w * TRIANGLE
        exact = np.log(mass @ np.exp(x @ bias - 0.5 * np.einsum("ki,ij,kj->k", x, coupling, x)))
        problem = Problem(bias, np.ones(3), w * TRIANGLE, site)
        for name, found in errors.items():
            found.append(abs(infer_closed(problem, METHODS[name], (), TIGHT).log_partition - exact))
    slopes = {name: np.diff(np.log(found)) / np.diff(np.log(strengths)) for name, found in errors.items()}
    assert (slopes["tap3"] > 3.8).all()
    assert (slopes["susp"] < 3.3).all()


class FixedReaction(Tap3):
    """F3 - 1/2 sum_i Lambda_i s_i with Lambda given."""

    def __init__(self, reaction):
        self.reaction = reaction

    def target(self, point):
        found = super().target(point)
        return Target(found.r - self.reaction, found.field)


MIXED = nnbm.gallery.random_graph(8, degree=4.0, strength=0.8, seed=1)


def test_isusp3_is_diagonally_consistent_and_its_covariance_is_a_response():
    """M_ii = s_i, and M is dm/db at the Lambda that this takes."""
    r, problem = infer(MIXED, "isusp3", options=TIGHT), problem_of(MIXED)
    np.testing.assert_allclose(np.diagonal(r.covariance), r.variance, rtol=1e-10)
    here = problem.point(problem.state(r.l, r.r))
    reaction = problem.diagonal - r.r - problem.off_squared @ r.variance + 2.0 * here.third_order.by_variance
    method, h = FixedReaction(reaction), 1e-5
    for k in range(8):
        solved = []
        for sign in (h, -h):
            other = Problem(problem.bias + sign * np.eye(8)[k], problem.diagonal, problem.off, HALF_LINE)
            solved.append(iterate(Sweep(other, method), problem.state(r.l, r.r), TIGHT))
        assert all(outcome.converged for outcome in solved)
        up, down = (problem.point(outcome.y).mean for outcome in solved)
        np.testing.assert_allclose((up - down) / (2.0 * h), r.covariance[:, k], atol=1e-7)
    # F-dagger is stationary there, too
    rest = slope(here) - np.concatenate([np.zeros(8), 0.5 * reaction])
    np.testing.assert_allclose(rest, 0.0, atol=1e-8)


def test_susceptibilities_are_differences():
    r, h = infer(MIXED, "tap3", options=TIGHT), 1e-5
    found = r.susceptibilities
    w = MIXED.coupling.toarray()
    for k in range(8):
        step = h * np.eye(8)[k]
        up, down = (infer(NNBM(MIXED.bias + d, w), "tap3", options=TIGHT) for d in (step, -step))
        for name, matrix in (
            ("mean", found.mean),
            ("second_moment", found.second_moment),
            ("l", found.l),
            ("r", found.r),
        ):
            difference = (getattr(up, name) - getattr(down, name)) / (2.0 * h)
            np.testing.assert_allclose(difference, matrix[:, k], atol=1e-6)


@given(seeds)
def test_the_response_is_a_block_of_the_whole_hessians_inverse(seed):
    here = somewhere(seed)
    variance = here.variance
    by_mm, by_ms, by_ss = here.third_order.hessian(here.problem.diagonal - here.r)
    whole, found = np.block([[by_mm, by_ms], [by_ms.T, by_ss]]), here.third_response
    lowest = np.linalg.eigvalsh(whole)[0]
    assert found is None or lowest > -1e-9
    assert found is not None or lowest < 1e-9
    if found is None:
        return
    inverse, unit = np.linalg.inv(whole), np.sqrt(variance)
    near = 1e-9 * np.abs(inverse).max()
    np.testing.assert_allclose(found.covariance / np.outer(unit, unit), inverse[:5, :5], rtol=1e-7, atol=near)
    np.testing.assert_allclose(found.diagonal / variance, np.diagonal(inverse)[:5], rtol=1e-7, atol=near)
    np.testing.assert_allclose(found.variances / np.outer(variance, unit), inverse[5:, :5], rtol=1e-7, atol=near)


def test_without_a_wall_nothing_is_skew():
    """No field, T the triangles alone, and dm/db the inverse of W at any r."""
    problem = grid(0.25, Box(-np.inf, np.inf))
    r = infer_closed(problem, Tap3(), (), Options())
    np.testing.assert_allclose(r.mean, np.linalg.solve(problem.off + np.eye(9), problem.bias), rtol=1e-8)
    np.testing.assert_allclose(r.covariance, np.linalg.inv(problem.off + np.eye(9)), rtol=1e-8)
    off = 0.2 * TRIANGLE
    third = Problem(np.zeros(3), np.ones(3), off, Box(-np.inf, np.inf)).point(np.zeros(6)).third_order
    assert third.value == pytest.approx(off[0, 1] * off[1, 2] * off[2, 0], rel=1e-12)
    np.testing.assert_array_equal(third.by_mean, 0.0)
    np.testing.assert_allclose(third.by_variance, off[0, 1] * off[1, 2] * off[2, 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["tap3", "isusp3"])
def test_other_modes_are_looked_for_with_the_methods_own_field(name):
    """A solution's field is part of b for the relaxations: started at the solution they stay there."""
    plain, moved = grid(0.6), grid(0.6, Box(5.0, np.inf), 5.0)
    results = [infer_closed(problem, METHODS[name], (), Options()) for problem in (plain, moved)]
    for problem, r in zip((plain, moved), results, strict=True):
        here = problem.point(problem.state(r.l, r.r))
        again = problem.bias + here.field_error - problem.off @ r.mean - (problem.diagonal - r.r) * r.mean
        np.testing.assert_allclose(again, r.l, rtol=1e-12)
        assert np.abs(here.field_error).max() > 1e-4
        np.testing.assert_allclose(here.field_error, -here.third_order.by_mean, atol=1e-8)
    assert results[0].status is results[1].status


def test_hundreds_of_variables():
    rng = np.random.default_rng(0)
    off = np.triu(rng.normal(size=(300, 300)) * 0.3 / np.sqrt(300), 1)
    model = NNBM(rng.uniform(0.0, 1.0, 300), off + off.T + 1.5 * np.eye(300))
    corrected = infer(model, "epc")
    for method in ("tap3", "isusp3"):
        r = infer(model, method)
        assert r.iterations < 15
        assert np.abs((r.mean - corrected.mean) / corrected.standard_deviation).max() < 1e-3


def test_isusp3_ends_where_its_sites_do():
    """On the paper's grid r of some site falls to 0 near w = 1.3; `isusp` goes on to 1.66, tap3 beyond 2."""
    with pytest.raises(nnbm.NotConverged, match=r"isusp3: no stable solution .* ends when 9\d%"):
        infer(nnbm.gallery.square_grid(6, 6, coupling=1.35), "isusp3")
    with pytest.warns(nnbm.UnreliableWarning, match="tap3"):
        assert infer(nnbm.gallery.square_grid(6, 6, coupling=1.35), "tap3").converged


def test_a_closure_of_second_order_adds_no_field():
    problem = grid(0.3)
    for name in ("naive", "susp", "isusp", "ep"):
        assert METHODS[name].target(problem.point(problem.uncoupled)).field == 0.0
    assert np.abs(ISusP3().target(problem.point(problem.uncoupled)).field).min() > 0.0

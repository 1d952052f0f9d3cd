"""EP with cumulant corrections: every derivative by differences, exact answers, its order, its verdicts."""

from dataclasses import replace

import numpy as np
import pytest
from test_infer import QUIET, TRIOS, forest

import nnbm
from nnbm import NNBM, Options, Status, infer
from nnbm.inference import epc
from nnbm.inference.cumulants import Expansion, power
from nnbm.inference.curvature import covariance_correction
from nnbm.inference.ep import EP
from nnbm.inference.infer import problem_of
from nnbm.inference.jets import cumulant_jets
from nnbm.inference.problem import Problem, closed_step
from nnbm.inference.solver import iterate
from nnbm.site import HALF_LINE, Box
from targets import integrate

TIGHT = Options(tolerance=1e-13, sweeps=60)


def solution(bias, w, site=HALF_LINE):
    """EP's fixed point, as well as floats allow."""
    diagonal = np.diagonal(w).copy()
    problem = Problem(bias, diagonal, w - np.diag(diagonal), site)
    return problem.point(iterate(lambda y: closed_step(problem, EP(), y), problem.uncoupled, TIGHT).y)


def bend(point):
    """d²R/db db' at a solution."""
    found = Expansion.at(point)
    return covariance_correction(point.problem, found, point.problem.diagonal - point.r, found.mean_shift())


@pytest.mark.parametrize("field", [-6.0, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_derivative_of_r_is_a_difference(seed, field):
    """R by b is the shift of the means, and that by b the covariances' correction, through EP solved anew."""
    model = nnbm.gallery.random_graph(8, degree=4.0, strength=0.8, seed=seed)
    unit = np.exp(np.random.default_rng(seed).uniform(-2.0, 2.0, 8))
    bias, w = (model.bias + field) / unit, model.coupling.toarray() / np.outer(unit, unit)
    point = solution(bias, w)
    shift, found = Expansion.at(point).mean_shift() / unit, bend(point) / np.outer(unit, unit)
    h = 1e-4
    for k in range(8):
        step = h * np.eye(8)[k] / unit
        up, down = (Expansion.at(solution(bias + d, w)) for d in (step, -step))
        assert (up.value - down.value) / (2 * h) == pytest.approx(shift[k], rel=1e-5, abs=1e-10)
        difference = (up.mean_shift() - down.mean_shift()) / (2 * h) / unit
        np.testing.assert_allclose(difference, found[:, k], rtol=1e-5, atol=1e-9)


def test_jets_are_differences():
    """Of c_3 and c_4 of the centred variable, by l - r m and r."""
    l, r, h = np.array([-12.0, -3.0, 0.2, 3.0, 5.0]), np.array([2.0, 0.5, 1.0, 1.5, 1.0]), 1e-4
    centre = HALF_LINE.moments(l, r).mean

    def jets(dl, dr):
        moments = HALF_LINE.moments(l + dl + dr * centre, r + dr)
        higher = HALF_LINE.higher_cumulants(l + dl + dr * centre, r + dr)
        higher *= np.array([moments.variance**3.5, moments.variance**4])
        cumulants = np.concatenate([moments.cumulants, higher])
        cumulants[0] -= centre
        return cumulant_jets(cumulants)

    for k, jet in enumerate(jets(0.0, 0.0)):
        up, down = jets(h, 0.0)[k], jets(-h, 0.0)[k]
        right, left = jets(0.0, h)[k], jets(0.0, -h)[k]
        for name, over in (("value", "l"), ("l", "ll"), ("r", "lr")):
            difference = (getattr(up, name) - getattr(down, name)) / (2 * h)
            np.testing.assert_allclose(difference, getattr(jet, over), rtol=1e-5, atol=1e-6)
        for name, over in (("value", "r"), ("l", "lr"), ("r", "rr")):
            difference = (getattr(right, name) - getattr(left, name)) / (2 * h)
            np.testing.assert_allclose(difference, getattr(jet, over), rtol=1e-5, atol=1e-6)


def test_jets_multiply_and_raise():
    jet = cumulant_jets(np.random.default_rng(0).uniform(0.5, 1.0, (8, 4)))[2]
    for one, other in ((jet.power(2), jet * jet), (jet.power(-3) * jet.power(4), jet)):
        for name in ("value", "l", "r", "ll", "lr", "rr"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(power(np.array([2.0, 3.0]), 4), [16.0, 81.0])


def errors(model, exact):
    """(mean, covariance, ln Z) errors of EP and of epc, the largest of each in standard deviations."""
    sd = np.sqrt(np.diagonal(exact.covariance))
    found = {}
    for method in ("ep", "epc"):
        r = infer(model, method, throw=False)
        found[method] = (
            np.abs((r.mean - exact.mean) / sd).max(),
            np.abs((r.covariance - exact.covariance) / np.outer(sd, sd)).max(),
            abs(r.log_partition - exact.log_partition),
        )
    return found["ep"], found["epc"]


@QUIET
def test_it_is_several_times_closer_than_ep():
    """On trios by quadrature and forests by message passing, wherever EP has a solution; several modes apart."""
    cases = [(model, integrate(model, 22.0)) for model in TRIOS[:60]]
    cases += [(model, infer(model, "exact")) for model in map(forest, range(60))]
    solved = [
        case for case in cases if infer(case[0], "ep", throw=False).status in (Status.CONVERGED, Status.INACCURATE)
    ]
    pairs = np.array([errors(*case) for case in solved])
    before, after = pairs[:, 0], pairs[:, 1]
    assert len(pairs) > 60
    assert (after.mean(axis=0) < before.mean(axis=0) / 3.0).all()
    assert (np.median(after, axis=0) < np.median(before, axis=0) / 20.0).all()
    assert ((after < before + 1e-9).mean(axis=0) > 0.97).all()


def test_its_error_falls_at_a_higher_order():
    """EP's errors as w³, epc's as w⁵: what is left are fifth cumulants and triangles."""
    triangle = np.array([[0, 1, -0.7], [1, 0, 0.8], [-0.7, 0.8, 0]])
    strengths = np.array([0.05, 0.1, 0.2])
    found = []
    for w in strengths:
        model = NNBM([0.3, -0.2, 0.5], np.eye(3) + w * triangle)
        exact = integrate(model, 16.0)
        before, after = errors(model, exact)
        found.append((*before, *after))
    slopes = np.diff(np.log(found), axis=0) / np.diff(np.log(strengths))[:, None]
    assert (slopes[:, :3] < 3.7).all()
    assert (slopes[:, 3:] > 4.8).all()


def test_covariance_and_variances_belong_together():
    r = infer(nnbm.gallery.square_grid(4, 4, coupling=0.6), "epc")
    np.testing.assert_array_equal(np.diagonal(r.covariance), r.variance)
    np.testing.assert_array_equal(r.covariance, r.covariance.T)
    np.testing.assert_allclose(r.second_moment, r.variance + r.mean**2)
    assert np.linalg.eigvalsh(r.covariance)[0] > 0.0
    np.testing.assert_allclose(np.diagonal(r.correlation), 1.0)


@pytest.mark.parametrize("wall", [-3.0, 2.0])
def test_a_wall_elsewhere_changes_no_correction(wall):
    w = np.eye(4) + 0.3 * (np.ones((4, 4)) - np.eye(4))
    bias = np.array([0.5, -0.2, 1.0, 0.1])
    here, there = solution(bias, w), solution(bias + w.sum(axis=1) * wall, w, Box(wall, np.inf))
    one, other = Expansion.at(here), Expansion.at(there)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    np.testing.assert_allclose(one.mean_shift(), other.mean_shift(), rtol=1e-8)
    np.testing.assert_allclose(bend(here), bend(there), rtol=1e-7, atol=1e-12)


def test_without_a_wall_there_is_nothing_to_correct():
    point = solution(np.array([0.5, -2.0]), np.array([[1.0, 0.4], [0.4, 2.0]]), Box(-np.inf, np.inf))
    assert Expansion.at(point).value == 0.0
    np.testing.assert_array_equal(bend(point), 0.0)


def test_beyond_the_documented_size_covariances_are_linear_response(monkeypatch):
    model = nnbm.gallery.square_grid(3, 3, coupling=0.4)
    whole = infer(model, "epc")
    monkeypatch.setattr(epc, "COVARIANCE_VARIABLES", 8)
    r = infer(model, "epc")
    assert "linear response" in r.detail
    assert "n = 9" in r.detail
    np.testing.assert_allclose(r.covariance, infer(model, "ep").covariance, rtol=1e-9)
    np.testing.assert_array_equal(r.mean, whole.mean)
    assert r.log_partition == whole.log_partition


@QUIET
def test_a_correction_that_is_none_is_not_made(monkeypatch):
    """Where the corrected covariance is indefinite, EP's own values come back and the status says so."""
    model = nnbm.gallery.square_grid(3, 3, coupling=0.4)
    monkeypatch.setattr(epc, "covariance_correction", lambda *_: -np.eye(9))
    r, plain = infer(model, "epc"), infer(model, "ep")
    assert r.status is Status.INACCURATE
    assert "too large" in r.detail
    np.testing.assert_array_equal(r.mean, plain.mean)
    np.testing.assert_array_equal(r.covariance, plain.covariance)


def test_where_ep_has_no_solution_there_is_none():
    with pytest.raises(nnbm.NotConverged, match="epc: no stable solution"):
        infer(nnbm.gallery.square_grid(6, 6, coupling=1.3), "epc")


def test_each_of_several_solutions_is_corrected():
    """The alternatives of EP, but not those of naive mean field; the status stays."""
    model = nnbm.gallery.square_grid(2, 2, coupling=0.4)
    one, other = infer(model, "ep"), infer(model, "naive", throw=False)
    several = replace(one, status=Status.SEVERAL_MODES, expected_error=np.inf, alternatives=(one, other))
    r, single = epc.corrected(problem_of(model), several), infer(model, "epc")
    assert r.status is Status.SEVERAL_MODES
    assert [found.method for found in r.alternatives] == ["epc", "naive"]
    np.testing.assert_array_equal(r.mean, single.mean)
    np.testing.assert_array_equal(r.alternatives[0].mean, single.mean)

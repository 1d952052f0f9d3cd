"""F2, its derivatives and its response: finite differences, the paper's own iterations, the order of its error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnbm
from nnbm.inference import free_energy
from nnbm.inference.problem import Problem
from nnbm.inference.response import second_order_response
from nnbm.site import HALF_LINE
from targets import integrate


def problem_of(model: nnbm.NNBM, bias=None) -> Problem:
    w = model.coupling if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()
    diagonal = np.diagonal(w).copy()
    return Problem(model.bias if bias is None else bias, diagonal, w - np.diag(diagonal), HALF_LINE)


def random_problem(seed: int, n: int = 5, strength: float = 0.4) -> Problem:
    rng = np.random.default_rng(seed)
    off = np.triu(rng.uniform(-strength, strength, size=(n, n)), 1)
    return Problem(rng.normal(size=n), rng.uniform(0.5, 2.0, n), off + off.T, HALF_LINE)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_gradient_and_hessian_are_finite_differences(seed):
    problem, rng = random_problem(seed), np.random.default_rng(seed + 1)
    n = problem.bias.size
    reaction = rng.uniform(-0.2, 0.2, n)
    m = rng.uniform(0.3, 1.5, n)
    v = m * m * rng.uniform(1.2, 1.8, n)
    y = np.concatenate([m, v])
    value = lambda y: free_energy.second_order(problem, y[:n], y[n:], reaction)  # noqa: E731
    slope = lambda y: np.concatenate(free_energy.gradient(problem, y[:n], y[n:], reaction))  # noqa: E731
    hessian = free_energy.hessian(problem, m, v, reaction)
    for k in range(2 * n):
        step = np.zeros(2 * n)
        step[k] = 1e-5 * y[k]
        assert (value(y + step) - value(y - step)) / (2 * step[k]) == pytest.approx(slope(y)[k], rel=1e-5, abs=1e-5)
        difference = (slope(y + step) - slope(y - step)) / (2 * step[k])
        np.testing.assert_allclose(difference, hessian[:, k], rtol=1e-4, atol=1e-5 * np.abs(hessian).max())


@given(st.integers(0, 10**6), st.floats(-3, 30))
def test_the_response_is_the_mean_block_of_the_inverse_hessian(seed, field):
    """EQ 4.1 from the 2n x 2n Hessian in (m, v) against the n x n form in (m, s), far from the wall, too."""
    problem = random_problem(seed)
    problem = Problem(problem.bias + field, problem.diagonal, problem.off, HALF_LINE)
    n = problem.bias.size
    point = problem.point(problem.uncoupled)
    reaction = problem.diagonal - point.r - problem.off_squared @ point.variance
    full = free_energy.hessian(problem, point.mean, point.moments.second_moment, reaction)
    response = second_order_response(point)
    if response is None:
        assert np.linalg.eigvalsh(full)[0] < 1e-9
    else:
        found = response.means.inverse()
        tolerance = 1e-9 * (1 + (point.mean**2 / point.variance).max())  # what the (m, v) form loses
        np.testing.assert_allclose(found, np.linalg.inv(full)[:n, :n], atol=tolerance * np.abs(found).max())


def paper_tap(problem: Problem, sweeps: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """The paper's successive iteration of its TAP equation in (m, v), corrected as in EQ 3."""
    moments = HALF_LINE.moments(problem.bias, problem.diagonal)
    m, v = moments.mean, moments.second_moment
    for _ in range(sweeps):
        s = v - m * m
        l = problem.bias - problem.off @ m - m * (problem.off_squared @ s)
        r = problem.diagonal - problem.off_squared @ s
        moments = HALF_LINE.moments(l, r)
        m, v = 0.7 * m + 0.3 * moments.mean, 0.7 * v + 0.3 * moments.second_moment
    return m, v


def paper_susceptibilities(problem: Problem, point, reaction: np.ndarray, sweeps: int = 4000):
    """The paper's four coupled equations for (M, V, L, R), iterated as they stand (misprints corrected)."""
    n = problem.bias.size
    moments, m = point.moments, point.mean
    by_l, by_r = moments.by_l, moments.by_r
    big_m, big_v = np.diag(point.variance), np.diag(moments.covariance_x_xx)
    back = problem.off_squared @ point.variance + reaction
    for _ in range(sweeps):
        spread = problem.off_squared @ (big_v - 2.0 * m[:, None] * big_m)
        big_l = np.eye(n) - problem.off @ big_m - back[:, None] * big_m - m[:, None] * spread
        big_r = -spread
        new_m = by_l.mean[:, None] * big_l + by_r.mean[:, None] * big_r
        new_v = by_l.second_moment[:, None] * big_l + by_r.second_moment[:, None] * big_r
        big_m, big_v = 0.7 * big_m + 0.3 * new_m, 0.7 * big_v + 0.3 * new_v
    return big_m, big_v, big_l, big_r


GRID = nnbm.gallery.square_grid(3, 4, coupling=0.4)


def test_susp_ends_where_the_papers_own_iterations_end():
    problem, r = problem_of(GRID), nnbm.infer(GRID, "susp")
    m, v = paper_tap(problem)
    np.testing.assert_allclose(r.mean, m, rtol=1e-8)
    np.testing.assert_allclose(r.second_moment, v, rtol=1e-8)
    point = problem.point(problem.state(r.l, r.r))
    expected = paper_susceptibilities(problem, point, np.zeros(12))
    found = r.susceptibilities
    for matrix, theirs in zip((found.mean, found.second_moment, found.l, found.r), expected, strict=True):
        np.testing.assert_allclose(matrix, theirs, atol=1e-7)
    np.testing.assert_allclose(r.covariance, found.mean)


def test_isusp_ends_where_the_papers_own_iterations_end():
    """The paper alternates TAP at given Lambda, susceptibilities and its diagonal matching equation."""
    problem, r = problem_of(GRID), nnbm.infer(GRID, "isusp")
    reaction = problem.diagonal - r.r - problem.off_squared @ r.variance
    l = problem.bias - problem.off @ r.mean - r.mean * (problem.off_squared @ r.variance + reaction)
    np.testing.assert_allclose(l, r.l, atol=1e-7)
    point = problem.point(problem.state(r.l, r.r))
    big_m, big_v, _, big_r = paper_susceptibilities(problem, point, reaction)
    np.testing.assert_allclose(np.diagonal(big_m), r.variance, rtol=1e-7)  # diagonal consistency
    np.testing.assert_allclose(big_m, r.covariance, atol=1e-7)
    # its diagonal matching equation: Lambda = A/s + B/s²
    s, m, v = r.variance, r.mean, r.second_moment
    chain = -np.einsum("ik,ki->i", problem.off, big_m) - s * (problem.off_squared @ s)
    chain -= m * np.einsum("ik,ki->i", problem.off_squared, big_v - 2.0 * m[:, None] * big_m)
    matching = -(r.l * v - m * m * r.l + m) / (2.0 * r.r) * np.diagonal(big_r)
    np.testing.assert_allclose(chain / s + matching / s**2, reaction, atol=1e-6)


def test_error_of_ln_z_falls_as_the_third_power_of_the_coupling():
    triangle = np.array([[0, 1, -0.7], [1, 0, 0.8], [-0.7, 0.8, 0]])
    strengths = np.array([0.05, 0.1, 0.2])
    errors = []
    for w in strengths:
        model = nnbm.NNBM([0.3, -0.2, 0.5], np.eye(3) + w * triangle)
        errors.append(abs(nnbm.infer(model, "susp").log_partition - integrate(model, 16.0).log_partition))
    slopes = np.diff(np.log(errors)) / np.diff(np.log(strengths))
    assert (slopes > 2.7).all()
    assert (slopes < 3.4).all()

"""What is compiled inside a sweep and a verdict, against the same in plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnbm
from nnbm.inference import accuracy, solver
from nnbm.inference.ep import EP, mean_response
from nnbm.inference.infer import problem_of
from nnbm.inference.isusp import ISusP
from nnbm.inference.naive import Naive
from nnbm.inference.problem import closed_step
from nnbm.inference.tap import Tap

seeds = st.integers(0, 10**6)


def somewhere(seed):
    """A point that solves nothing, of a model whose variables have different units."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    unit = np.exp(rng.uniform(-2.0, 2.0, n))
    off = np.triu(rng.uniform(-0.15, 0.3, (n, n)), 1)
    model = nnbm.NNBM(rng.uniform(-1.0, 2.0, n) / unit, (off + off.T + np.eye(n)) / np.outer(unit, unit))
    problem = problem_of(model)
    r = problem.diagonal * rng.uniform(0.6, 1.0, n)
    return problem.point(problem.state(model.bias + 0.3 * rng.normal(size=n) / unit, r))


@given(seeds)
def test_a_sweep(seed):
    here = somewhere(seed)
    problem, m, s, k3 = here.problem, here.mean, here.variance, here.moments.third_cumulant
    g = problem.off + np.diag(problem.diagonal - here.r + 1.0 / s)
    error = here.l - problem.bias + problem.off @ m + (problem.diagonal - here.r) * m
    np.testing.assert_allclose(here.field_error, error, rtol=1e-10, atol=1e-12 * np.abs(here.l).max())
    np.testing.assert_allclose(here.gaussian.matrix(), g, rtol=1e-10, atol=1e-12 * np.abs(g).max())
    for method in (Naive(), Tap(), ISusP(), EP()):
        target = method.target(here).r
        step = np.clip(target, 0.3 * here.r, 3.0 * here.r) - here.r
        shift = np.linalg.solve(g, -here.field_error - 0.5 * k3 / s * step)
        np.testing.assert_allclose(here.mean_shift(step), shift, rtol=1e-8, atol=1e-10 * np.abs(m).max())
        l_step = (shift + 0.5 * here.moments.covariance_x_xx * step) / s / np.sqrt(here.r)
        excess = (np.abs(l_step) / (2.0 + 0.5 * np.abs(here.l) / np.sqrt(here.r))).max()
        l_step *= np.sqrt(here.r / problem.diagonal) / max(1.0, excess)
        move, residual = closed_step(problem, method, problem.state(here.l, here.r))
        np.testing.assert_allclose(move, np.concatenate([l_step, np.log1p(step / here.r)]), rtol=1e-7, atol=1e-10)
        missing = np.abs(np.log(np.maximum(target, 1e-300) / here.r))
        assert residual == pytest.approx(max(excess, np.where(target > 0.0, missing, np.inf).max()), rel=1e-8)


@given(seeds)
def test_tap_looks_ahead(seed):
    """Its target leaves of Newton's equation for r what three rounds of substitution leave."""
    here = somewhere(seed)
    problem, (s, k3, k4) = here.problem, here.moments.cumulants[1:4]
    square = problem.off_squared
    plain = problem.diagonal - square @ s
    pull, own = -0.5 * k3 / s, -0.5 * (s * k4 + 2.0 * s**3 - k3 * k3) / s
    inverse = np.linalg.inv(here.gaussian.matrix())
    # ds = change + response dr
    response = (k3 / s)[:, None] * inverse * pull + np.diag(own)
    change = -(k3 / s) * (inverse @ here.field_error)
    found, sizes = plain, []
    for _ in range(3):
        last, found = found, plain - square @ (change + response @ (found - here.r))
        sizes.append(np.abs((found - last) / here.r).max())
    expected = found if (np.diff(sizes) < 0).all() else plain
    np.testing.assert_allclose(Tap().target(here).r, expected, rtol=1e-9)


@given(seeds)
def test_expected_error(seed):
    here = somewhere(seed)
    m, s, k3, k4 = here.moments.cumulants[:4]
    assert m.size == s.size
    g = np.linalg.inv(here.gaussian.matrix())
    v = np.diagonal(g)
    q = (g / np.outer(v, v)) ** 3
    np.fill_diagonal(q, 0.0)
    shifts = [g @ (k4 / s * (q @ k3)) / 6.0 / np.sqrt(s)]
    for judge in (ISusP(), EP()):
        target = judge.target(here)
        if target is None:
            continue
        moved = here.mean_shift(target.r - here.r)
        spread = (k3 * moved - 0.5 * (s * k4 + 2.0 * s**3 - k3 * k3) * (target.r - here.r)) / s
        shifts += [moved / np.sqrt(s), 0.5 * spread / s]
    response = mean_response(here)
    if response is not None:
        shifts.append(0.3 * (np.diagonal(response.covariance) / s - 1.0))
    assert accuracy.expected_error(here) == pytest.approx(np.abs(np.concatenate(shifts)).max(), rel=1e-6)


@given(seeds)
def test_linear_response_of_ep(seed):
    here = somewhere(seed)
    s, k3, k4 = here.moments.cumulants[1:4]
    g = np.linalg.inv(here.gaussian.matrix())
    p = g * g
    np.fill_diagonal(p, 0.0)
    left = p * (0.5 * k3**2 / s**3 - 0.5 * k4 / s**2) + np.diag(s * s)
    reaction = np.linalg.solve(left, p * (k3 / s**3))
    stiffness = here.gaussian.matrix() - (0.5 * k3 / s)[:, None] * reaction
    response = mean_response(here)
    if response is None:
        assert np.linalg.eigvalsh(stiffness + stiffness.T)[0] < 1e-9 * np.abs(stiffness).max()
        return
    np.testing.assert_allclose(response.reaction, reaction, rtol=1e-6, atol=1e-9 * np.abs(reaction).max())
    np.testing.assert_allclose(
        response.means.matrix(), 0.5 * (stiffness + stiffness.T), rtol=1e-8, atol=1e-10 * np.abs(stiffness).max()
    )


@given(seeds, st.integers(0, 5))
def test_the_mixture_of_moves(seed, memory):
    """The last `memory` differences, least squares over the move; plain until there are two, and without memory."""
    rng = np.random.default_rng(seed)
    moves = solver._Moves(solver.Options(memory=memory, largest=0.5), 8)
    points, steps = [], []
    for k in range(9):
        y, move = rng.normal(size=8), rng.normal(size=8)
        points.append(y)
        steps.append(move)
        by_point, by_move = (np.diff(np.array(rows[-memory - 1 :]), axis=0).T for rows in (points, steps))
        expected = move
        if k > 1 and memory:
            expected = move - (by_point + by_move) @ np.linalg.lstsq(by_move, move)[0]
        reach = 0.5 + 2.0 * np.abs(move)
        np.testing.assert_allclose(moves.next(y, move), y + np.clip(expected, -reach, reach), rtol=1e-6, atol=1e-8)


def test_moves_that_depend_on_each_other_are_forgotten():
    moves = solver._Moves(solver.Options(), 3)
    for _ in range(5):
        np.testing.assert_array_equal(moves.next(np.ones(3), np.full(3, 0.5)), np.full(3, 1.5))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_no_small_error(value):
    assert accuracy._largest(np.array([0.5, value, 0.1])) == np.inf
    assert accuracy._largest(np.array([0.5, -0.7, 0.1])) == 0.7

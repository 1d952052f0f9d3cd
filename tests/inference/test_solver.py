"""The loop: it converges where a plain iteration would not, steps back from where nothing is, and keeps count."""

import numpy as np
import pytest

from nnbm.inference.solver import Options, follow, iterate


def linear(matrix, right):
    def step(y):
        move = right - matrix @ y
        return move, float(np.abs(move).max())

    return step


def test_anderson_solves_what_plain_iteration_cannot():
    """y <- y + (c - A y) diverges for eigenvalues of A beyond 2; the mixture of six moves solves it."""
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    matrix = q @ np.diag([0.2, 0.7, 1.5, 2.5, 4.0]) @ q.T
    right = rng.normal(size=5)
    found = iterate(linear(matrix, right), np.zeros(5), Options(tolerance=1e-10))
    assert found.converged
    np.testing.assert_allclose(found.y, np.linalg.solve(matrix, right), atol=1e-8)
    assert found.history[-1] < 1e-10
    assert len(found.history) < 30


def test_newton_is_not_spoilt_by_what_was_learnt_further_away():
    """x = cos x in many variables: where the residual falls a hundredfold a step, the step is taken as it is."""
    scale = np.linspace(0.5, 2.0, 12)

    def step(y):
        move = -(y - np.cos(scale * y)) / (1.0 + scale * np.sin(scale * y))
        return move, float(np.abs(move).max())

    found = iterate(step, np.full(12, 0.7), Options(tolerance=1e-13))
    assert found.converged
    assert len(found.history) <= 5


def test_infeasible_points_are_stepped_back_from():
    """Newton for ln y = -1 from y = 4 leaves y > 0 at once."""

    def step(y):
        if y[0] <= 0:
            return None
        move = -(np.log(y) + 1.0) * y
        return move, float(np.abs(move).max())

    found = iterate(step, np.array([4.0]), Options(largest=100.0))
    assert found.converged
    assert found.y[0] == pytest.approx(np.exp(-1))
    assert np.inf in found.history


def test_giving_up_returns_the_last_feasible_point():
    assert not iterate(lambda y: None, np.ones(2), Options()).converged
    assert (iterate(lambda y: None, np.ones(2), Options()).y == 1).all()
    stuck = iterate(lambda y: (np.array([0.1]), 1.0), np.zeros(1), Options(patience=7))
    assert not stuck.converged
    assert len(stuck.history) == 8
    short = iterate(lambda y: (-0.1 * y, float(abs(y[0]))), np.ones(1), Options(sweeps=3, memory=1))
    assert len(short.history) <= 3


def test_nonfinite_moves_are_not_taken():
    found = iterate(lambda y: (np.array([np.nan]), np.nan), np.zeros(1), Options())
    assert not found.converged
    assert np.isfinite(found.y).all()


def test_a_path_arrives_or_says_where_it_ends():
    """y² = 1 - t has the solution sqrt(1 - t) up to t = 1; y² = 0.6 - t ends at 0.6."""

    def step_at(level):
        def at(t):
            def step(y):
                if y[0] <= 1e-3 or level - t < 0:
                    return None
                move = -(y * y - (level - t)) / (2.0 * y)
                return move, float(np.abs(move).max())

            return step

        return at

    arrived = follow(step_at(1.5), np.array([np.sqrt(1.5)]), Options())
    assert arrived.reached == 1.0
    assert arrived.outcome.converged
    assert arrived.outcome.y[0] == pytest.approx(np.sqrt(0.5))
    ended = follow(step_at(0.6), np.array([np.sqrt(0.6)]), Options())
    assert not ended.outcome.converged
    assert 0.58 < ended.reached <= 0.6


def test_senseless_options_are_refused():
    with pytest.raises(ValueError, match="tolerance > 0 and sweeps >= 1"):
        Options(tolerance=0.0)

"""Methods know a domain only through its site: the same methods on other domains, where the answer is known."""

import numpy as np
import pytest

from nnbm import Options
from nnbm.inference.closed import infer_closed
from nnbm.inference.ep import EP
from nnbm.inference.isusp import ISusP
from nnbm.inference.isusp3 import ISusP3
from nnbm.inference.naive import Naive
from nnbm.inference.problem import Problem
from nnbm.inference.result import Status
from nnbm.inference.tap import Susp
from nnbm.inference.tap3 import Tap3
from nnbm.site import HALF_LINE, Box

METHODS = {method.name: method for method in (Naive(), Susp(), Tap3(), ISusP(), ISusP3(), EP())}


def grid(coupling, site=HALF_LINE, wall=0.0):
    """A 3x3 grid; with a wall it is the same density moved by it."""
    rng = np.random.default_rng(0)
    off = np.zeros((9, 9))
    for k in range(9):
        for other in ([k + 1] if k % 3 < 2 else []) + ([k + 3] if k < 6 else []):
            off[k, other] = off[other, k] = coupling
    bias = rng.uniform(-0.4, 1.0, 9)
    return Problem(bias + (off.sum(axis=1) + 1.0) * wall, np.ones(9), off, site)


@pytest.mark.parametrize("wall", [-3.0, 2.0])
@pytest.mark.parametrize("name", METHODS)
def test_a_wall_elsewhere_only_moves_the_answer(name, wall):
    plain = infer_closed(grid(0.3), METHODS[name], (), Options())
    moved = infer_closed(grid(0.3, Box(wall, np.inf), wall), METHODS[name], (), Options())
    assert moved.status is plain.status
    assert moved.expected_error == pytest.approx(plain.expected_error, rel=1e-6)
    np.testing.assert_allclose(moved.mean, plain.mean + wall, rtol=1e-7)
    np.testing.assert_allclose(moved.variance, plain.variance, rtol=1e-7)
    np.testing.assert_allclose(moved.covariance, plain.covariance, atol=1e-8)
    problem = grid(0.3, Box(wall, np.inf), wall)
    at_wall = np.full(9, wall)
    energy = 0.5 * at_wall @ (problem.off + np.eye(9)) @ at_wall - problem.bias @ at_wall
    assert moved.log_partition == pytest.approx(plain.log_partition - energy, abs=1e-7)


def test_other_modes_are_looked_for_behind_another_wall():
    pair = np.array([[0.0, 3.0], [3.0, 0.0]])
    bias = np.array([6.0, 7.0])
    plain = infer_closed(Problem(bias, np.ones(2), pair, HALF_LINE), Naive(), (), Options())
    moved = infer_closed(Problem(bias + 4.0 * 5.0, np.ones(2), pair, Box(5.0, np.inf)), Naive(), (), Options())
    assert plain.status is moved.status is Status.SEVERAL_MODES
    np.testing.assert_allclose(moved.mean, plain.mean + 5.0, rtol=1e-7)
    np.testing.assert_allclose(moved.alternatives[0].mean, plain.alternatives[0].mean + 5.0, rtol=1e-7)


@pytest.mark.parametrize("name", ["isusp", "isusp3", "ep"])
def test_without_a_wall_it_is_gaussian_algebra(name):
    problem = grid(0.25, Box(-np.inf, np.inf))
    w = problem.off + np.eye(9)
    r = infer_closed(problem, METHODS[name], (), Options())
    assert r.status is Status.CONVERGED
    assert r.expected_error < 1e-8
    np.testing.assert_allclose(r.mean, np.linalg.solve(w, problem.bias), rtol=1e-8)
    np.testing.assert_allclose(r.covariance, np.linalg.inv(w), rtol=1e-8)
    expected = 0.5 * problem.bias @ r.mean + 4.5 * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(w)[1]
    assert r.log_partition == pytest.approx(expected, rel=1e-9)

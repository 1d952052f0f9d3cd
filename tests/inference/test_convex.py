"""A proof that there is one mode must be right, and must be found where the search for others costs most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnbm
from nnbm.inference.convex import only_mode
from nnbm.inference.infer import problem_of
from nnbm.site import HALF_LINE


def relaxed(problem, r, starts):
    """(starts, n) means at which damped rounds of EQ 5.1 with this r end."""
    back, mean = problem.diagonal - r, starts
    l = problem.bias - mean @ problem.off - back * mean
    for _ in range(3000):
        mean = HALF_LINE.moments(l, r).mean
        l = l + 0.15 * (problem.bias - mean @ problem.off - back * mean - l)
    return mean


@given(st.integers(0, 10**6))
def test_where_it_is_proved_every_relaxation_ends_in_one_place(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    off = np.triu(rng.uniform(0.0, 2.0, (n, n)), 1)
    problem = problem_of(nnbm.NNBM(rng.uniform(-1.0, 3.0, n), off + off.T + np.eye(n)))
    main = problem.point(problem.state(problem.bias, rng.uniform(0.5, 1.0, n)))
    if only_mode(problem, main):
        means = relaxed(problem, main.r, rng.uniform(0.0, 4.0, (12, n)))
        np.testing.assert_allclose(means, np.broadcast_to(means[0], means.shape), atol=1e-5)


@pytest.mark.parametrize(("bias", "proved"), [((-1.0, -1.2), True), ((6.0, 7.0), False)])
def test_two_modes_are_not_proved_away(bias, proved):
    problem = problem_of(nnbm.NNBM(bias, [[1.0, 3.0], [3.0, 1.0]]))
    assert only_mode(problem, problem.point(problem.uncoupled)) is proved


@pytest.mark.parametrize("coupling", [0.2, 0.6, 0.8])
def test_the_grid_is_proved_although_w_is_not_positive_definite(coupling):
    model = nnbm.gallery.square_grid(6, 6, coupling=coupling)
    problem, found = problem_of(model), nnbm.infer(model, "isusp")
    main = problem.point(problem.state(found.l, found.r))
    assert only_mode(problem, main)
    # of weaker couplings nothing is claimed
    assert only_mode(problem, problem.weakened(0.9).point(problem.state(found.l, found.r))) is (coupling == 0.2)


def test_couplings_of_both_signs_are_left_to_the_search():
    problem = problem_of(nnbm.NNBM(np.ones(3), [[1.0, 1.5, -0.3], [1.5, 1.0, -0.3], [-0.3, -0.3, 1.0]]))
    assert not only_mode(problem, problem.point(problem.uncoupled))

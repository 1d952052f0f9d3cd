"""Exact HMC: dynamics that conserve energy and can be run backwards, the law against exact integration, refusals."""

import math

import numpy as np
import pytest
from exact_pairs import PAIRS, drift, z_scores
from scipy import sparse

import nnbm
from nnbm import HMC, NNBM, sample
from nnbm.copositive import Verdict
from nnbm.sampling.hmc import _bounce_along, _earliest, _time
from targets import box_models, small_models

FEW_DRAWS = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
ALL = {name: (model, 0.0, upper) for name, (model, upper) in small_models().items()}
ALL |= {name: (model, low, high) for name, (model, low, high) in box_models().items()}
DEFINITE = {k: v for k, v in ALL.items() if v[0].copositivity.verdict is Verdict.POSITIVE_DEFINITE or k == "no ends"}
INDEFINITE = ["pair, not positive definite", "interval, two humps", "interval, flat", "pair, attracting"]
GRID = nnbm.gallery.square_grid(4, 4, coupling=0.24)
PAIR = PAIRS[1]


def state(model: NNBM, seed: int):
    """mean, covariance, low, high, away, v of a chain in the middle of things."""
    rng = np.random.default_rng(seed)
    covariance = np.linalg.inv(sparse.csr_array(model.coupling).toarray())
    mean = covariance @ model.bias
    x = np.clip(rng.exponential(size=model.n), model.lower + 0.01, model.upper - 0.01)
    v = np.linalg.cholesky(covariance) @ rng.normal(size=model.n)
    return mean, covariance, model.lower - mean, model.upper - mean, x - mean, v


def energy(model: NNBM, away: np.ndarray, v: np.ndarray) -> float:
    return 0.5 * (away @ (model.coupling @ away) + v @ (model.coupling @ v))


BOXED = NNBM(GRID.bias, GRID.coupling, lower=-0.3, upper=[0.5] * 8 + [np.inf] * 8)


@pytest.mark.parametrize("model", [GRID, BOXED, NNBM(GRID.bias - 3.0, GRID.coupling)], ids=["free", "box", "pressed"])
def test_dynamics_conserve_energy_and_run_backwards(model):
    for seed in range(20):
        _, covariance, low, high, away, v = state(model, seed)
        turns, started, before = np.empty(model.n), away.copy(), energy(model, away, v)
        bounces = _bounce_along(1.7, covariance, low, high, away, v, turns)
        assert bounces > 0
        assert abs(energy(model, away, v) - before) < 1e-9 * before
        assert ((away >= low - 1e-12) & (away <= high + 1e-12)).all()
        v *= -1.0
        assert _bounce_along(1.7, covariance, low, high, away, v, turns) == bounces
        assert np.abs(away - started).max() < 1e-8


def test_a_whole_period_without_walls_ends_where_it_began():
    _, covariance, low, high, away, v = state(NNBM(GRID.bias, GRID.coupling, lower=-np.inf), 1)
    started, turns = away.copy(), np.empty(16)
    assert _bounce_along(2 * math.pi, covariance, low, high, away, v, turns) == 0
    assert np.abs(away - started).max() < 1e-13


def test_the_next_wall_is_the_next_wall():
    """Against a fine walk along the circle."""
    t = np.linspace(0.0, 2 * math.pi, 200_001)[1:]
    rng = np.random.default_rng(3)
    for _ in range(200):
        low, high = np.sort(rng.normal(size=2))
        away, v = np.array([rng.uniform(low, high)]), rng.normal(size=1)
        low, high = (low if rng.uniform() < 0.7 else -np.inf), (high if rng.uniform() < 0.7 else np.inf)
        path = away * np.cos(t) + v * np.sin(t)
        outside = (path < low) | (path > high)
        expected = t[np.argmax(outside)] if outside.any() else np.inf
        found = _time(_earliest(away, v, np.array([low]), np.array([high]), np.empty(1)))
        assert found == expected or abs(found - expected) < 4e-5


def many_draws(model: NNBM, starts: np.ndarray, sweeps: int, seed: int, method: HMC | None = None) -> np.ndarray:
    """Independent rows (count, n) after `sweeps` trajectories from `starts` (count, n)."""
    chain, out = (method or HMC()).chains(model, starts[:1], seed, 1)[0], np.empty_like(starts)
    for k, start in enumerate(starts):
        chain.x[:] = start
        chain.run(sweeps, out[k : k + 1])
    return out


@pytest.mark.parametrize("name", DEFINITE)
@pytest.mark.parametrize("length", [0.6, math.pi / 2])
def test_moments_against_exact_integration(name, length):
    model, low, high = DEFINITE[name]
    starts = np.clip(np.random.default_rng(1).exponential(size=(10_000, model.n)), model.lower, model.upper)
    x = many_draws(model, starts, 40, 7, HMC(length))
    assert ((model.lower <= x) & (x <= model.upper)).all()
    assert np.abs(z_scores(model, high, x, low)).max() < 5.0


def test_no_drift():
    assert drift(PAIR, lambda before: many_draws(PAIR, before, 2, 6)) < 2.6


def test_drift_of_a_slightly_wrong_model_is_seen():
    wrong = NNBM(PAIR.bias + np.array([0.05, 0.0]), PAIR.coupling)
    assert drift(PAIR, lambda before: many_draws(wrong, before, 2, 6)) > 2.6


@pytest.mark.parametrize("name", INDEFINITE)
def test_indefinite_couplings_are_refused_with_an_alternative(name):
    with pytest.raises(ValueError, match=r'positive definite coupling.*method="fields"'):
        sample(ALL[name][0], method="hmc")


def test_too_many_variables_are_refused():
    with pytest.raises(ValueError, match="at most 5000 variables"):
        sample(nnbm.gallery.square_grid(80, 80, coupling=0.1), method="hmc")


def test_dense_and_sparse_models_draw_the_same():
    dense = NNBM(GRID.bias, GRID.coupling.toarray())
    pair = [sample(model, 200, method="hmc", initial=np.ones(16), seed=1).draws for model in (GRID, dense)]
    assert np.allclose(*pair, rtol=1e-6)


@FEW_DRAWS
@pytest.mark.parametrize("c", [2.0**-20, 2.0**30])
def test_scaling_x_scales_the_draws(c):
    plain = sample(PAIR, 50, chains=2, seed=1, method="hmc").draws
    scaled = sample(NNBM(PAIR.bias / c, PAIR.coupling / c**2), 50, chains=2, seed=1, method="hmc").draws
    assert np.allclose(scaled, c * plain, rtol=1e-9)


@FEW_DRAWS
def test_threads_and_other_chains_do_not_change_the_draws():
    runs = [sample(GRID, 20, chains=c, method="hmc", initial=np.ones(16), seed=5, threads=t).draws
            for c, t in ((3, 1), (3, 2), (5, 7))]  # fmt: skip
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2][:3]).all()


def test_two_sweeps_are_one_sweep_twice_and_what_a_chain_tells():
    one, other = (HMC().chains(GRID, np.ones((1, 16)), 3, 1)[0] for _ in range(2))
    a, b = np.empty((1, 16)), np.empty((2, 16))
    one.run(4, a)
    other.run(2, b)
    assert (a[0] == b[1]).all()
    assert one.info() == other.info()
    assert one.info()["bounces"] > 1
    assert one.info()["refused"] == 0.0


def test_a_chain_that_is_not_finite_stays_so():
    chain, out = HMC().chains(GRID, np.ones((1, 16)), 3, 1)[0], np.empty((3, 16))
    chain.x[0] = np.nan
    chain.run(1, out)
    assert np.isnan(out).all()


def test_symmetry_of_a_ring():
    s = sample(nnbm.gallery.orientation_tuning(24, epsilon=1.5), 5000, method="hmc", seed=1)
    assert np.abs((s.mean - s.mean.mean()) / s.mean_error).max() < 4.5


@pytest.mark.parametrize("length", [0.0, -1.0, np.inf, np.nan])
def test_bad_lengths_are_named(length):
    with pytest.raises(ValueError, match="length: a positive, finite time"):
        HMC(length)

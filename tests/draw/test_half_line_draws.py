"""Exact draws: Kolmogorov-Smirnov in every tail, moments, and the table's own closure."""

import math

import numpy as np
import pytest
from scipy import special

from nnbm.draw import truncated_normal
from nnbm.site import HALF_LINE

# z = l / sqrt r: both sides of every switch in the code, and both ends
WALLS = [-1e8, -1e4, -30.0, -5.0, -2.31, -2.29, -1.0, -0.2, 0.0, 0.7, 2.0, 3.05, 3.2, 1e3]
KS_LIMIT = 2.75  # P(sqrt(N) D > 2.75) = 5.4e-7; with 28 tests a false alarm is a 1.5e-5 event


def distribution(x: np.ndarray, z: float) -> np.ndarray:
    """P(X <= x) for exp(z x - x²/2) on x >= 0, free of cancellation on both sides."""
    if z < 0:
        a = -z
        with np.errstate(over="ignore"):
            survival = (
                np.exp(-x * (a + x / 2)) * special.erfcx((a + x) / math.sqrt(2)) / special.erfcx(a / math.sqrt(2))
            )
        return 1 - survival
    below = special.ndtr(-z)
    return (special.ndtr(x - z) - below) / (1 - below)


def ks(x: np.ndarray, z: float) -> float:
    p = np.sort(distribution(x, z))
    rank = np.arange(p.size)
    return math.sqrt(p.size) * max((p - rank / p.size).max(), ((rank + 1) / p.size - p).max())


@pytest.mark.parametrize("z", WALLS)
@pytest.mark.parametrize("seed", [1, 2])
def test_kolmogorov_smirnov(z, seed):
    assert ks(truncated_normal(z, 1.0, 300_000, seed=seed), z) < KS_LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("z", WALLS)
@pytest.mark.parametrize("seed", [1, 2])
def test_kolmogorov_smirnov_at_five_million(z, seed):
    statistic = ks(truncated_normal(z, 1.0, 5_000_000, seed=seed), z)
    assert statistic < KS_LIMIT


@pytest.mark.parametrize("z", [-5.0, -2.29, 0.0, 2.0])
def test_the_test_would_see_a_wrong_law(z):
    """Negative control: a wall out of place by 3% of its distance (or 0.03) is caught at this size."""
    assert ks(truncated_normal(z + 0.03 * max(1.0, abs(z)), 1.0, 300_000, seed=1), z) > KS_LIMIT


def test_moments_at_any_scale():
    rng = np.random.default_rng(0)
    z, r = rng.uniform(-50, 20, 40), 10.0 ** rng.uniform(-10, 10, 40)
    count = 100_000
    x = truncated_normal(z * np.sqrt(r), r, size=(count, 40), seed=5)
    exact = HALF_LINE.moments(z * np.sqrt(r), r)
    error = np.sqrt(exact.variance / count)
    assert (np.abs(x.mean(axis=0) - exact.mean) < 5.5 * error).all()
    spread = np.sqrt((exact.fourth_cumulant + 2 * exact.variance**2) / count)
    assert (np.abs(x.var(axis=0) - exact.variance) < 5.5 * spread).all()


def test_no_cancellation_at_the_wall():
    """Deep behind the wall the smallest of many draws still has all its digits: they are not multiples of an ulp."""
    x = np.sort(truncated_normal(-1e8, 1.0, 100_000, seed=0))
    assert (x > 0).all()
    assert np.unique(x).size == x.size
    near = np.sort(truncated_normal(0.5, 1.0, 100_000, seed=0))
    assert np.unique(near).size == near.size


def test_reproducible_and_shaped():
    a = truncated_normal([0.0, 1.0], 1.0, size=(5, 2), seed=3)
    assert a.shape == (5, 2)
    assert (a == truncated_normal([0.0, 1.0], 1.0, size=(5, 2), seed=3)).all()
    assert (a != truncated_normal([0.0, 1.0], 1.0, size=(5, 2), seed=4)).any()
    assert truncated_normal(0.0, np.ones((2, 3)), seed=0).shape == (2, 3)
    with pytest.raises(ValueError, match="r must be positive"):
        truncated_normal(0.0, -1.0, seed=0)

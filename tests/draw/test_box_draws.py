"""Draws between ends of every kind: laws, moments at any place and scale, shapes, refusals."""

import math

import numpy as np
import pytest
from scipy import special

from nnbm.draw import box_draw, normal, truncated_normal
from nnbm.kernels import kernel
from nnbm.site import Box
from nnbm.stream import load, store, streams

INF = np.inf
LOWER = np.array([0.0, 1.5, -INF, 0.0, -INF, -2.0, -7.0, 1e3])
UPPER = np.array([INF, INF, 0.7, 2.0, INF, -0.5, 5.0, 1e3 + 1.0])


@kernel()
def normals(row, out):
    stream = load(row)
    for k in range(out.size):
        out[k], stream = normal(stream)
    store(stream, row)


@kernel()
def one_draw(l, r, lower, upper, row):
    return box_draw(l, r, lower, upper, load(row))[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_normals_are_normal(seed):
    x = np.empty(500_000)
    normals(streams(seed, 1)[0], x)
    p, rank = special.ndtr(np.sort(x)), np.arange(x.size)
    distance = max((p - rank / x.size).max(), ((rank + 1) / x.size - p).max())
    assert math.sqrt(x.size) * distance < 2.75  # a 5e-7 event
    signs = np.sign(x)
    assert abs((signs[1:] * signs[:-1]).sum()) < 5 * math.sqrt(x.size)  # the sign has its own bits
    assert abs(np.corrcoef(np.abs(x), signs)[0, 1]) < 5 / math.sqrt(x.size)


def test_moments_at_any_place_and_scale():
    rng = np.random.default_rng(0)
    count, repeats = 100_000, 5
    for _ in range(repeats):
        scale = 10.0 ** rng.uniform(-6, 6)
        r = np.exp(rng.normal(size=8)) * np.where(np.isfinite(UPPER - LOWER), rng.choice([-2, 1], 8), 1)
        l = rng.normal(size=8) * 3.0 + np.where(LOWER == 1e3, r * LOWER, 0.0)
        box = Box(LOWER * scale, UPPER * scale)
        l, r = l / scale, r / scale**2
        x = truncated_normal(l, r, (count, 8), lower=box.lower, upper=box.upper, seed=int(rng.integers(1000)))
        assert (x >= box.lower).all()
        assert (x <= box.upper).all()
        exact = box.moments(l, r)
        assert (np.abs(x.mean(axis=0) - exact.mean) < 5.5 * np.sqrt(exact.variance / count)).all()
        # for two points at equal heights the fluctuation of the variance is that of its own estimate
        spread = np.sqrt((exact.fourth_cumulant + 2 * exact.variance**2) / count) + 30 * exact.variance / count
        assert (np.abs(x.var(axis=0) - exact.variance) < 5.5 * spread).all()


def test_the_test_of_moments_would_see_a_wall_out_of_place():
    count = 100_000
    x = truncated_normal(0.0, -1.0, count, lower=-1.0, upper=1.03, seed=0)
    exact = Box(-1.0, 1.0).moments(0.0, -1.0)
    assert abs(x.mean() - exact.mean) > 5.5 * np.sqrt(exact.variance / count)


def test_a_reflected_half_line_draws_the_reflected_numbers():
    x = truncated_normal([-3.0, 2.0], [1.0, 0.1], (1000, 2), lower=0.0, seed=4)
    y = truncated_normal([3.0, -2.0], [1.0, 0.1], (1000, 2), lower=-INF, upper=0.0, seed=4)
    np.testing.assert_array_equal(y, -x)


@pytest.mark.parametrize("r", [1.0, 0.0, -3.0])
def test_an_interval_below_0_draws_the_mirrored_numbers(r):
    x = (
        truncated_normal([-3.0, 2.0], r, (1000, 2), upper=[1.5, 1e3], seed=4)
        if r > 0
        else truncated_normal([-3.0, 2.0], r, (1000, 2), upper=1.5, seed=4)
    )
    lower = [-1.5, -1e3] if r > 0 else -1.5
    np.testing.assert_array_equal(-truncated_normal([3.0, -2.0], r, (1000, 2), lower=lower, upper=0.0, seed=4), x)


def test_ends_out_of_sight_are_none():
    plain = truncated_normal([0.3, -2.0], [1.0, 4.0], (1000, 2), lower=-INF, seed=4)
    far = truncated_normal([0.3, -2.0], [1.0, 4.0], (1000, 2), lower=-1e300, upper=[50.0, 1e300], seed=4)
    np.testing.assert_array_equal(far, plain)


def test_shapes_and_seeds():
    a = truncated_normal([0.0, 1.0], -1.0, size=(5, 2), upper=[1.0, 2.0], seed=3)
    assert a.shape == (5, 2)
    assert (a == truncated_normal([0.0, 1.0], -1.0, size=(5, 2), upper=[1.0, 2.0], seed=3)).all()
    assert (a != truncated_normal([0.0, 1.0], -1.0, size=(5, 2), upper=[1.0, 2.0], seed=4)).any()
    assert truncated_normal(0.0, 1.0, lower=[-INF, 0.0, 1.0], seed=0).shape == (3,)
    with pytest.raises(ValueError, match="size: l, r and the ends must broadcast to it"):
        truncated_normal(0.0, 1.0, size=4, lower=[0.0, 1.0], seed=0)


def test_refusals_are_those_of_the_site():
    with pytest.raises(ValueError, match=r"r must be positive, but r = -1\.0"):
        truncated_normal(0.0, -1.0, lower=-INF, seed=0)
    with pytest.raises(ValueError, match="lower < upper is needed"):
        truncated_normal(0.0, 1.0, lower=1.0, upper=1.0, seed=0)
    with pytest.raises(ValueError, match="l/r must be a float"):
        truncated_normal(-1e300, 1e-300, lower=-INF, upper=0.0, seed=0)


def test_densities_without_a_norm_give_no_number():
    row = streams(0, 1)[0]
    for lower, upper in zip(LOWER, UPPER, strict=True):
        for l, r in [(np.nan, 1.0), (1.0, np.nan)]:
            assert np.isnan(one_draw(l, r, lower, upper, row))
        if np.isinf(upper - lower):
            assert np.isnan(one_draw(1.0, -1.0, lower, upper, row))

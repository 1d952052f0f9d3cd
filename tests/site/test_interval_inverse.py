"""Moments on an interval and back: everywhere they exist, up to their limits, and refused beyond."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbm import NoSite
from nnbm.site import Box, interval_statistics
from nnbm.site.interval_inverse import gap_below_two_points, interval_natural
from nnbm.site.interval_statistics import workspace

NODES = workspace()


def misses(mean, variance, width):
    """By how much the moments of the answer miss those asked for, in sd and relative to the variance; and r width²."""
    l, r = interval_natural(mean, variance, width, NODES)
    found = interval_statistics(l, r, width)
    return abs(found.k1 - mean) / np.sqrt(variance), abs(found.k2 / variance - 1.0), r * width**2


def allowed(mean, variance, size):
    """1e-11, the rounding of the mean, and that of r width²: of two spikes it is the logarithm of their weights."""
    return 1e-11 + 2.0**-50 * (mean / np.sqrt(variance) + max(-size, 0.0))


shares = st.one_of(st.floats(1e-12, 1 - 1e-12), st.floats(1e-12, 1e-3), st.floats(1e-12, 1e-3).map(lambda x: 1.0 - x))


@given(shares, shares, st.integers(-30, 30), st.booleans())
def test_there_and_back(place, share, exponent, above):
    """share: of the two-point law's variance."""
    width = 1.7 * 2.0**exponent
    mean = place * width
    variance = share * mean * (width - mean)
    gap = gap_below_two_points(min(place, 1.0 - place), variance / width**2, 1.0)
    if gap < 1e-9:  # less than floats l and r can tell
        return
    in_mean, in_variance, size = misses(mean, variance, width)
    assert in_mean <= allowed(mean, variance, size)
    assert in_variance <= allowed(mean, variance, size)


@pytest.mark.slow
def test_there_and_back_half_a_million_times():
    rng = np.random.default_rng(0)
    count = 500_000
    place = np.where(rng.random(count) < 0.4, rng.random(count), 10.0 ** rng.uniform(-10, 0, count))
    place = np.where(rng.random(count) < 0.3, 1.0 - place, place)
    share = np.select(
        [rng.random(count) < 0.5, rng.random(count) < 0.6],
        [rng.random(count), 10.0 ** rng.uniform(-8, 0, count)],
        1.0 - 10.0 ** rng.uniform(-9, 0, count),
    )
    variance = share * place * (1.0 - place)
    fit = (place > 0) & (place < 1) & (place * (1 - place) - variance > 4e-10)
    place, variance = place[fit], variance[fit]
    box = Box(0.0, 1.0)
    l, r = box.from_mean_variance(place, variance)
    found = box.moments(l, r)
    bound = allowed(place, variance, 0.0) + 2.0**-50 * np.maximum(-r, 0.0)
    assert (np.abs(found.mean - place) <= bound * np.sqrt(variance)).all()
    assert (np.abs(found.variance / variance - 1.0) <= bound).all()


@pytest.mark.parametrize(
    ("slope", "curvature"),
    [(0.0, 0.0), (1e-3, 1e-3), (-2.0, 0.0), (3.0, 7.0), (-3.0, -7.0), (50.0, 100.0), (-20.0, 1.0), (-40.0, -10.0),
     (-50.0, -100.0), (-55.0, -100.0), (-70.0, -100.0), (200.0, 390.0), (-500.0, -1000.0), (-30.0, 30.0)],
)  # fmt: skip
def test_natural_parameters_come_back(slope, curvature):
    """Away from the limits l and r themselves are well determined."""
    found = interval_statistics(slope, curvature, 1.0)
    l, r = interval_natural(found.k1, found.k2, 1.0, NODES)
    scale = 1.0 / found.k2 + abs(curvature)
    assert abs(r - curvature) <= 1e-8 * scale
    assert abs(l - slope) <= 1e-8 * scale


def test_uniform_exponential_and_normal():
    l, r = interval_natural(1.5, 9.0 / 12.0, 3.0, NODES)
    assert l == pytest.approx(0.0, abs=1e-12)
    assert r == pytest.approx(0.0, abs=1e-12)
    l, r = interval_natural(1e-3, 1e-6 * (1 - 1e-7), 1.0, NODES)  # near the lower wall, the upper one out of sight
    assert l == pytest.approx(-1e3, rel=1e-4)
    l, r = interval_natural(1.0 - 2.0**-10, 2.0**-20, 1.0, NODES)  # an exponential at the upper wall
    assert l == pytest.approx(2.0**10, rel=1e-4)
    l, r = interval_natural(0.3, 1e-8, 1.0, NODES)
    assert (l, r) == pytest.approx((0.3e8, 1e8), rel=1e-13)
    l, r = interval_natural(0.3, 1e-300, 1.0, NODES)
    assert (l, r) == pytest.approx((0.3e300, 1e300), rel=1e-13)


def test_near_two_points_the_rates_are_those_of_exponentials():
    """<x (width - x)> is then half of width over the rate at either end, and their weights follow from the tilt."""
    for gap in (1e-3, 1e-5, 1e-7):
        mean = 0.3
        l, r = interval_natural(mean, mean * (1.0 - mean) - gap, 1.0, NODES)
        assert -r == pytest.approx(2.0 / gap, rel=20 * gap)
        assert l - r / 2 == pytest.approx(np.log(mean / (1.0 - mean)), rel=100 * gap + 1e-8)


@given(shares, shares, shares)
def test_more_variance_at_one_mean_is_less_r(place, one, other):
    most = place * (1.0 - place)
    low, high = sorted((0.999 * one * most, 0.999 * other * most))
    if high > 1.01 * low and place * (1 - place) > 1e-6:
        assert interval_natural(place, high, 1.0, NODES)[1] < interval_natural(place, low, 1.0, NODES)[1]


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(-0.1, 0.01), (0.0, 0.01), (2.0, 0.01), (2.1, 0.01), (0.5, 0.0), (0.5, -1.0), (0.5, 0.75), (0.5, 0.8), (1.0, 1.0)],
)
def test_impossible_moments_are_refused_by_index(mean, variance):
    with pytest.raises(NoSite, match="place 1, 3") as caught:
        Box(0.0, 2.0).from_mean_variance([1.0, mean, 0.2, mean], [0.3, variance, 0.01, variance])
    assert caught.value.indices.tolist() == [1, 3]


def test_what_floats_cannot_tell_is_refused():
    """Two spikes so thin that the rounding of r is the ratio of their weights."""
    with pytest.raises(NoSite, match="l and r of these moments must be floats"):
        Box(0.0, 1.0).from_mean_variance(0.5, 0.25 - 1e-14)

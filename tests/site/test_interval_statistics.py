"""One variable on an interval against mpmath, its own symmetries, and the half line it turns into."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbm.site import interval_statistics, statistics
from nnbm.site.interval_statistics import interval_higher, workspace
from targets import interval_site, site_cumulants

WIDTHS = [1.0, 3e-7, 2e5]
# l width and r width²: walls seen and unseen, peaks between and at the walls, mass at one end and at both
PLANE = [
    (0.0, 0.0), (1e-9, 0.0), (-7.0, -0.0), (-77.0, -0.0), (300.0, 0.0), (-1e8, 0.0), (0.5, 1.0), (-3.0, 5.0),
    (9.0, 4.0), (50.0, 100.0), (180.0, 360.0), (143.74, 272.649), (218.0, 437.9), (40.0, 300.0), (-20.0, 60.0),
    (-54.0, 1.9), (-54.5, 2.1),
    (20.9, 200.0), (-1e8, 1e6), (0.0, 1e12), (5e11, 1e12), (-3e6, 1e12), (1e12 - 5.0, 1e12), (3e4, 7e7), (1e8, 3e8),
    (-1.0, -2.0), (4.0, -1.0), (-10.0, -20.0), (-30.0, -59.0), (-60.0, -30.0), (-64.0, -128.0), (-66.0, -131.0),
    (-70.0, -80.0), (-150.0, -151.0), (-151.0, -149.0), (-240.0, -380.0), (-300.0, -598.0), (-500.0, -1000.0),
    (-510.0, -1000.0), (-560.0, -1000.0), (-700.0, -1000.0), (-2e3, -1e3), (-5e5, -1e6), (-5e5 - 30.0, -1e6),
    (-5e5 + 300.0, -1e6), (-8e5, -1e6), (-1e8, -1e6), (1e8, -1e6), (7.0, -1e6),
]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_ln_z_and_six_cumulants_against_mpmath(width):
    for slope, curvature in PLANE:
        l, r = slope / width, curvature / width**2
        exact, found = interval_site(l, r, width), interval_statistics(l, r, width)
        where = (slope, curvature, width)
        k = exact.cumulants
        assert abs(found.log_partition - k[0]) <= 1e-14 * max(1, abs(k[0]), abs(slope)), where
        assert abs(found.k1 - k[1]) <= 1e-12 * exact.sd + 2.0**-51 * k[1], where
        assert abs(found.k2 - k[2]) <= 1e-13 * k[2], where
        for order in range(3, 7):
            assert abs(found[order] - k[order]) <= 1e-12 * exact.scale(order), (order, where)


def test_the_seventh_and_the_eighth_cumulant():
    found, nodes = np.empty(2), workspace()
    for slope, curvature in PLANE:
        exact = interval_site(slope, curvature, 1.0)
        interval_higher(slope, curvature, 1.0, nodes, found)
        for order, value in zip((7, 8), found, strict=True):
            error = abs(value - exact.cumulants[order] / exact.sd**order)
            assert error <= 1e-11 * exact.scale(order) / exact.sd**order, (order, slope, curvature)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_anywhere_in_the_plane(seed):
    rng = np.random.default_rng(seed)
    for _ in range(400):
        curvature = rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 12)
        curvature = max(curvature, -1e6) if rng.random() < 0.5 else rng.uniform(-700, 500)
        slope = curvature * rng.choice([0.5, rng.uniform(-0.2, 1.2)]) + rng.normal() * 10 ** rng.uniform(-2, 4)
        width = 10 ** rng.uniform(-8, 8)
        l, r = slope / width, curvature / width**2
        exact, found = interval_site(l, r, width), interval_statistics(l, r, width)
        k = exact.cumulants
        assert abs(found.k1 - k[1]) <= 1e-12 * exact.sd + 2.0**-51 * k[1], (slope, curvature)
        assert abs(found.k2 - k[2]) <= 1e-13 * k[2], (slope, curvature)
        for order in range(3, 7):
            assert abs(found[order] - k[order]) <= 1e-12 * exact.scale(order), (order, slope, curvature)


def test_where_the_other_end_is_out_of_sight_it_is_the_half_line():
    for l, r, width in [(-30.0, 1.0, 3.0), (2.0, 1.0, 13.0), (0.0, 4.0, 1e3), (-1e8, 1e-3, 1.0), (-2.0, 1.0, 1e200)]:
        assert tuple(interval_statistics(l, r, width)) == tuple(statistics(l, r))


@pytest.mark.parametrize(("l", "r", "width"), [(7.0, 1.0, 14.0), (-20.0, 1.0, 2.2), (3.0, 0.5, 14.0), (-5.0, 2.0, 5.0)])
def test_before_that_it_differs_by_what_is_cut_off(l, r, width):
    """Both formulas hold: here the integral is taken over the interval, and hardly anything lies beyond it."""
    exact, found = site_cumulants(l, r), interval_statistics(l, r, width)
    beyond = float(mp.exp(-(width - max(l / r, 0)) * (width * r / 2 - l + max(l / r, 0) * r / 2)))
    for order, value in enumerate(exact):
        assert abs(found[order] - value) <= (1e-12 + 1e7 * beyond) * max(exact[2] ** (order / 2), abs(value)), order


def test_nothing_jumps_where_formulas_change():
    """A small step across each border: one panel or two, the half line or not, which end is nearer."""
    borders = [
        [(-54.0 - t, 2.0) for t in (-1e-9, 1e-9)],
        [(100.0, 110.0 + 110.0 * np.sqrt(1 - 1 / 1.1) + t) for t in (-1e-9, 1e-9)],
        [(-64.0 - t, -128.0) for t in (-1e-9, 1e-9)],
        [(-64.0 - 3.0 + t, -128.0 - 6.0) for t in (-1e-9, 1e-9)],
        [(-150.0 + t, -150.0) for t in (-1e-9, 1e-9)],
        [(5.0 + t, 10.0) for t in (-1e-9, 1e-9)],
        [(-1000.0 + t, -2000.0) for t in (-1e-9, 1e-9)],
        [(-1500.0, -2850.0 + t) for t in (-1e-9, 1e-9)],
    ]
    for pair in borders:
        left, right = (interval_statistics(*point, 1.0) for point in pair)
        sd = np.sqrt(left.k2)
        for order in range(1, 7):
            scale = max(sd**order, abs(left[order]))
            slope = 2e-9 * (abs(left[order + 1]) if order < 6 else sd * scale) + 4e-9 * scale
            assert abs(right[order] - left[order]) <= 1e-12 * scale + slope, (pair, order)


planes = st.tuples(st.floats(-300, 300), st.floats(-500, 500))


@given(planes, st.floats(1e-3, 1e3))
def test_reflection(point, width):
    l, r = point[0] / width, point[1] / width**2
    here, there = interval_statistics(l, r, width), interval_statistics(r * width - l, r, width)
    shift = l * width - r * width**2 / 2
    assert here.log_partition - there.log_partition == pytest.approx(shift, rel=1e-9, abs=1e-9)
    assert here.k1 == pytest.approx(width - there.k1, abs=1e-11 * width)
    for order, sign in zip(range(2, 7), (1, -1, 1, -1, 1), strict=True):
        scale = max(here.k2 ** (order / 2), abs(here[order]))
        assert abs(here[order] - sign * there[order]) <= 1e-9 * scale  # r width is rounded here


@given(planes, st.integers(-20, 20))
def test_scaling_by_a_power_of_two_changes_no_bit(point, exponent):
    c = 2.0**exponent
    l, r = (0.0 if abs(x) < 1e-100 else x for x in point)  # no digits may be lost to underflow
    plain, scaled = interval_statistics(l, r, 1.0), interval_statistics(l / c, r / c**2, c)
    assert [k / c**order for order, k in enumerate(scaled) if order] == list(plain)[1:]
    assert scaled.log_partition - plain.log_partition == pytest.approx(np.log(c), abs=1e-12)


@given(planes)
def test_shape_of_the_density(point):
    l, r = point
    here, there = interval_statistics(l, r, 1.0), interval_statistics(l + 1.0, r, 1.0)
    assert 0 < here.k1 < 1
    assert 0 < here.k2 < here.k1 * (1 - here.k1)
    assert there.k1 > here.k1
    assert interval_statistics(l, r + 1.0, 1.0).k1 <= here.k1
    if r > 0:
        assert here.k2 <= min(1 / r, 1 / 12) * (1 + 1e-14)


def test_what_is_beyond_floats_is_0_or_inf():
    for width in (1e-120, 1e-60, 1e60, 1e120):
        for slope, curvature in [(0.0, 0.0), (1.0, 2.0), (-3.0, -6.0), (2.0, -5.0), (0.0, 1e3)]:
            found = interval_statistics(slope / width, curvature / width / width, width)
            assert not np.isnan(found).any()
            assert found.k1 / width == pytest.approx(interval_statistics(slope, curvature, 1.0).k1, rel=1e-12)


def test_numbers_that_are_none_come_back_as_none():
    for l, r, width in [(np.nan, 1.0, 1.0), (1.0, np.nan, 1.0), (np.nan, -1.0, 1.0), (1.0, 1.0, np.nan)]:
        assert np.isnan(interval_statistics(l, r, width).k2)

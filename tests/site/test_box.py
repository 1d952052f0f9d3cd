"""Boxes: the right kernel for every kind of ends, moved and reflected without loss, and clear refusals."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbm import NoSite
from nnbm.site import HALF_LINE, Box, interval_statistics
from targets import interval_site

INF = np.inf
# half line, half line elsewhere, bounded above, interval, whole line, interval elsewhere
LOWER = np.array([0.0, 1.5, -INF, 0.0, -INF, -2.0])
UPPER = np.array([INF, INF, 0.7, 2.0, INF, -0.5])
MIXED = Box(LOWER, UPPER)


def test_half_lines_that_begin_at_0_are_the_half_line_bit_by_bit():
    rng = np.random.default_rng(0)
    l, r = 10.0 ** rng.uniform(-2, 3, (50, 8)) * rng.choice([-1, 1], (50, 8)), 10.0 ** rng.uniform(-3, 3, 8)
    for box in (Box(np.zeros(8), np.full(8, INF)), Box(0.0, INF), Box(-0.0, INF)):
        here, there = box.moments(l, r), HALF_LINE.moments(l, r)
        np.testing.assert_array_equal(here.cumulants, there.cumulants)
        np.testing.assert_array_equal(here.log_partition, there.log_partition)
        np.testing.assert_array_equal(box.higher_cumulants(l[0], r), HALF_LINE.higher_cumulants(l[0], r))
        np.testing.assert_array_equal(box.of(3).conditionals(l[:, 3], r[3]), HALF_LINE.conditionals(l[:, 3], r[3]))
        np.testing.assert_array_equal(
            box.largest_variance(l[0] - 1.0, l[0], r), HALF_LINE.largest_variance(l[0] - 1.0, l[0], r)
        )
        variance, second = 0.7 * there.mean**2, 1.5 * there.mean**2
        for mine, theirs in (
            (box.from_mean_variance(there.mean, variance), HALF_LINE.from_mean_variance(there.mean, variance)),
            (box.from_moments(there.mean, second), HALF_LINE.from_moments(there.mean, second)),
        ):
            np.testing.assert_array_equal(mine, theirs)


def test_every_kind_against_quadrature():
    """Independent of every kernel: trapezoids between the ends, far ones cut where nothing is left."""
    l, r = np.array([-2.0, 3.0, 0.5, 1.0, 0.4, -3.0]), np.array([0.7, 2.0, 0.9, -1.5, 1.3, 0.5])
    found = MIXED.moments(l, r)
    for k in range(6):
        x = np.linspace(max(LOWER[k], -15.0), min(UPPER[k], 15.0), 400_001)
        density = np.exp(l[k] * x - r[k] * x**2 / 2)
        norm = np.trapezoid(density, x)
        mean = np.trapezoid(density * x, x) / norm
        central = [np.trapezoid(density * (x - mean) ** n, x) / norm for n in range(5)]
        assert found.log_partition[k] == pytest.approx(np.log(norm), abs=1e-8)
        assert found.mean[k] == pytest.approx(mean, abs=1e-8)
        assert found.variance[k] == pytest.approx(central[2], rel=1e-7)
        assert found.third_cumulant[k] == pytest.approx(central[3], abs=1e-7)
        assert found.fourth_cumulant[k] == pytest.approx(central[4] - 3 * central[2] ** 2, abs=1e-7)


def test_an_interval_elsewhere_against_mpmath():
    """l - r lower is rounded once, so that even 1e6 widths away from 0 only the rounding of l itself is felt."""
    lower, width, slope, r = 1e6, 1.0, 3.0, -2.0
    l = slope + r * lower  # exact in floats
    exact, found = interval_site(slope, r, width), Box(lower, lower + width).moments(l, r)
    assert abs(found.variance - exact.cumulants[2]) <= 1e-13 * exact.cumulants[2]
    assert abs(found.third_cumulant - exact.cumulants[3]) <= 1e-13 * exact.sd**3
    assert float(found.mean) == pytest.approx(lower + float(exact.cumulants[1]), abs=1e-9)


@given(st.integers(-64, 64), st.floats(-30, 30), st.floats(-30, 30))
def test_translation(eighths, slope, curvature):
    """Moved by an exact step everything but the mean and ln Z stays."""
    step = eighths / 8.0
    for lower, upper in zip(LOWER, UPPER, strict=True):
        r = curvature if np.isfinite(upper - lower) else abs(curvature) + 1e-3
        here, there = Box(lower, upper).moments(slope, r), Box(lower + step, upper + step).moments(slope + r * step, r)
        scale = np.abs(here.cumulants) + here.variance ** (np.arange(1, 7) / 2)
        drift = 1e-12 * (1 + abs(r * step) + abs(slope)) * (1 + 1 / max(r, 1e-3))
        moved = there.cumulants.copy()
        moved[0] -= step
        assert (np.abs(moved - here.cumulants)[1:] <= drift * scale[1:] * 10).all()
        assert abs(moved[0] - here.mean) <= 10 * drift * (1 + abs(here.mean) + abs(step))
        shift = slope * step + r * step**2 / 2
        assert float(there.log_partition - here.log_partition) == pytest.approx(shift, rel=1e-9, abs=1e-9)


def test_reflection_exchanges_the_ends():
    l, r = np.linspace(-4.0, 4.0, 6), np.array([1.0, 2.0, 0.3, -2.0, 1.0, 3.0])
    here, there = MIXED.moments(l, r), Box(-UPPER, -LOWER).moments(-l, r)
    signs = np.array([-1, 1, -1, 1, -1, 1])[:, None]
    np.testing.assert_allclose(there.cumulants, signs * here.cumulants, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(there.log_partition, here.log_partition, rtol=1e-12)
    mirrored = Box(-UPPER, -LOWER).higher_cumulants(-l, r)
    np.testing.assert_allclose(mirrored, signs[:2] * MIXED.higher_cumulants(l, r), rtol=1e-9, atol=1e-12)


def test_derivatives_by_r_are_finite_differences():
    """The heat equation, on every kind of domain."""
    l, r = np.array([-2.0, 3.0, 0.5, 1.0, 0.4, -3.0]), np.array([0.7, 2.0, 0.9, -1.5, 1.3, 0.5])
    step = 1e-5
    here, up, down = MIXED.moments(l, r), MIXED.moments(l, r + step), MIXED.moments(l, r - step)
    for name in ("log_partition", "mean", "second_moment", "third_moment", "fourth_moment", "variance",
                 "third_cumulant", "fourth_cumulant"):  # fmt: skip
        difference = (getattr(up, name) - getattr(down, name)) / (2 * step)
        np.testing.assert_allclose(getattr(here.by_r, name), difference, rtol=1e-6, atol=1e-7)


def test_higher_cumulants_are_derivatives_of_the_sixth():
    l, r = np.array([-2.0, 3.0, 0.5, 1.0, 0.4, -3.0]), np.array([0.7, 2.0, 0.9, -1.5, 1.3, 0.5])
    step = 1e-4
    here, up, down = (MIXED.moments(l + d, r).cumulants for d in (0.0, step, -step))
    seventh, eighth = MIXED.higher_cumulants(l, r)
    sd = np.sqrt(here[1])
    np.testing.assert_allclose(seventh * sd**7, (up[5] - down[5]) / (2 * step), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(eighth * sd**8, (up[5] - 2 * here[5] + down[5]) / step**2, rtol=1e-4, atol=1e-5)


def test_the_whole_line_is_a_normal():
    found = Box(-INF, INF).moments([3.0, -1e8], [2.0, 1e-3])
    np.testing.assert_array_equal(found.mean, [1.5, -1e11])
    np.testing.assert_array_equal(found.variance, [0.5, 1e3])
    assert (found.cumulants[2:] == 0).all()
    assert float(found.log_partition[0]) == pytest.approx(0.5 * np.log(np.pi) + 9 / 4)
    assert (Box(-INF, INF).higher_cumulants(np.ones(2), np.ones(2)) == 0).all()


@pytest.mark.parametrize("far", [1e2, 1e8, 1e200, 8e307])
def test_far_ends_are_none(far):
    l, r = np.array([3.0, -1.0, 0.0]), np.array([2.0, 0.5, 1.0])
    for box, limit in ((Box(-far, far), Box(-INF, INF)), (Box(0.0, far), HALF_LINE), (Box(-far, 0.0), Box(-INF, 0.0))):
        found, expected = box.moments(l, r), limit.moments(l, r)
        np.testing.assert_allclose(found.cumulants, expected.cumulants, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(found.log_partition, expected.log_partition, rtol=1e-13)
        higher = limit.higher_cumulants(l, r)
        np.testing.assert_allclose(box.higher_cumulants(l, r), higher, rtol=1e-9, atol=1e-11)
        back = box.from_mean_variance(expected.mean, expected.variance)
        np.testing.assert_allclose(back, (l, r), rtol=1e-11, atol=1e-11)


@given(st.floats(-40, 40), st.floats(-30, 30), st.floats(0.1, 100.0))
def test_an_interval_is_its_mirror_bit_by_bit(l, r, width):
    here, there = Box(0.0, width).moments(l, r), Box(-width, 0.0).moments(-l, r)
    np.testing.assert_array_equal(there.cumulants, here.cumulants * [-1, 1, -1, 1, -1, 1])
    assert there.log_partition == here.log_partition


def test_largest_variance_is_the_largest():
    low, high = np.array([-3.0, -1.0, -2.0, -4.0, 0.0, -9.0]), np.array([2.0, 5.0, 4.0, 4.0, 1.0, -7.0])
    for r in (np.array([1.0, 2.0, 0.3, -2.0, 1.0, 3.0]), np.array([0.2, 5.0, 3.0, 7.0, 0.1, -9.0])):
        l = np.linspace(low, high, 2001)
        most = MIXED.largest_variance(low, high, r)
        tried = MIXED.moments(l, r).variance.max(axis=0)
        assert (tried <= most * (1 + 1e-14)).all()
        np.testing.assert_allclose(tried, most, rtol=1e-5)
        from_below = MIXED.largest_variance(np.full(6, -INF), high, r)
        assert (from_below >= most * (1 - 1e-14)).all()


def test_of_one_variable_and_of_some():
    l, r = np.linspace(-1.0, 1.0, 6), np.ones(6)
    all_of_them = MIXED.moments(l, r)
    for k in range(6):
        one = MIXED.of(k)
        assert one.lower.shape == ()
        np.testing.assert_array_equal(one.moments(l[k], r[k]).cumulants, all_of_them.cumulants[:, k])
        rows = one.conditionals(np.array([l[k], 0.3]), 1.0)
        assert rows.shape == (5, 2)
        np.testing.assert_allclose(rows[0, 0], all_of_them.log_partition[k], rtol=1e-11)
        np.testing.assert_allclose(rows[1:, 0], all_of_them.cumulants[:4, k], rtol=1e-9, atol=1e-13)
    members = np.array([4, 1])
    np.testing.assert_array_equal(MIXED.of(members).moments(l[members], 1.0).mean, all_of_them.mean[members])
    assert Box(0.0, 1.0).of(7) == Box(0.0, 1.0)
    assert HALF_LINE.of(3) is HALF_LINE
    with pytest.raises(ValueError, match=r"conditionals: of one variable, but there are 6"):
        MIXED.conditionals(l, 1.0)


def test_there_and_back_on_every_kind():
    l, r = np.array([-2.0, 3.0, 0.5, 1.0, 0.4, -3.0]), np.array([0.7, 2.0, 0.9, -1.5, 1.3, 0.5])
    found = MIXED.moments(l, r)
    for back in (
        MIXED.from_mean_variance(found.mean, found.variance),
        MIXED.from_moments(found.mean, found.second_moment),
    ):
        np.testing.assert_allclose(back[0], l, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(back[1], r, rtol=1e-9, atol=1e-9)
    rows = MIXED.from_mean_variance(np.tile(found.mean, (3, 1)), found.variance)
    assert rows[0].shape == (3, 6)


def test_a_small_variance_far_from_its_wall_is_not_a_difference():
    box = Box([1.0, -INF, 1.0, -INF], [INF, 1.0, 4.0, INF])
    mean, variance = np.array([3.0, -3.0, 3.0, -3.0]), np.full(4, 1e-30)
    l, r = box.from_mean_variance(mean, variance)
    np.testing.assert_allclose(r, 1e30, rtol=1e-14)
    np.testing.assert_allclose(l, mean * 1e30, rtol=1e-14)
    np.testing.assert_allclose(box.moments(l, r).variance, variance, rtol=1e-14)


def test_shapes_broadcast():
    assert MIXED.moments(np.zeros((3, 4, 1)), 1.0).mean.shape == (3, 4, 6)
    assert Box(0.0, 1.0).moments(np.zeros((3, 1)), np.ones(4)).mean.shape == (3, 4)
    assert Box(0.0, 1.0).moments(0.0, 1.0).mean.shape == ()
    assert Box(0.0, 1.0).moments([], 1.0).mean.shape == (0,)
    l = np.zeros((2, 6))
    plain = MIXED.moments(l, np.ones(6))
    np.testing.assert_array_equal(plain.cumulants, MIXED.moments(l[:, ::-1], np.ones(6).tolist()).cumulants)
    with pytest.raises(ValueError, match="l, r, lower, upper: their shapes must broadcast"):
        MIXED.moments(np.zeros(5), np.ones(5))


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        ([0.0, 1.0], [1.0, 1.0], r"lower\[1\] = 1.0 and upper\[1\] = 1.0"),
        (1.0, 0.0, r"lower < upper is needed"),
        (INF, INF, r"lower < upper is needed"),
        (-INF, -INF, r"lower < upper is needed"),
        (-1.5e308, 1.5e308, r"lower < upper is needed, a float apart"),
        (np.nan, 1.0, r"lower: an end is a number or infinite, but lower = nan"),
        (0.0, [1.0, np.nan], r"upper: an end is a number or infinite, but upper\[1\] = nan"),
        (np.zeros((2, 2)), 1.0, r"lower: one number or one per variable is needed, but its shape is \(2, 2\)"),
        (np.zeros(2), np.ones(3), r"lower, upper: their shapes must broadcast"),
    ],
)
def test_ends_that_are_none(lower, upper, words):
    with pytest.raises(ValueError, match=words):
        Box(lower, upper)


@pytest.mark.parametrize("k", [0, 1, 2, 4])
def test_an_open_end_needs_a_positive_r(k):
    for r in (0.0, -1.0):
        with pytest.raises(ValueError, match=rf"r must be positive, but r\[{k}\] = {r}. Without it the density has no"):
            MIXED.moments(np.zeros(6), np.where(np.arange(6) == k, r, 1.0))
    MIXED.moments(np.zeros(6), [1.0, 1.0, 1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize(
    ("k", "l", "r", "words"),
    [(1, 1e300, 1e-300, "l/r must be a float"), (2, -1e300, 1e-300, "l/r must be a float"),
     (3, np.nan, 1.0, "l: every"), (4, 1e300, 1e-300, "l/r must be a float"),
     (4, -1e300, 1e-300, "l/r must be a float"), (0, 0.0, INF, "r: every"),
     (3, 1.5e308, -1.0, "l width and r width² must be floats"), (3, 1.0, -1e308, "l width and r width² must be")],
)  # fmt: skip
def test_numbers_that_no_kernel_takes(k, l, r, words):
    all_l, all_r = np.zeros(6), np.ones(6)
    all_l[k], all_r[k] = l, r
    with pytest.raises(ValueError, match=words):
        MIXED.moments(all_l, all_r)


@pytest.mark.parametrize(
    ("k", "mean", "variance", "words"),
    [
        (1, 1.5, 0.1, r"a variable on x >= 1.5 needs mean > 1.5"),
        (1, 2.5, 1.0, r"0 < variance < \(mean - 1.5\)²"),
        (2, 0.7, 0.1, r"a variable on x <= 0.7 needs mean < 0.7"),
        (
            3,
            1.0,
            1.0,
            r"needs a mean between them and 0 < variance < \(mean - 0\)\(2 - mean\)",
        ),
        (4, 1.0, 0.0, r"an unbounded variable needs variance > 0"),
        (5, -0.4, 0.1, r"a variable on -2 <= x <= -0.5"),
    ],
)
def test_moments_that_no_site_has(k, mean, variance, words):
    means, variances = np.array([1.0, 2.5, -0.3, 1.0, 0.0, -1.0]), np.full(6, 0.1)
    means[k], variances[k] = mean, variance
    with pytest.raises(NoSite, match=words) as caught:
        MIXED.from_mean_variance(means, variances)
    assert caught.value.indices.tolist() == [k]
    with pytest.raises(NoSite, match="second_moment"):
        MIXED.from_moments(means, variances + means**2)


def test_identity():
    assert Box([0.0, 1.0], INF) == Box([-0.0, 1.0], [INF, INF])
    assert hash(Box([0.0, 1.0], INF)) == hash(Box([-0.0, 1.0], [INF, INF]))
    assert Box(0.0, 1.0) != Box(0.0, 2.0)
    assert Box(0.0, INF) != HALF_LINE
    assert pickle.loads(pickle.dumps(MIXED)) == MIXED  # noqa: S301 (our own bytes)
    with pytest.raises(ValueError, match="read-only"):
        MIXED.lower[0] = 1.0


def test_scalars_and_arrays_are_one_implementation():
    l, r = np.array([-40.0, -1.0, 9.0]), np.array([-50.0, 1.0, 3.0])
    moments = Box(0.0, 1.5).moments(l, r)
    for k in range(3):
        assert tuple(interval_statistics(l[k], r[k], 1.5)) == (moments.log_partition[k], *moments.cumulants[:, k])

"""One variable against mpmath, its own identities, and the impossible."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnbm import NoSite
from nnbm.site import HALF_LINE, SiteMoments, natural_from_scaled, statistics
from targets import digits_for, site_cumulants

TOLERANCE = 1e-12
MAGNITUDES = 10.0 ** np.linspace(-8, 8, 33)
DENSE = np.concatenate([np.linspace(-12.03, 12.02, 97), [-8.0, 4.0, np.nextafter(-8.0, -9), np.nextafter(4.0, 5)]])
Z = np.concatenate([-MAGNITUDES, [0.0], MAGNITUDES, DENSE])
R = np.array([1e-12, 3e-5, 1.0, 7e4, 1e12])


@pytest.mark.parametrize("r", [0.3, 2.0])
def test_the_seventh_and_the_eighth_cumulant(r):
    """What second derivatives of the fourth take, on both sides of each change of formula."""
    z = np.array([-1e6, -30.0, -8.01, -7.97, -5.06, -1.0, 0.3, 2.04, 3.99, 4.01, 9.0, 20.0])
    found = HALF_LINE.higher_cumulants(z * r**0.5, np.full(z.size, r))
    exact = [site_cumulants(x * r**0.5, r, 8) for x in z]
    expected = np.array([[float(k[n] / k[2] ** (n / mp.mpf(2))) for k in exact] for n in (7, 8)])
    np.testing.assert_allclose(found, expected, rtol=3e-12)


def exact_values(l: float, r: float) -> dict[str, mp.mpf]:
    """Everything SiteMoments promises, by mpmath, with the derivatives from raw-moment identities."""
    mp.mp.dps = digits_for(l / r**0.5)
    lz, *k = site_cumulants(l, r)
    raw = [mp.mpf(1)]
    for p in range(1, 7):
        raw.append(mp.fsum(mp.binomial(p - 1, j - 1) * k[j - 1] * raw[p - j] for j in range(1, p + 1)))
    values = {
        "log_partition": lz, "mean": k[0], "second_moment": raw[2], "third_moment": raw[3],
        "fourth_moment": raw[4], "variance": k[1], "third_cumulant": k[2], "fourth_cumulant": k[3],
    }  # fmt: skip
    by_l = {"log_partition": raw[1]}
    by_r = {"log_partition": -raw[2] / 2}
    for p, name in enumerate(["mean", "second_moment", "third_moment", "fourth_moment"], start=1):
        by_l[name] = raw[p + 1] - raw[p] * raw[1]
        by_r[name] = -(raw[p + 2] - raw[p] * raw[2]) / 2
    by_l |= {"variance": k[2], "third_cumulant": k[3], "fourth_cumulant": k[4]}
    m, dm, dv, dt, df = k[0], *(by_r[n] for n in ("mean", "second_moment", "third_moment", "fourth_moment"))
    v, t = raw[2], raw[3]
    ds = dv - 2 * m * dm
    by_r["variance"] = ds
    by_r["third_cumulant"] = dt - 3 * (dm * v + m * dv) + 6 * m * m * dm
    by_r["fourth_cumulant"] = (
        df - 4 * (dm * t + m * dt) - 6 * v * dv + 12 * (2 * m * dm * v + m * m * dv) - 24 * m**3 * dm
    )
    return values | {f"by_l.{n}": x for n, x in by_l.items()} | {f"by_r.{n}": x for n, x in by_r.items()}


def found_values(moments: SiteMoments, k: int) -> dict[str, float]:
    names = [
        "log_partition", "mean", "second_moment", "third_moment", "fourth_moment", "variance", "third_cumulant",
        "fourth_cumulant",
    ]  # fmt: skip
    values = {name: getattr(moments, name)[k] for name in names}
    for way in ("by_l", "by_r"):
        values |= {f"{way}.{name}": getattr(getattr(moments, way), name)[k] for name in names}
    return values


# these change sign somewhere; within 1% of their scale around the root the error is measured against the scale
SIGNED = {
    "fourth_cumulant": 4, "by_l.third_cumulant": 4, "by_l.fourth_cumulant": 5, "by_r.third_cumulant": 5,
    "by_r.fourth_cumulant": 6,
}  # fmt: skip


@pytest.mark.parametrize("r", R)
def test_everything_against_mpmath(r):
    l = Z * np.sqrt(r)
    moments = HALF_LINE.moments(l, r)
    for k, z in enumerate(Z):
        exact, found = exact_values(float(l[k]), float(r)), found_values(moments, k)
        for name, value in exact.items():
            scale = abs(value)
            if name == "log_partition":
                scale = max(scale, mp.mpf(1) / 10)
            elif name in SIGNED:
                natural = exact["variance"] ** (mp.mpf(SIGNED[name]) / 2)
                scale = max(scale, natural * min(1, mp.npdf(min(z, 40.0))) / 100)
            error = abs(mp.mpf(float(found[name])) - value)
            underflow = mp.mpf("1e-290") * (r**-3 + r**3)  # the normal's tail leaves the floats near z = 38
            assert error <= TOLERANCE * scale + underflow, (name, z, r, found[name], mp.nstr(value, 17))


@pytest.mark.parametrize("r", R)
def test_inversion_against_mpmath(r):
    """The exact (l, r) of the floats m, v, both limits included: v -> m² (z = 1e8) and v -> 2 m² (z = -6e7)."""
    moments = HALF_LINE.moments(Z * np.sqrt(r), r)
    exact_enough = (moments.second_moment > moments.mean**2) & (moments.second_moment < 2 * moments.mean**2)
    mean, second = moments.mean[exact_enough], moments.second_moment[exact_enough]
    assert exact_enough.mean() > 0.9
    l, found_r = HALF_LINE.from_moments(mean, second)
    for k in range(mean.size):
        z_rough = float(l[k] / np.sqrt(found_r[k]))
        mp.mp.dps = digits_for(z_rough)
        m, v = mp.mpf(float(mean[k])), mp.mpf(float(second[k]))
        l_true, r_true = polished(m, v, z_rough)
        assert abs(mp.mpf(float(found_r[k])) - r_true) <= TOLERANCE * r_true, (z_rough, r)
        # l passes through zero, where only its distance on the scale sqrt(r) is defined by m and v
        slack = mp.sqrt(r_true) * mp.mpf("1e-2")
        assert abs(mp.mpf(float(l[k])) - l_true) <= TOLERANCE * max(abs(l_true), slack), (z_rough, r)


def polished(m: mp.mpf, v: mp.mpf, z: float) -> tuple[mp.mpf, mp.mpf]:
    """(l, r) of exactly these moments: Newton in z from a good start, at mpmath's working precision."""
    share, point = v / m**2 - 1, mp.mpf(z)
    for _ in range(6):
        partition = mp.sqrt(mp.pi / 2) * mp.exp(point**2 / 2) * mp.erfc(-point / mp.sqrt(2))
        h = 1 / partition
        k1, k2 = point + h, 1 - point * h - h * h
        k3 = h * ((point + h) * (point + 2 * h) - 1)
        step = (k2 / k1**2 - share) / ((k3 * k1 - 2 * k2**2) / k1**3)
        point -= step
    partition = mp.sqrt(mp.pi / 2) * mp.exp(point**2 / 2) * mp.erfc(-point / mp.sqrt(2))
    root = (point + 1 / partition) / m
    return point * root, root**2


def test_tiny_and_huge_variance_survive_the_round_trip():
    mean, share = np.ones(3), np.array([1e-30, 0.5, 1 - 2**-53])
    l, r = HALF_LINE.from_mean_variance(mean, share)
    back = HALF_LINE.moments(l, r)
    np.testing.assert_allclose(back.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(back.variance, share, rtol=1e-13)


sites = st.tuples(st.floats(-1e3, 1e3), st.floats(1e-6, 1e6))


@given(sites, st.floats(1e-3, 1e3))
def test_scale_equivariance(site, c):
    """If x has (l, r), then c x has (l/c, r/c²)."""
    z, r = site
    l = z * np.sqrt(r)
    plain, scaled = HALF_LINE.moments(l, r), HALF_LINE.moments(l / c, r / c**2)
    powers = c ** np.arange(1, 7)
    # near its roots a cumulant is only defined up to the rounding of z
    scale = np.abs(plain.cumulants) + 1e-3 * plain.variance ** (np.arange(1, 7) / 2)
    assert (np.abs(scaled.cumulants / powers - plain.cumulants) <= 1e-10 * scale).all()
    assert float(scaled.log_partition) == pytest.approx(float(plain.log_partition + np.log(c)), rel=1e-12, abs=1e-12)


@given(sites)
def test_shape_of_the_density(site):
    z, r = site
    l = z * np.sqrt(r)
    here, there = HALF_LINE.moments(l, r), HALF_LINE.moments(l + 1e-3 * np.sqrt(r), r)
    assert 0 < here.variance < here.mean**2 + 1e-15 * here.mean**2
    assert here.variance <= 1 / r * (1 + 1e-15)  # truncation only narrows a normal
    assert there.mean >= here.mean
    assert there.variance >= here.variance * (1 - 1e-15)


@settings(max_examples=50)
@given(st.floats(-30, 8), st.floats(1e-3, 1e3))
def test_derivatives_are_finite_differences(z, r):
    l = z * np.sqrt(r)
    moments = HALF_LINE.moments(l, r)
    names = ["log_partition", "mean", "second_moment", "third_moment", "fourth_moment", "variance",
             "third_cumulant", "fourth_cumulant"]  # fmt: skip
    dl, dr = 1e-4 * np.sqrt(r) * max(1.0, abs(z)), 1e-4 * r
    for way, up, down, step in (
        ("by_l", HALF_LINE.moments(l + dl, r), HALF_LINE.moments(l - dl, r), dl),
        ("by_r", HALF_LINE.moments(l, r + dr), HALF_LINE.moments(l, r - dr), dr),
    ):
        for name in names:
            difference = (getattr(up, name) - getattr(down, name)) / (2 * step)
            derivative = getattr(getattr(moments, way), name)
            scale = abs(derivative) + abs(getattr(moments, name)) / step * 1e-6
            assert abs(difference - derivative) <= 1e-5 * scale, (way, name)


def test_moments_are_the_integrals():
    """Independent of every identity: trapezoids on a fine grid."""
    x = np.linspace(0, 30, 300_001)
    for l, r in [(-2.0, 0.7), (0.0, 1.0), (3.0, 2.0)]:
        density = np.exp(l * x - r * x**2 / 2)
        norm = np.trapezoid(density, x)
        moments = HALF_LINE.moments(l, r)
        for power, name in enumerate(["mean", "second_moment", "third_moment", "fourth_moment"], start=1):
            integral = np.trapezoid(density * x**power, x) / norm
            assert float(getattr(moments, name)) == pytest.approx(integral, rel=1e-7)
        assert float(moments.log_partition) == pytest.approx(np.log(norm), rel=1e-7)
        centred = x**2 - float(moments.second_moment)
        assert float(moments.variance_xx) == pytest.approx(np.trapezoid(density * centred**2, x) / norm, rel=1e-6)
        assert float(moments.covariance_x_xx) == pytest.approx(np.trapezoid(density * centred * x, x) / norm, rel=1e-6)


def test_scalars_and_arrays_are_one_implementation():
    l, r = np.array([-40.0, -1.0, 9.0]), np.array([0.5, 1.0, 3.0])
    moments = HALF_LINE.moments(l, r)
    for k in range(3):
        assert tuple(statistics(l[k], r[k])) == (moments.log_partition[k], *moments.cumulants[:, k])
        gap = moments.mean[k] ** 2 - moments.variance[k]
        natural = HALF_LINE.from_mean_variance(moments.mean[k], moments.variance[k])
        assert natural_from_scaled(moments.mean[k], moments.variance[k], gap) == pytest.approx(
            tuple(map(float, natural)), rel=1e-9
        )


def test_shapes_broadcast():
    moments = HALF_LINE.moments(np.zeros((3, 1)), np.ones(4))
    assert moments.mean.shape == (3, 4)
    assert moments.cumulants.shape == (6, 3, 4)
    assert HALF_LINE.from_moments(np.ones((2, 3)), 1.5)[0].shape == (2, 3)
    assert HALF_LINE.moments([], 1.0).mean.shape == (0,)


@pytest.mark.parametrize(
    ("mean", "second"),
    [(1.0, 2.0), (1.0, 1.0), (1.0, 2.5), (1.0, 0.5), (0.0, 1.0), (-1.0, 1.5), (1e-200, 1e-200)],
)
def test_impossible_moments_are_refused_by_index(mean, second):
    with pytest.raises(NoSite, match="place 2, 4") as caught:
        HALF_LINE.from_moments([1.0, 2.0, mean, 1.0, mean], [1.5, 6.0, second, 1.2, second])
    assert caught.value.indices.tolist() == [2, 4]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"r must be positive, but r\[1\] = 0.0"):
        HALF_LINE.moments([1.0, 1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"l: every value must be finite, but l\[1\] = nan"):
        HALF_LINE.moments([1.0, np.nan], 1.0)
    with pytest.raises(TypeError, match="mean: real numbers are needed"):
        HALF_LINE.from_moments([1j], [1.0])


def test_one_pass_over_arrays_in_one_piece_gives_the_same_as_any_other_input():
    """Of such arrays the kernel itself looks for what must be refused; r may repeat along the rows of l."""
    rng = np.random.default_rng(0)
    l, r = rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, 4)
    plain = HALF_LINE.moments(l, r)
    for other in (HALF_LINE.moments(l[:, ::-1], r[::-1]), HALF_LINE.moments(l[:, ::-1].tolist(), r[::-1].tolist())):
        np.testing.assert_array_equal(other.cumulants[..., ::-1], plain.cumulants)
        np.testing.assert_array_equal(other.log_partition[:, ::-1], plain.log_partition)
    assert HALF_LINE.moments(0.5, 1.0).mean.shape == ()
    assert HALF_LINE.moments(np.empty(0), np.empty(0)).mean.shape == (0,)
    assert HALF_LINE.moments(np.ones((0, 2)), np.ones(2)).mean.shape == (0, 2)


@pytest.mark.parametrize(
    ("l", "r", "words"),
    [(np.nan, 1.0, "l: every"), (-np.inf, 1.0, "l: every"), (0.0, 0.0, "r must"), (0.0, -1.0, "r must"),
     (0.0, np.nan, "r: every"), (0.0, np.inf, "r: every"), (1e300, 1e-300, "l/r must be a float")],
)  # fmt: skip
def test_the_pass_refuses_what_the_check_of_input_does(l, r, words):
    with pytest.raises(ValueError, match=words):
        HALF_LINE.moments(np.array([1.0, l]), np.array([1.0, r]))


def test_the_largest_variance_is_at_the_largest_field():
    l, r = np.sort(np.random.default_rng(0).uniform(-30.0, 30.0, 200)), np.full(200, 0.7)
    most = HALF_LINE.largest_variance(np.full(200, -30.0), l, r)
    assert (np.diff(most) >= 0).all()
    assert (most < 1 / 0.7 + 1e-12).all()
    np.testing.assert_array_equal(most, HALF_LINE.moments(l, r).variance)

"""One variable: q(x; l, r) ∝ exp(l x - r x²/2) on its own domain (EQ 2).

A *site* answers four questions, and no method may ask for more: the log-partition function, the cumulants of x,
which (l, r) have given moments, and (in `draw`) a random x. Everything else, all moments and all derivatives,
follows from the cumulants by identities that hold on any domain, because ln Z1 solves the heat equation
d ln Z1/dr = -1/2 (d² ln Z1/dl² + (d ln Z1/dl)²); they live in `SiteMoments`. `HalfLine` is the site on x >= 0.

The textbook formulas lose all digits for l/sqrt r << 0. Here every cumulant is a derivative K_n(z) of
K_0(z) = ln int_0^inf exp(z x - x²/2) dx at z = l/sqrt r, read off one table of Taylor coefficients (moderate z),
a polynomial in 1/z² (z < -8), or the hazard recurrence (z > 4): relative error below 1e-13 in the tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_floats, forbid
from nnbm.errors import NoSite

__all__ = [
    "HALF_LINE",
    "HalfLine",
    "Site",
    "SiteDerivatives",
    "SiteMoments",
    "mean_variance",
    "natural_from_scaled",
    "statistics",
]

with (files("nnbm") / "site_table.npz").open("rb") as _file, np.load(_file, allow_pickle=False) as _table:
    _TAYLOR: FloatArray = _table["taylor"]
    _TAIL: FloatArray = _table["tail"]
    _INVERSE: FloatArray = _table["inverse"]
    _GAP_LIMIT = float(_table["gap_limit"])

_TABLE_START, _TABLE_END, _NODES_PER_UNIT = -8.0, 4.0, 8.0
_TERMS = 13
_RECIPROCAL = np.array([0.0] + [1.0 / j for j in range(1, _TERMS)])
_NODE_SHARE: FloatArray = _TAYLOR[:, 2] / _TAYLOR[:, 1] ** 2  # variance / mean², falling with z
_SHARE_AT_TABLE_END = float(_NODE_SHARE[-1])
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_NEWTON_STEPS, _LAST_STEP = 6, 1e-8  # convergence is quadratic: after a step below 1e-8 rounding is reached
_VELTKAMP = 134217729.0  # 2^27 + 1


class Statistics(NamedTuple):
    """ln Z1 and the first six cumulants of one site: what the numba kernels pass around."""

    log_partition: float
    k1: float
    k2: float
    k3: float
    k4: float
    k5: float
    k6: float


@njit(cache=True, nogil=True)
def _from_table(z: float) -> tuple[float, float, float, float, float, float, float]:
    """K_0 .. K_6 for -8 <= z <= 4: Taylor about the nearest node, all seven chains side by side."""
    node = int((z - _TABLE_START) * _NODES_PER_UNIT + 0.5)
    d = z - (_TABLE_START + node / _NODES_PER_UNIT)
    row = _TAYLOR[node]
    last = _TERMS - 1
    k0, k1, k2, k3 = row[last], row[last + 1], row[last + 2], row[last + 3]
    k4, k5, k6 = row[last + 4], row[last + 5], row[last + 6]
    for j in range(last, 0, -1):
        step = d * _RECIPROCAL[j]
        k0 = row[j - 1] + step * k0
        k1 = row[j] + step * k1
        k2 = row[j + 1] + step * k2
        k3 = row[j + 2] + step * k3
        k4 = row[j + 3] + step * k4
        k5 = row[j + 4] + step * k5
        k6 = row[j + 5] + step * k6
    return k0, k1, k2, k3, k4, k5, k6


@njit(cache=True, nogil=True)
def _tail_polynomial(order: int, t: float) -> float:
    """G_order at t = 64/z² (EQ 2's tail form, to full precision)."""
    total = 0.0
    for j in range(_TAIL.shape[1] - 1, -1, -1):
        total = total * t + _TAIL[order, j]
    return total


@njit(cache=True, nogil=True)
def _from_tail(z: float) -> tuple[float, float, float, float, float, float, float]:
    """K_0 .. K_6 for z < -8."""
    e = -1.0 / z
    u = e * e
    t = 64.0 * u
    e3 = u * e
    return (
        math.log(e) + u * _tail_polynomial(0, t),
        e * _tail_polynomial(1, t),
        u * _tail_polynomial(2, t),
        2.0 * e3 * _tail_polynomial(3, t),
        6.0 * u * u * _tail_polynomial(4, t),
        24.0 * e3 * u * _tail_polynomial(5, t),
        120.0 * e3 * e3 * _tail_polynomial(6, t),
    )


@njit(cache=True, nogil=True)
def _from_hazard(z: float) -> tuple[float, float, float, float, float, float, float]:
    """K_0 .. K_6 for z > 4 by Leibniz on h' = -h u, u = z + h (no cancellation there)."""
    below = 0.5 * math.erfc(z * math.sqrt(0.5))
    h = math.exp(-0.5 * z * z - _HALF_LOG_2PI) / (1.0 - below)
    u = z + h
    h1 = -h * u
    u1 = 1.0 + h1
    h2 = -(h1 * u + h * u1)
    h3 = -(h2 * u + 2.0 * h1 * u1 + h * h2)
    h4 = -(h3 * u + 3.0 * h2 * u1 + 3.0 * h1 * h2 + h * h3)
    h5 = -(h4 * u + 4.0 * h3 * u1 + 6.0 * h2 * h2 + 4.0 * h1 * h3 + h * h4)
    return 0.5 * z * z + _HALF_LOG_2PI + math.log1p(-below), u, u1, h2, h3, h4, h5


@njit(cache=True, nogil=True)
def _standard(z: float) -> tuple[float, float, float, float, float, float, float]:
    """K_0 .. K_6 at r = 1."""
    if z > _TABLE_END:
        return _from_hazard(z)
    if z < _TABLE_START:
        return _from_tail(z)
    return _from_table(z)


@njit(cache=True, nogil=True)
def statistics(l: float, r: float) -> Statistics:
    """Ln Z1 and the first six cumulants of q(x; l, r) on x >= 0: the numba scalar all else is made of."""
    scale = 1.0 / math.sqrt(r)
    z = l * scale
    k0, k1, k2, k3, k4, k5, k6 = _standard(z)
    s2 = scale * scale
    s3 = s2 * scale
    log_partition = k0 - 0.5 * math.log(r)
    return Statistics(log_partition, k1 * scale, k2 * s2, k3 * s3, k4 * s2 * s2, k5 * s3 * s2, k6 * s3 * s3)


@njit(cache=True, nogil=True)
def mean_variance(l: float, r: float) -> tuple[float, float]:
    """Mean and variance of q(x; l, r) on x >= 0, for kernels that need no more."""
    found = statistics(l, r)
    return found.k1, found.k2


@njit(cache=True, nogil=True)
def _second_minus_square(second: float, mean: float, times: float) -> float:
    """Times mean² - second without rounding the square (Dekker's product); times is 1 or 2."""
    square = mean * mean
    shifted = _VELTKAMP * mean
    high = shifted - (shifted - mean)
    low = mean - high
    rest = ((high * high - square) + 2.0 * high * low) + low * low
    return (times * square - second) + times * rest


@njit(cache=True, nogil=True)
def _start_in_table(share: float) -> float:
    """Linear interpolation of z between the two nodes around `share`: right to about 1e-3."""
    low, high = 0, _NODE_SHARE.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if _NODE_SHARE[middle] > share:
            low = middle
        else:
            high = middle
    part = (_NODE_SHARE[low] - share) / (_NODE_SHARE[low] - _NODE_SHARE[high])
    return _TABLE_START + (low + part) / _NODES_PER_UNIT


@njit(cache=True, nogil=True)
def _root_in_table(share: float) -> tuple[float, float]:
    """The z in [-8, 4] whose variance / mean² is `share`, and the mean there at r = 1."""
    z = _start_in_table(share)
    k1 = 0.0
    for _ in range(_NEWTON_STEPS):
        _, k1, k2, k3, _, _, _ = _from_table(z)
        inverse = 1.0 / k1
        value = k2 * inverse * inverse
        step = (share - value) / ((k3 * inverse - 2.0 * value * k2) * inverse)
        moved = min(max(z + step, _TABLE_START), _TABLE_END)
        k1 += k2 * (moved - z)
        z = moved
        if abs(step) < _LAST_STEP:
            break
    return z, k1


@njit(cache=True, nogil=True)
def _root_beyond_table(share: float) -> tuple[float, float]:
    """The same for z > 4, where mean / sd is z but for a hazard below 1e-3."""
    target = 1.0 / math.sqrt(share)
    z, k1 = target, target
    for _ in range(_NEWTON_STEPS):
        _, k1, k2, k3, _, _, _ = _from_hazard(z)
        root = math.sqrt(k2)
        step = (target - k1 / root) / (root - 0.5 * k1 * k3 / (k2 * root))
        k1 += k2 * step
        z += step
        if abs(step) < _LAST_STEP:
            break
    return z, k1


@njit(cache=True, nogil=True)
def natural_from_scaled(mean: float, variance: float, gap: float) -> tuple[float, float]:
    """(l, r) on x >= 0 from the mean, the variance and gap = mean² - variance, all positive.

    The three are given apart because near either limit, variance -> 0 or gap -> 0, the small one carries all
    the information and must not come from a difference of the other two.
    """
    square = mean * mean
    if gap < _GAP_LIMIT * square:
        g = gap / square
        t = g / _GAP_LIMIT
        total = 0.0
        for j in range(_INVERSE.size - 1, -1, -1):
            total = total * t + _INVERSE[j]
        u = g * total
        first = _tail_polynomial(1, 64.0 * u)
        return -first / mean, u * (first / mean) ** 2
    share = variance / square
    if share < _SHARE_AT_TABLE_END:
        z, k1 = _root_beyond_table(share)
    else:
        z, k1 = _root_in_table(share)
    root = k1 / mean
    return z * root, root * root


@njit(cache=True, nogil=True)
def _fill_statistics(l: FloatArray, r: FloatArray, out: FloatArray) -> None:
    for k in range(l.size):
        found = statistics(l[k], r[k])
        out[0, k] = found.log_partition
        out[1, k] = found.k1
        out[2, k] = found.k2
        out[3, k] = found.k3
        out[4, k] = found.k4
        out[5, k] = found.k5
        out[6, k] = found.k6


@njit(cache=True, nogil=True)
def _variance_and_gap(mean: FloatArray, second: FloatArray, variance: FloatArray, gap: FloatArray) -> None:
    """Variance = second - mean² and gap = 2 mean² - second, correctly rounded."""
    for k in range(mean.size):
        variance[k] = -_second_minus_square(second[k], mean[k], 1.0)
        gap[k] = _second_minus_square(second[k], mean[k], 2.0)


@njit(cache=True, nogil=True)
def _gap_from_variance(mean: FloatArray, variance: FloatArray, gap: FloatArray) -> None:
    """Gap = mean² - variance, correctly rounded."""
    for k in range(mean.size):
        gap[k] = _second_minus_square(variance[k], mean[k], 1.0)


@njit(cache=True, nogil=True)
def _fill_natural(mean: FloatArray, variance: FloatArray, gap: FloatArray, l: FloatArray, r: FloatArray) -> None:
    for k in range(mean.size):
        l[k], r[k] = natural_from_scaled(mean[k], variance[k], gap[k])


@dataclass(frozen=True)
class SiteDerivatives:
    """Derivatives of everything in `SiteMoments` by l or by r; arrays of the sites' shape."""

    log_partition: FloatArray
    mean: FloatArray
    second_moment: FloatArray
    third_moment: FloatArray
    fourth_moment: FloatArray
    variance: FloatArray
    third_cumulant: FloatArray
    fourth_cumulant: FloatArray


@dataclass(frozen=True)
class SiteMoments:
    """ln Z1 and the moments of sites of any shape; `cumulants` is (6, ...).

    All that is here holds on any domain: cumulants are derivatives by l, and the heat equation turns a derivative
    by r into derivatives by l.
    """

    log_partition: FloatArray
    cumulants: FloatArray

    @property
    def mean(self) -> FloatArray:
        """m = <x>."""
        return self.cumulants[0]

    @property
    def variance(self) -> FloatArray:
        """s = <x²> - <x>²; never formed as that difference."""
        return self.cumulants[1]

    @property
    def third_cumulant(self) -> FloatArray:
        """<(x - m)³>."""
        return self.cumulants[2]

    @property
    def fourth_cumulant(self) -> FloatArray:
        """<(x - m)⁴> - 3 s²."""
        return self.cumulants[3]

    @property
    def second_moment(self) -> FloatArray:
        """v = <x²>."""
        return self.variance + self.mean**2

    @property
    def third_moment(self) -> FloatArray:
        """<x³>."""
        m, s, k3 = self.cumulants[:3]
        return k3 + m * (3.0 * s + m * m)

    @property
    def fourth_moment(self) -> FloatArray:
        """<x⁴>."""
        m, s, k3, k4 = self.cumulants[:4]
        return k4 + 4.0 * m * k3 + 3.0 * s * s + m * m * (6.0 * s + m * m)

    @property
    def covariance_x_xx(self) -> FloatArray:
        """Cov(x, x²), the c of EQ 4."""
        return self.third_cumulant + 2.0 * self.mean * self.variance

    @property
    def variance_xx(self) -> FloatArray:
        """Var(x²), the d of EQ 4."""
        m, s, k3, k4 = self.cumulants[:4]
        return k4 + 2.0 * s * s + 4.0 * m * (k3 + m * s)

    @property
    def by_l(self) -> SiteDerivatives:
        """Derivatives by l: d k_n/dl = k_{n+1}."""
        return self._derivatives(self.mean, self.cumulants[1:5])

    @property
    def by_r(self) -> SiteDerivatives:
        """Derivatives by r: d k_n/dr = -1/2 d^n/dl^n (k_2 + k_1²)."""
        k1, k2, k3, k4, k5, k6 = self.cumulants
        slopes = -0.5 * np.stack(
            [
                k3 + 2.0 * k1 * k2,
                k4 + 2.0 * (k2 * k2 + k1 * k3),
                k5 + 6.0 * k2 * k3 + 2.0 * k1 * k4,
                k6 + 6.0 * k3 * k3 + 8.0 * k2 * k4 + 2.0 * k1 * k5,
            ]
        )
        return self._derivatives(-0.5 * self.second_moment, slopes)

    def _derivatives(self, log_partition: FloatArray, slopes: FloatArray) -> SiteDerivatives:
        """Chain rule from the slopes (4, ...) of the first four cumulants to every moment."""
        m, s, k3, _ = self.cumulants[:4]
        dm, ds, dk3, dk4 = slopes
        third = dk3 + 3.0 * (m * ds + (s + m * m) * dm)
        fourth = dk4 + 4.0 * (m * dk3 + k3 * dm) + 6.0 * (s + m * m) * ds + 4.0 * m * (3.0 * s + m * m) * dm
        return SiteDerivatives(log_partition, dm, ds + 2.0 * m * dm, third, fourth, ds, dk3, dk4)


class Site(Protocol):
    """What a one-variable domain must know; inference, samplers and estimators ask nothing else of it."""

    lower: float
    upper: float

    def moments(self, l: ArrayLike, r: ArrayLike) -> SiteMoments:
        """Ln Z1 and cumulants of q(x; l, r)."""
        ...

    def from_moments(self, mean: ArrayLike, second_moment: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean and second moment; raises NoSite with the places where there are none."""
        ...

    def from_mean_variance(self, mean: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The same from mean and variance, for callers who hold a small variance to full precision."""
        ...


class HalfLine:
    """The site on x >= 0.

    >>> import numpy as np
    >>> site = HalfLine()
    >>> found = site.moments([0.0, -1e4], 1.0)
    >>> np.round(found.mean, 8)
    array([7.9788456e-01, 1.0000000e-04])
    >>> l, r = site.from_moments(found.mean, found.second_moment)
    >>> np.allclose(r, 1.0)
    True
    """

    lower = 0.0
    upper = math.inf

    def moments(self, l: ArrayLike, r: ArrayLike) -> SiteMoments:
        """Ln Z1 and cumulants of q(x; l, r) on x >= 0 for every l and r > 0, broadcast against each other.

        EQ 2. Relative error below 1e-12 for l/sqrt r from -1e8 to 1e8 (`tests/test_site.py`).
        """
        slope, curvature = np.broadcast_arrays(as_floats("l", l), as_floats("r", r))
        forbid("r", curvature, curvature <= 0, "r must be positive", "Without it the density has no norm.")
        out = np.empty((7, slope.size))
        _fill_statistics(np.ravel(slope), np.ravel(curvature), out)
        shaped = out.reshape(7, *slope.shape)
        return SiteMoments(shaped[0], shaped[1:])

    def from_moments(self, mean: ArrayLike, second_moment: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and second moment v; they exist iff m² < v < 2 m² (EQ 2)."""
        m, v = np.broadcast_arrays(as_floats("mean", mean), as_floats("second_moment", second_moment))
        variance, gap = np.empty(m.size), np.empty(m.size)
        _variance_and_gap(np.ravel(m), np.ravel(v), variance, gap)
        return _natural(m, variance, gap)

    def from_mean_variance(self, mean: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and variance s; they exist iff 0 < s < m² (EQ 2)."""
        m, s = np.broadcast_arrays(as_floats("mean", mean), as_floats("variance", variance))
        flat, gap = np.ravel(s), np.empty(m.size)
        _gap_from_variance(np.ravel(m), flat, gap)
        return _natural(m, flat, gap)


def _natural(mean: FloatArray, variance: FloatArray, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(l, r) of the shape of `mean`, or NoSite with every place where they do not exist."""
    flat = np.ravel(mean)
    bad = ~((flat > 0) & (variance > 0) & (gap > 0))
    if bad.any():
        places = np.flatnonzero(bad)
        k = int(places[0])
        raise NoSite(
            "mean, second_moment: a variable on x >= 0 needs mean > 0 and mean² < <x²> < 2 mean², but place "
            f"{', '.join(map(str, places[:5]))}{', ...' if places.size > 5 else ''} "
            f"({places.size} of {flat.size}) breaks it: at {k} the mean is {flat[k]:.6g} and the variance "
            f"{variance[k]:.6g}, which must lie between 0 and {flat[k] ** 2:.6g}. "
            "More spread than an exponential's means several modes: use a method that needs no site moments.",
            places,
        )
    l, r = np.empty(flat.size), np.empty(flat.size)
    _fill_natural(flat, variance, gap, l, r)
    return l.reshape(mean.shape), r.reshape(mean.shape)


HALF_LINE = HalfLine()

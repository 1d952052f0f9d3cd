"""One variable: q(x; l, r) ∝ exp(l x - r x²/2) on its own domain (EQ 2).

A *site* answers three questions, and no inference method may ask for more: the log-partition function, the cumulants
of x, and which (l, r) have given moments. (Samplers ask a fourth, a random x; `draw` answers it.) Everything else,
all moments and all derivatives, follows from the cumulants by identities that hold on any domain, because ln Z1
solves the heat equation d ln Z1/dr = -1/2 (d² ln Z1/dl² + (d ln Z1/dl)²); they live in `SiteMoments`. `HalfLine` is
the site on x >= 0.

The textbook formulas lose all digits for l/sqrt r << 0. Here every cumulant is a derivative K_n(z) of
K_0(z) = ln int_0^inf exp(z x - x²/2) dx at z = l/sqrt r, read off one table of Taylor coefficients (moderate z),
a polynomial in 1/z² (z < -8), or the hazard recurrence (z > 4): relative error below 1e-13 in the tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbm.arrays import FloatArray, as_floats, broadcast, forbid
from nnbm.errors import NoSite
from nnbm.kernels import kernel

__all__ = [
    "HALF_LINE",
    "HalfLine",
    "Site",
    "SiteDerivatives",
    "SiteMoments",
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
_LEAN_TERMS = 10
# K_0 and K_1 around each node, divided by the factorials: for the kernel that needs no more
_LEAN: FloatArray = np.stack([_TAYLOR[:, k : k + _LEAN_TERMS] for k in (0, 1)]) / np.cumprod(
    np.maximum(np.arange(_LEAN_TERMS), 1.0)
)
_NODE_SHARE: FloatArray = _TAYLOR[:, 2] / _TAYLOR[:, 1] ** 2  # variance / mean², falling with z
_SHARE_AT_TABLE_END = float(_NODE_SHARE[-1])
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_NEWTON_STEPS, _LAST_STEP = 6, 1e-8  # convergence is quadratic: after a step below 1e-8 rounding is reached
_VELTKAMP = 134217729.0  # 2^27 + 1
_NORMAL_SHARE = 1e-100  # of variance in mean²: below it r = 1/variance and l = mean/variance to the last digit
_SPREAD = "More spread than an exponential's means several modes: use a method that needs no site moments."


class Statistics(NamedTuple):
    """ln Z1 and the first six cumulants of one site: what the numba kernels pass around."""

    log_partition: float
    k1: float
    k2: float
    k3: float
    k4: float
    k5: float
    k6: float


@kernel()
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


@kernel()
def _tail_polynomial(order: int, t: float) -> float:
    """G_order at t = 64/z² (EQ 2's tail form, to full precision)."""
    total = 0.0
    for j in range(_TAIL.shape[1] - 1, -1, -1):
        total = total * t + _TAIL[order, j]
    return total


@kernel(error_model="numpy")
def _from_tail(l: float, z: float) -> Statistics:
    """ln Z1 and the cumulants for z < -8, (n-1)! G_n / (-l)^n: an exponential's, corrected; z may be -inf."""
    e = -1.0 / l
    u = 1.0 / (z * z)
    t = 64.0 * u
    return Statistics(
        math.log(e) + u * _tail_polynomial(0, t),
        e * _tail_polynomial(1, t),
        e * e * _tail_polynomial(2, t),
        2.0 * (e * e * e * _tail_polynomial(3, t)),
        6.0 * (e * e * e * e * _tail_polynomial(4, t)),
        24.0 * (e * e * e * e * e * _tail_polynomial(5, t)),
        120.0 * (e * e * e * e * e * e * _tail_polynomial(6, t)),
    )


@kernel()
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


@kernel(error_model="numpy")
def statistics(l: float, r: float) -> Statistics:
    """Ln Z1 and the first six cumulants of q(x; l, r) on x >= 0: the numba scalar all else is made of.

    What is beyond floats comes back as inf or 0, never as NaN: ln Z1 from l/sqrt r = 1e154 on, the mean where l/r is
    (the unit of x is then too small), a sixth cumulant where the mean is below 1e-54 or above 1e51.
    """
    scale = 1.0 / math.sqrt(r)
    z = l * scale
    if z < _TABLE_START:
        return _from_tail(l, z)
    if z == np.inf:
        return Statistics(np.inf, np.inf, 1.0 / r, 0.0, 0.0, 0.0, 0.0)
    k0, k1, k2, k3, k4, k5, k6 = _from_hazard(z) if z > _TABLE_END else _from_table(z)
    # a factor at a time: 0 times a power of scale that is inf would be NaN
    return Statistics(
        k0 - 0.5 * math.log(r),
        k1 * scale,
        k2 * scale * scale,
        k3 * scale * scale * scale,
        k4 * scale * scale * scale * scale,
        k5 * scale * scale * scale * scale * scale,
        k6 * scale * scale * scale * scale * scale * scale,
    )


@kernel(error_model="numpy")
def _higher_from_tail(l: float, r: float, out: FloatArray) -> None:
    """Into out (2,): the derivatives by l of the tail's sixth cumulant, 120 sum_j c_j (64 r)^j / (-l)^(6 + 2j)."""
    e = -1.0 / l
    t = 64.0 * r * e * e
    out[:] = 0.0
    for j in range(_TAIL.shape[1] - 1, -1, -1):
        power = 6.0 + 2.0 * j
        out[0] = out[0] * t + _TAIL[6, j] * power
        out[1] = out[1] * t + _TAIL[6, j] * power * (power + 1.0)
    size = 120.0 * e * e * e * e * e * e
    out[0] *= size * e
    out[1] *= size * e * e


@kernel()
def _higher_from_table(z: float, out: FloatArray) -> None:
    """Into out (2,): K_7 and K_8 for -8 <= z <= 4; the row's last derivative is the 18th."""
    node = int((z - _TABLE_START) * _NODES_PER_UNIT + 0.5)
    d = z - (_TABLE_START + node / _NODES_PER_UNIT)
    row = _TAYLOR[node]
    for order in (7, 8):
        total = row[row.size - 1]
        for j in range(row.size - 1 - order, 0, -1):
            total = row[order + j - 1] + d * _RECIPROCAL[j] * total
        out[order - 7] = total


@kernel()
def _higher_from_hazard(z: float, out: FloatArray) -> None:
    """Into out (2,): K_7 and K_8 for z > 4 by Leibniz on h' = -h u, u = z + h, as in `_from_hazard`."""
    h, u = np.empty(8), np.empty(8)
    h[0] = math.exp(-0.5 * z * z - _HALF_LOG_2PI) / (1.0 - 0.5 * math.erfc(z * math.sqrt(0.5)))
    u[0] = z + h[0]
    for n in range(7):
        total, choose = 0.0, 1.0
        for j in range(n + 1):
            total += choose * h[j] * u[n - j]
            choose *= (n - j) / (j + 1.0)
        h[n + 1] = -total
        u[n + 1] = h[n + 1] + (1.0 if n == 0 else 0.0)
    out[:] = h[6:]


@kernel(error_model="numpy")
def _fill_higher(l: FloatArray, r: FloatArray, out: FloatArray) -> None:
    """Into out (2, count): the seventh and the eighth cumulant in units of the standard deviation."""
    found = np.empty(2)
    for k in range(l.size):
        z = l[k] / math.sqrt(r[k])
        # in a unit where l or r is 1, so that no power leaves the floats
        if z < _TABLE_START:
            _higher_from_tail(-1.0, 1.0 / (z * z), found)
            variance = statistics(-1.0, 1.0 / (z * z)).k2
        else:
            if z > _TABLE_END:
                _higher_from_hazard(z, found)
            else:
                _higher_from_table(z, found)
            variance = statistics(z, 1.0).k2
        out[0, k] = found[0] / (variance * variance * variance * math.sqrt(variance))
        out[1, k] = found[1] / (variance * variance * variance * variance)


@kernel(error_model="numpy")
def _fill_lean(l: FloatArray, r: float, out: FloatArray) -> None:
    """Into out (5, count): ln Z1 and the first four cumulants at every l, for one r.

    Two Taylor chains, the rest by the hazard recurrence, in a loop without branches that compilers vectorise: a sixth
    of `statistics`' time. K_2, K_3, K_4 lose 2, 4 and 6 digits at z = -8.
    """
    scale, half_log = 1.0 / math.sqrt(r), 0.5 * math.log(r)
    scale2 = scale * scale
    scale3, scale4 = scale2 * scale, scale2 * scale2
    for k in range(l.size):
        z = min(max(l[k] * scale, _TABLE_START), _TABLE_END)
        node = int((z - _TABLE_START) * _NODES_PER_UNIT + 0.5)
        d = z - _TABLE_START - node / _NODES_PER_UNIT
        k0, u = _LEAN[0, node, _LEAN_TERMS - 1], _LEAN[1, node, _LEAN_TERMS - 1]
        for j in range(_LEAN_TERMS - 2, -1, -1):
            k0 = k0 * d + _LEAN[0, node, j]
            u = u * d + _LEAN[1, node, j]
        h = u - z
        h1 = -h * u
        u1 = 1.0 + h1
        h2 = -(h1 * u + h * u1)
        out[0, k] = k0 - half_log
        out[1, k] = u * scale
        out[2, k] = u1 * scale2
        out[3, k] = h2 * scale3
        out[4, k] = -(h2 * u + 2.0 * h1 * u1 + h * h2) * scale4
    for k in range(l.size):
        z = l[k] * scale
        if not _TABLE_START <= z <= _TABLE_END:
            found = statistics(l[k], r)
            out[0, k], out[1, k], out[2, k] = found.log_partition, found.k1, found.k2
            out[3, k], out[4, k] = found.k3, found.k4


@kernel()
def _second_minus_square(second: float, mean: float, times: float) -> float:
    """Times mean² - second without rounding the square (Dekker's product); times is 1 or 2."""
    square = mean * mean
    shifted = _VELTKAMP * mean
    high = shifted - (shifted - mean)
    low = mean - high
    rest = ((high * high - square) + 2.0 * high * low) + low * low
    return (times * square - second) + times * rest


@kernel()
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


@kernel()
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


@kernel()
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


@kernel()
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


@kernel(error_model="numpy")
def _fill_statistics(l: FloatArray, r: FloatArray, out: FloatArray) -> bool:
    """Into out (7, l.size), r repeating itself along l; False, and out unfinished, at an (l, r) that is refused."""
    for start in range(0, l.size, max(1, r.size)):
        for j in range(r.size):
            k = start + j
            if not (0.0 < r[j] < np.inf and -np.inf < l[k] < np.inf and l[k] / r[j] < np.inf):
                return False
            found = statistics(l[k], r[j])
            out[0, k] = found.log_partition
            out[1, k] = found.k1
            out[2, k] = found.k2
            out[3, k] = found.k3
            out[4, k] = found.k4
            out[5, k] = found.k5
            out[6, k] = found.k6
    return True


@kernel()
def _fill_from_second(mean: FloatArray, second: FloatArray, parts: FloatArray) -> None:
    """parts (4, count): mean, variance, gap in units of 2^exponent, and the exponent; correctly rounded.

    In that unit the mean lies between 1/2 and 1, so that no square leaves the floats.
    """
    for k in range(mean.size):
        m, exponent = math.frexp(mean[k])
        v = math.ldexp(second[k], -2 * exponent)
        parts[0, k] = m
        parts[1, k] = -_second_minus_square(v, m, 1.0)
        parts[2, k] = _second_minus_square(v, m, 2.0)
        parts[3, k] = exponent


@kernel()
def _fill_from_variance(mean: FloatArray, variance: FloatArray, parts: FloatArray) -> None:
    """The same from mean and variance."""
    for k in range(mean.size):
        m, exponent = math.frexp(mean[k])
        s = math.ldexp(variance[k], -2 * exponent)
        parts[0, k] = m
        parts[1, k] = s
        parts[2, k] = _second_minus_square(s, m, 1.0)
        parts[3, k] = exponent


@kernel()
def _fill_natural(parts: FloatArray, l: FloatArray, r: FloatArray) -> None:
    """(l, r) in the caller's unit: if x = 2^exponent y, then l_x = 2^-exponent l_y and r_x = 4^-exponent r_y."""
    for k in range(l.size):
        here, there = natural_from_scaled(parts[0, k], parts[1, k], parts[2, k])
        exponent = int(parts[3, k])
        l[k], r[k] = math.ldexp(here, -exponent), math.ldexp(there, -2 * exponent)


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
    """What a one-variable domain must know for inference and estimators.

    Samplers ask for one thing more, a random x. It is not a method here, because it must be a numba kernel of its own
    per domain: `draw.excess` is the half-line's.
    """

    lower: float
    upper: float

    def moments(self, l: ArrayLike, r: ArrayLike) -> SiteMoments:
        """Ln Z1 and cumulants of q(x; l, r)."""
        ...

    def largest_variance(self, low: FloatArray, high: FloatArray, r: FloatArray) -> FloatArray:
        """(n,) bounds on the variance for every l between `low` and `high`; 1/r holds on any interval."""
        ...

    def higher_cumulants(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2, n): the seventh and the eighth in units of the standard deviation, at l, r (n,).

        Second derivatives by r of the third and the fourth take them.
        """
        ...

    def conditionals(self, l: FloatArray, r: float) -> FloatArray:
        """(5, rows): ln Z1 and the first four cumulants at l (rows,) for one r, quickly."""
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

        EQ 2. Relative error below 1e-12 for l/sqrt r from -1e8 to 1e8 (`tests/test_site.py`). Where l/r, the mean of a
        narrow normal, is not a float, this is refused; what else leaves the floats is inf or 0 (see `statistics`).
        """
        if not (_is_plain(l) and _is_plain(r) and l.shape[l.ndim - r.ndim :] == r.shape):
            l, r = (np.asarray(value, order="C") for value in _checked(l, r))
        out = np.empty((7, *l.shape))
        if not _fill_statistics(l.reshape(-1), r.reshape(-1), out.reshape(7, -1)):
            _checked(l, r)  # the kernel looks at what it reads anyway; this finds the words
        return SiteMoments(out[0], out[1:])

    def largest_variance(self, low: FloatArray, high: FloatArray, r: FloatArray) -> FloatArray:  # noqa: ARG002
        """(n,) the variance at `high`: on x >= 0 it grows with l, from an exponential's to a normal's."""
        return self.moments(high, r).variance

    def higher_cumulants(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2, n): the seventh and the eighth in units of the standard deviation, to 1e-11 of their scale."""
        out = np.empty((2, l.size))
        _fill_higher(l, r, out)
        return out

    def conditionals(self, l: FloatArray, r: float) -> FloatArray:
        """(5, rows): ln Z1 and the first four cumulants at l (rows,), one r > 0: for estimators, where time counts.

        ln Z1 and means to 1e-13, variance, third and fourth cumulant to 1e-12, 1e-10 and 1e-9 at worst (z = -8).
        """
        out = np.empty((5, l.size))
        _fill_lean(l, r, out)
        return out

    def from_moments(self, mean: ArrayLike, second_moment: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and second moment v; they exist iff m² < v < 2 m² (EQ 2)."""
        m, v = broadcast(mean=as_floats("mean", mean), second_moment=as_floats("second_moment", second_moment))
        parts = np.empty((4, m.size))
        _fill_from_second(np.ravel(m), np.ravel(v), parts)
        wrong = _no_site(parts)
        if wrong.any():
            rule = "a variable on x >= 0 needs mean > 0 and mean² < second_moment < 2 mean²"
            raise _refusal("second_moment", m, v, wrong, rule, _SPREAD)
        return _natural("second_moment", m, v, parts)

    def from_mean_variance(self, mean: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and variance s; they exist iff 0 < s < m² (EQ 2)."""
        m, s = broadcast(mean=as_floats("mean", mean), variance=as_floats("variance", variance))
        parts = np.empty((4, m.size))
        _fill_from_variance(np.ravel(m), np.ravel(s), parts)
        # as narrow as this it is a normal, and the scaled variance may have lost digits to underflow
        narrow = (parts[0] > 0) & (np.ravel(s) > 0) & (parts[1] < _NORMAL_SHARE)
        parts[1, narrow] = _NORMAL_SHARE
        wrong = _no_site(parts)
        if wrong.any():
            raise _refusal(
                "variance", m, s, wrong, "a variable on x >= 0 needs mean > 0 and 0 < variance < mean²", _SPREAD
            )
        return _natural("variance", m, s, parts, narrow)


def _is_plain(value: object) -> TypeGuard[FloatArray]:
    """Whether a kernel may have it as it is: an array of floats in one piece."""
    return type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous


def _checked(l: ArrayLike, r: ArrayLike) -> tuple[FloatArray, ...]:
    """l and r of one shape, or an error that names the first value which no site has."""
    slope, curvature = broadcast(l=as_floats("l", l), r=as_floats("r", r))
    forbid("r", curvature, curvature <= 0, "r must be positive", "Without it the density has no norm.")
    with np.errstate(over="ignore", under="ignore"):
        forbid("l", slope, slope / curvature == np.inf, "l/r must be a float", "Measure x in a larger unit.")
    return slope, curvature


def _no_site(parts: FloatArray) -> NDArray[np.bool_]:
    """Where no (l, r) has these moments; NaN, from an overflow, counts."""
    return ~((parts[0] > 0) & (parts[1] > 0) & (parts[2] > 0))


def _natural(
    other: str, mean: FloatArray, value: FloatArray, parts: FloatArray, narrow: NDArray[np.bool_] | None = None
) -> tuple[FloatArray, FloatArray]:
    """(l, r) of the shape of `mean`; those of a normal where it is `narrow`; refused where they are not floats."""
    l, r = np.empty(mean.size), np.empty(mean.size)
    _fill_natural(parts, l, r)
    if narrow is not None and narrow.any():
        with np.errstate(over="ignore", under="ignore"):
            l[narrow] = np.ravel(mean)[narrow] / np.ravel(value)[narrow]
            r[narrow] = 1.0 / np.ravel(value)[narrow]
    lost = ~(np.isfinite(l) & np.isfinite(r) & (r >= np.finfo(np.float64).tiny))  # below it r has lost digits
    if lost.any():
        raise _refusal(
            other, mean, value, lost, "l and r of these moments must be floats", "Measure x in another unit, near 1."
        )
    return l.reshape(mean.shape), r.reshape(mean.shape)


def _refusal(other: str, mean: FloatArray, value: FloatArray, bad: NDArray[np.bool_], rule: str, remedy: str) -> NoSite:
    """NoSite with every (flat) place of `bad`; it tells the first one's mean and `other` value."""
    places = np.flatnonzero(bad)
    k = int(places[0])
    return NoSite(
        f"mean, {other}: {rule}, but place {', '.join(map(str, places[:5]))}{', ...' if places.size > 5 else ''} "
        f"({places.size} of {mean.size}) breaks it: at {k} the mean is {np.ravel(mean)[k]:.6g} and the {other} "
        f"{np.ravel(value)[k]:.6g}. {remedy}",
        places,
    )


HALF_LINE = HalfLine()

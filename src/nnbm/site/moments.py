"""What a site answers: the moments that follow from ln Z1 and cumulants on any domain, and the protocol itself.

A *site* answers three questions, and no inference method may ask for more: the log-partition function, the cumulants
of x, and which (l, r) have given moments. (Samplers ask a fourth, a random x; `draw` answers it.) Everything else,
all moments and all derivatives, follows from the cumulants by identities that hold on any domain, because ln Z1
solves the heat equation d ln Z1/dr = -1/2 (d² ln Z1/dl² + (d ln Z1/dl)²); they live in `SiteMoments`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, IntArray

__all__ = ["Site", "SiteDerivatives", "SiteMoments", "Statistics"]


class Statistics(NamedTuple):
    """ln Z1 and the first six cumulants of one site: what the numba kernels pass around."""

    log_partition: float
    k1: float
    k2: float
    k3: float
    k4: float
    k5: float
    k6: float


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

    @property
    def lower(self) -> float | FloatArray:
        """The lower end: one number, or (n,) one a variable."""
        ...

    @property
    def upper(self) -> float | FloatArray:
        """The upper end, alike."""
        ...

    def of(self, members: int | IntArray) -> Self:
        """The site of one variable, or of some of the n."""
        ...

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
        """Of one variable (5, rows): ln Z1 and the first four cumulants at l (rows,) for one r, quickly."""
        ...

    def from_moments(self, mean: ArrayLike, second_moment: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean and second moment; raises NoSite with the places where there are none."""
        ...

    def from_mean_variance(self, mean: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The same from mean and variance, for callers who hold a small variance to full precision."""
        ...

"""Functions of one site to second order in its natural parameters, for every site at once.

Cumulants need no differentiation rule but two: d k_n/dl = k_{n+1}, and by the heat equation on every domain
d k_n/dr = -1/2 d^n/dl^n (k_2 + k_1²). Everything else is the product rule. The variable is centred, x - m with m held
fixed and l - r m as the first parameter, so that nothing cancels far from the wall and k_1 = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from nnbm.arrays import FloatArray

__all__ = ["Bend", "Jet", "bend_by_moments", "cumulant_jets", "standardised"]


@dataclass(frozen=True)
class Jet:
    """A function's value, first and second derivatives by l and r, each (n,)."""

    value: FloatArray
    l: FloatArray
    r: FloatArray
    ll: FloatArray
    lr: FloatArray
    rr: FloatArray

    @classmethod
    def of_r(cls, value: FloatArray, slope: float) -> Jet:
        """A linear function of r alone."""
        zero = np.zeros_like(value)
        return cls(value, zero, zero + slope, zero, zero, zero)

    def __add__(self, other: Jet) -> Jet:
        return Jet(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    def __mul__(self, other: Jet) -> Jet:
        a, b = self, other
        return Jet(
            a.value * b.value,
            a.l * b.value + a.value * b.l,
            a.r * b.value + a.value * b.r,
            a.ll * b.value + 2.0 * a.l * b.l + a.value * b.ll,
            a.lr * b.value + a.l * b.r + a.r * b.l + a.value * b.lr,
            a.rr * b.value + 2.0 * a.r * b.r + a.value * b.rr,
        )

    def times(self, weight: FloatArray) -> Jet:
        """The function times constants (n,)."""
        return Jet(*(weight * part for part in self._parts))

    def power(self, exponent: int) -> Jet:
        """The function to an integer power; its value must not be 0."""
        value = self.value**exponent
        slope = exponent * value / self.value
        bend = (exponent - 1) * slope / self.value
        return Jet(
            value,
            slope * self.l,
            slope * self.r,
            slope * self.ll + bend * self.l**2,
            slope * self.lr + bend * self.l * self.r,
            slope * self.rr + bend * self.r**2,
        )

    def along(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(n, k) the change along k directions of l and r (n, k)."""
        return self.l[:, None] * l + self.r[:, None] * r

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        return self.value, self.l, self.r, self.ll, self.lr, self.rr


def cumulant_jets(cumulants: FloatArray) -> list[Jet]:
    """The jets of k_1 .. k_{count - 4} from the cumulants (count, n) of the centred variable."""
    first = _by_r(cumulants, cumulants)
    second = _by_r(cumulants, first)
    return [
        Jet(cumulants[k], cumulants[k + 1], first[k], cumulants[k + 2], first[k + 1], second[k])
        for k in range(len(second))
    ]


def standardised(cumulants: FloatArray, higher: FloatArray) -> FloatArray:
    """(8, n) the cumulants of the centred variable in units of its standard deviation.

    From the first six (6, n) in the caller's units, and the seventh and the eighth (2, n) as a site gives them.
    """
    found = np.concatenate([cumulants, higher])
    found[0] = 0.0
    unit = np.sqrt(cumulants[1])
    for k in range(6):
        found[k:6] /= unit  # a factor at a time: its sixth power may leave the floats
    return found


class Bend(NamedTuple):
    """Second derivatives of a site's function by its mean and its variance, each (n,)."""

    mm: FloatArray
    ms: FloatArray
    ss: FloatArray


def bend_by_moments(jet: Jet, mean: Jet, variance: Jet) -> Bend:
    """How a function bends with the mean and the variance instead of l and r.

    With C = d(m, s)/d(l, -r/2), the covariance of x and (x - m)², and the function's slopes (p, q) by (m, s), it is
    C^{-1} (f'' - p m'' - q s'') C^{-1}.
    """
    first, mixed, last = mean.l, variance.l, -2.0 * variance.r
    determinant = first * last - mixed * mixed
    # columns of C^{-1}
    a, b, c = last / determinant, -mixed / determinant, first / determinant
    p, q = a * jet.l - 2.0 * b * jet.r, b * jet.l - 2.0 * c * jet.r
    left = jet + mean.times(-p) + variance.times(-q)
    ll, lr, rr = left.ll, -2.0 * left.lr, 4.0 * left.rr
    return Bend(
        a * a * ll + 2.0 * a * b * lr + b * b * rr,
        a * b * ll + (a * c + b * b) * lr + b * c * rr,
        b * b * ll + 2.0 * b * c * lr + c * c * rr,
    )


def _by_r(cumulants: FloatArray, given: FloatArray) -> FloatArray:
    """(len(given) - 2, n) derivatives by r of `given`: the cumulants themselves, or their derivatives by r."""
    # the square k_1² is bilinear: its own derivative has a factor 2
    twice = 1.0 if given is cumulants else 2.0
    found = []
    for n in range(1, len(given) - 1):
        square = sum(comb(n, j) * cumulants[j] * given[n - j] for j in range(n + 1))
        found.append(-0.5 * (given[n + 1] + twice * square))
    return np.array(found)

"""The leading cumulant correction of EP (EQ 12): what third and fourth cumulants still change of ln Z and of the means.

R = 1/12 sum_ij k3_i k3_j Q_ij³ + 1/48 sum_ij k4_i k4_j Q_ij⁴, Q_ij = S_ij / (S_ii S_jj), i != j, S = G^{-1};
<x> ~ m + dR/db, the total derivative through EP's fixed point. Opper, Paquet & Winther (2013). As S_ii = s_i at every
solution, R may be written with c_k = κ_k/s^k of each site, and in units where each variance is 1:

    R = sum_k 1/(2 k!) sum_{i != j} c_{k,i} c_{k,j} S_ij^k,     k = 3, 4                            (12.1)

It is the heart of `epc`. How R bends with b is `curvature`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.ep import mean_response
from nnbm.inference.jets import Jet, cumulant_jets, standardised
from nnbm.inference.problem import Point

__all__ = ["ORDERS", "Expansion", "power"]

ORDERS = (3, 4)  # of the cumulants in R


@dataclass(frozen=True)
class Expansion:
    """A solution of EP with R, all in units (n,) where each variance is 1.

    inverse: S (n, n). by_bias: dm/db (n, n). reaction: -dr/dm (n, n). mean, variance, stiffness, ratios: m, s, the
    diagonal 1/s - r of G, and c_k for each k of ORDERS, of each site with their derivatives by l and r.
    """

    unit: FloatArray
    inverse: FloatArray
    by_bias: FloatArray
    reaction: FloatArray
    mean: Jet
    variance: Jet
    stiffness: Jet
    ratios: Mapping[int, Jet]

    @classmethod
    def at(cls, point: Point) -> Expansion | None:
        """At a solution of EP; None where it has no linear response."""
        if point.gaussian is None:
            return None
        covariance = point.gaussian.inverse()
        response = mean_response(point, covariance)
        if response is None:
            return None
        unit = np.sqrt(point.variance)
        scale = np.outer(unit, unit)
        inverse, by_bias = covariance / scale, response.covariance / scale
        higher = point.problem.site.higher_cumulants(point.l, point.r)
        jets = dict(enumerate(cumulant_jets(standardised(point.moments.cumulants, higher)), start=1))
        ratios = {k: jets[k] * jets[2].power(-k) for k in ORDERS}
        stiffness = jets[2].power(-1) + Jet.of_r(-point.r * unit * unit, -1.0)
        reaction = response.reaction * unit * (unit * unit)[:, None]
        return cls(unit, inverse, by_bias, reaction, jets[1], jets[2], stiffness, ratios)

    @cached_property
    def apart(self) -> FloatArray:
        """(n, n) S with a zero diagonal."""
        found = self.inverse.copy()
        np.fill_diagonal(found, 0.0)
        return found

    @property
    def value(self) -> float:
        """R."""
        return 0.5 * sum(float(c.value @ self.by_ratio[k]) for k, c in self.ratios.items())

    @cached_property
    def by_ratio(self) -> Mapping[int, FloatArray]:
        """(n,) dR/dc_k for each k."""
        return {k: power(self.apart, k) @ c.value / factorial(k) for k, c in self.ratios.items()}

    def by_inverse(self, times: int, orders: tuple[int, ...] = ORDERS) -> FloatArray:
        """(n, n) the first (times = 1) or second derivative by S_ij of R's summands."""
        found = np.zeros_like(self.apart)
        for k in orders:
            c = self.ratios[k].value
            found += power(self.apart, k - times) * (c[:, None] * (c / (2.0 * factorial(k - times))))
        return found

    def by_stiffness(self, weights: FloatArray) -> FloatArray:
        """(n,) the derivative by G's diagonal of sum_ij N_ij S_ij, N (n, n) the `weights`: dS = -S dG S."""
        return -np.einsum("ik,ik->k", weights @ self.inverse, self.inverse)

    def gradient(self, orders: tuple[int, ...] = ORDERS) -> tuple[FloatArray, FloatArray]:
        """(dR/dl, dR/dr), each (n,), site by site, all b held fixed."""
        by_stiffness = self.by_stiffness(self.by_inverse(1, orders))
        by_l, by_r = by_stiffness * self.stiffness.l, by_stiffness * self.stiffness.r
        for k in orders:
            by_l += self.by_ratio[k] * self.ratios[k].l
            by_r += self.by_ratio[k] * self.ratios[k].r
        return by_l, by_r

    def mean_shift(self, orders: tuple[int, ...] = ORDERS) -> FloatArray:
        """(n,) dR/db in the caller's units, or the share in it of some `orders`.

        The means follow b by EP's response M, and l and r follow the means by dr = -T dm and dl = dm - m_r dr (in
        units where s = 1): one adjoint chain.
        """
        by_l, by_r = self.gradient(orders)
        by_mean = by_l - self.reaction.T @ (by_r - by_l * self.mean.r)
        return self.unit * (self.by_bias @ by_mean)


def power(matrix: FloatArray, exponent: int) -> FloatArray:
    """Entries to a small positive power by products, many times faster than pow."""
    found = matrix
    for _ in range(exponent - 1):
        found = found * matrix
    return found

"""The third order of the free energy in the couplings (EQ 11): its value, its slopes, and the Hessian with it.

F3 = F2 + T, with κ3 the third cumulant of the site that has mean m and variance s,

    T = 1/6 sum_E w_ij³ κ3_i κ3_j + sum_triangles w_ij w_jk w_ki s_i s_j s_k                       (11.1)

By m and s = v - m², with g_i = 1/6 sum_j w_ij³ κ3_j, t_i = 1/2 sum_jk w_ij w_jk w_ki s_j s_k and the slopes (p, q) of
κ3(m, s),

    T_m = g p     T_s = g q + t                                                                    (11.2)
    T_mm = 1/6 w_ij³ p_i p_j + diag(g κ3_mm)     T_ms = 1/6 w_ij³ p_i q_j + diag(g κ3_ms)
    T_ss = 1/6 w_ij³ q_i q_j + diag(g κ3_ss) + off(w_ij sum_k w_ik w_kj s_k)                       (11.3)

to be added to F2's derivatives (`hessian`). Everything is worked out in units where every variance is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from nnbm.arrays import FloatArray
from nnbm.inference.jets import bend_by_moments, cumulant_jets, standardised
from nnbm.linalg.dense import Factor, factor

__all__ = ["MixedResponse", "ThirdOrder"]


@dataclass(frozen=True)
class ThirdOrder:
    """T at sites of standard deviations `unit` (n,), with their cumulants (8, n) and w_ij (n, n) in these units."""

    unit: FloatArray
    cumulants: FloatArray
    coupling: FloatArray

    @classmethod
    def at(cls, off: FloatArray, cumulants: FloatArray, higher: FloatArray) -> ThirdOrder:
        """From w_ij (n, n) with a zero diagonal, and a site's cumulants as it gives them, (6, n) and (2, n)."""
        unit = np.sqrt(cumulants[1])
        return cls(unit, standardised(cumulants, higher), off * unit * unit[:, None])

    @property
    def value(self) -> float:
        """T."""
        return float(0.5 * self.cumulants[2] @ self.field + self.triangles.sum() / 3.0)

    @property
    def by_mean(self) -> FloatArray:
        """(n,) T_m at fixed variances, in the caller's units."""
        return self.field * self.slopes[0] / self.unit

    @property
    def by_variance(self) -> FloatArray:
        """(n,) T_s at fixed means, in the caller's units."""
        return (self.field * self.slopes[1] + self.triangles) / (self.unit * self.unit)

    @cached_property
    def cubes(self) -> FloatArray:
        """(n, n) w_ij³ / 6."""
        return self.coupling * self.coupling * self.coupling / 6.0

    @cached_property
    def walks(self) -> FloatArray:
        """(n, n) sum_k w_ik w_kj s_k."""
        return self.coupling @ self.coupling

    @cached_property
    def field(self) -> FloatArray:
        """(n,) g."""
        return self.cubes @ self.cumulants[2]

    @cached_property
    def triangles(self) -> FloatArray:
        """(n,) t."""
        return 0.5 * np.einsum("ij,ij->i", self.coupling, self.walks)

    @cached_property
    def determinant(self) -> FloatArray:
        """(n,) D = κ4 + 2 - κ3² of each site."""
        return self.cumulants[3] + 2.0 - self.cumulants[2] ** 2

    @cached_property
    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """(p, q), each (n,)."""
        _, _, k3, k4, k5 = self.cumulants[:5]
        by_spread = k5 + 6.0 * k3  # by -r/2 at fixed l - r m: the heat equation
        p = ((k4 + 2.0) * k4 - k3 * by_spread) / self.determinant
        return p, (by_spread - k3 * k4) / self.determinant

    def response(self, back: FloatArray) -> MixedResponse | None:
        """From w_ii - r_i (n,); None if the Hessian is not positive definite."""
        by_mm, by_ms, by_ss = self.hessian(back)
        spread = factor(by_ss.T, overwrite=True)
        if spread is None:
            return None
        half = lapack.dtrtrs(spread.lower, by_ms.T, lower=1)[0]
        means = factor((by_mm - half.T @ half).T, overwrite=True)
        return None if means is None else MixedResponse(self.unit, spread, means, by_ms)

    def hessian(self, back: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """H_mm, H_ms, H_ss of F3, each (n, n), in units where every variance is 1; `back` (n,) is in the caller's."""
        k3, k4 = self.cumulants[2:4]
        p, q = self.slopes
        mean, variance, third = cumulant_jets(self.cumulants[:7])
        bend = bend_by_moments(third, mean, variance)
        by_mm = self.coupling + self.cubes * p * p[:, None]
        by_ms = self.cubes * q * p[:, None]
        by_ss = self.cubes * q * q[:, None] + self.coupling * (self.walks - 0.5 * self.coupling)
        diagonal = slice(None, None, k3.size + 1)
        by_mm.flat[diagonal] = back * self.unit**2 + (k4 + 2.0) / self.determinant + self.field * bend.mm
        by_ms.flat[diagonal] = -k3 / self.determinant + self.field * bend.ms
        by_ss.flat[diagonal] = 1.0 / self.determinant + self.field * bend.ss
        return by_mm, by_ms, by_ss


@dataclass(frozen=True)
class MixedResponse:
    """A positive definite Hessian with a full mixed block: factors of H_ss and of its Schur complement, and H_ms."""

    unit: FloatArray
    spread: Factor
    means: Factor
    mixed: FloatArray

    @cached_property
    def covariance(self) -> FloatArray:
        """(n, n) M = dm/db."""
        return self.means.inverse() * self.unit * self.unit[:, None]

    @property
    def diagonal(self) -> FloatArray:
        """(n,) M_ii."""
        return self.means.inverse_diagonal() * self.unit * self.unit

    @property
    def variances(self) -> FloatArray:
        """(n, n) ds/db."""
        scaled = self.covariance / self.unit[:, None]
        return -self.spread.solve(self.mixed.T @ scaled) * (self.unit * self.unit)[:, None]

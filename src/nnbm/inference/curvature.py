"""How EP's cumulant correction R bends with b (EQ 12): the correction of the covariances, by a second-order adjoint.

EP's fixed point in y = (l, r) is F = 0 with F1 = l - b + W_off m + (w - r) m (EQ 5.1) and F2 = diag S - s, S = G^{-1},
G = W_off + diag(w + 1/s - r). With multipliers p, q that make L = R - p.F1 - q.F2 stationary in y,

    dR/db = p,        d²R/db db' = y_b' (d²L/dy dy') y_b        (12.2)

because F1 is linear in b. R (12.1) depends on y through c_k of the sites one by one, and through S. Only one term of
the Hessian costs more than O(n³): the sum over ij of R''(S_ij) S_ik S_jk S_il S_jl for every k, l takes n⁴
multiplications. Everything here is in units where each site's variance is 1, with centred variables (see `jets`).
"""

from __future__ import annotations

from math import factorial

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.cumulants import Expansion, power
from nnbm.inference.jets import Jet
from nnbm.inference.problem import Problem

__all__ = ["covariance_correction"]


def covariance_correction(problem: Problem, found: Expansion, back: FloatArray, mean_shift: FloatArray) -> FloatArray:
    """(n, n) d²R/db db' (12.2) at a solution of EP, from its back = w - r and dR/db, both (n,)."""
    unit = found.unit
    p = mean_shift / unit
    q = _second_multiplier(found, p)
    by_r = -found.reaction @ found.by_bias
    by_l = found.by_bias - found.mean.r[:, None] * by_r
    # L's second derivatives by the sites' own l and r, from F1 and F2; (w - r) m has a mixed one
    by_mean = unit * (problem.off @ mean_shift + back * mean_shift)
    local = found.mean.times(-by_mean) + found.variance.times(q)
    mixed = by_r.T @ (p[:, None] * found.by_bias)
    bend = mixed + mixed.T + _through_sites(local, by_l, by_r) + _through_pairs(found, q, by_l, by_r)
    return 0.5 * (bend + bend.T) * np.outer(unit, unit)


def _second_multiplier(found: Expansion, p: FloatArray) -> FloatArray:
    """(n,) q, from L's derivative by r at fixed means: (P U + 1)' q = dR/dr - κ3/2 p (see `mean_response`)."""
    by_l, by_r = found.gradient()
    # at fixed means dl = -m_r dr
    at_fixed_mean = found.stiffness.r - found.mean.r * found.stiffness.l
    left = power(found.apart, 2) * -at_fixed_mean
    left.flat[:: p.size + 1] += 1.0
    return np.asarray(np.linalg.solve(left.T, by_r - found.mean.r * (by_l - p)), dtype=np.float64)


def _through_sites(jet: Jet, by_l: FloatArray, by_r: FloatArray) -> FloatArray:
    """(n, n) y_b' (second derivatives of a sum over sites) y_b."""
    along_l = jet.ll[:, None] * by_l + jet.lr[:, None] * by_r
    along_r = jet.lr[:, None] * by_l + jet.rr[:, None] * by_r
    return by_l.T @ along_l + by_r.T @ along_r


def _through_pairs(found: Expansion, q: FloatArray, by_l: FloatArray, by_r: FloatArray) -> FloatArray:
    """(n, n) what R - q.diag S adds: c_k with c_k, c_k with G, G with G, and the sites' own curvature of c_k and G."""
    weights = found.by_inverse(1)
    weights.flat[:: q.size + 1] = -q
    local = found.stiffness.times(found.by_stiffness(weights))
    stiffness = found.stiffness.along(by_l, by_r)
    bend = stiffness.T @ _by_stiffness_twice(found, weights) @ stiffness
    for k, jet in found.ratios.items():
        ratio, below = jet.along(by_l, by_r), power(found.apart, k - 1)
        pull = (below * jet.value) @ found.inverse * found.inverse / factorial(k - 1)
        mixed = ratio.T @ (pull @ stiffness)
        bend += ratio.T @ (below * found.apart / factorial(k)) @ ratio - mixed - mixed.T
        local += jet.times(found.by_ratio[k])
    return bend + _through_sites(local, by_l, by_r)


def _by_stiffness_twice(found: Expansion, weights: FloatArray) -> FloatArray:
    """(n, n) second derivatives by G's diagonal: 2 S_kl (S N S)_kl + sum_ij N'_ij S_ik S_jk S_il S_jl, in O(n⁴)."""
    inverse, bend = found.inverse, found.by_inverse(2)
    twice = np.zeros_like(inverse)
    for k in range(len(inverse)):
        columns = inverse[:, k:] * inverse[:, k : k + 1]
        twice[k, k:] = np.einsum("il,il->l", columns, bend @ columns)
    twice += np.triu(twice, 1).T
    return twice + 2.0 * inverse * (inverse @ weights @ inverse)

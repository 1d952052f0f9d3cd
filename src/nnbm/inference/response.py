"""Susceptibilities of the second-order free energy (EQ 4), in the coordinates where they are simplest.

In means and *variances* s = v - m² the couplings enter F2 as sum_E (w_ij m_i m_j - 1/2 w_ij² s_i s_j): no cross terms.
The Hessian of EQ 4, transformed by dv = ds + 2 m dm, has the blocks (D = s k4 + 2 s³ - k3²)

    H_mm = off(w_ij) + diag(w_ii - r_i + (k4 + 2 s²)/D)    H_ms = diag(-k3/D)    H_ss = off(-w_ij²/2) + diag(s/D)

and M = dm/db, the same in either coordinates, is the inverse of a Schur complement of size n. D and the blocks are
free of the cancellation that a d - c² suffers far from the wall.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Point
from nnbm.linalg.dense import Factor, factor

__all__ = ["Response", "Susceptibilities", "second_order_response", "susceptibilities"]


@dataclass(frozen=True)
class Response:
    """A positive definite Hessian: factors of H_ss and of its Schur complement M^{-1}, and H_ms = diag(-pull)."""

    spread: Factor
    means: Factor
    pull: FloatArray


@dataclass(frozen=True)
class Susceptibilities:
    """The paper's four matrices (n, n): derivatives of m, v, l, r (rows) by b (columns)."""

    mean: FloatArray
    second_moment: FloatArray
    l: FloatArray
    r: FloatArray


def second_order_response(point: Point) -> Response | None:
    """The response where r contains sum_j w_ij² s_j + Lambda_i (EQ 5.2); None if H is not positive definite."""
    s, k3, k4 = point.moments.cumulants[1:4]
    determinant = s * k4 + 2.0 * s**3 - k3 * k3
    pull = k3 / determinant
    problem, step = point.problem, point.l.size + 1
    spread_matrix = -0.5 * problem.off_squared
    spread_matrix.flat[::step] = s / determinant
    spread = factor(spread_matrix)
    if spread is None:
        return None
    means_matrix = problem.off - pull[:, None] * spread.inverse() * pull
    means_matrix.flat[::step] += problem.diagonal - point.r + (k4 + 2.0 * s * s) / determinant
    means = factor(means_matrix)
    return None if means is None else Response(spread, means, pull)


def susceptibilities(point: Point, response: Response) -> Susceptibilities:
    """(M, V, L, R) of the paper's coupled equations, Lambda held fixed (EQ 4).

    With d(m, s) = H^{-1} db known, (l, r) follow site by site from the inverse of the site's own covariance.
    """
    m, s, k3, k4 = point.moments.cumulants[:4]
    by_mean = response.means.inverse()
    by_variance = response.spread.solve(response.pull[:, None] * by_mean)
    determinant = s * k4 + 2.0 * s**3 - k3 * k3
    # (dl - m dr, -dr/2) are conjugate to (m, s)
    conjugate_m = ((k4 + 2.0 * s * s)[:, None] * by_mean - k3[:, None] * by_variance) / determinant[:, None]
    conjugate_s = (s[:, None] * by_variance - k3[:, None] * by_mean) / determinant[:, None]
    by_r = -2.0 * conjugate_s
    return Susceptibilities(by_mean, by_variance + 2.0 * m[:, None] * by_mean, conjugate_m + m[:, None] * by_r, by_r)

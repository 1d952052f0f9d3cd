"""Susceptibilities of a free energy (EQ 4), from its Hessian's factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Point

__all__ = ["Response", "Susceptibilities", "second_order_response", "susceptibilities", "third_order_response"]


class Response(Protocol):
    """How the moments at a minimum of a free energy follow b."""

    @property
    def covariance(self) -> FloatArray:
        """(n, n) M = dm/db."""
        ...

    @property
    def diagonal(self) -> FloatArray:
        """(n,) M_ii."""
        ...

    @property
    def variances(self) -> FloatArray:
        """(n, n) ds/db."""
        ...


@dataclass(frozen=True)
class Susceptibilities:
    """The paper's four matrices (n, n): derivatives of m, v, l, r (rows) by b (columns)."""

    mean: FloatArray
    second_moment: FloatArray
    l: FloatArray
    r: FloatArray


def second_order_response(point: Point) -> Response | None:
    """The response where r contains sum_j w_ij² s_j + Lambda_i (EQ 5.2); None if H is not positive definite."""
    return point.second_order


def third_order_response(point: Point) -> Response | None:
    """The same for the third-order free energy (EQ 11)."""
    return point.third_response


def susceptibilities(point: Point, response: Response) -> Susceptibilities:
    """(M, V, L, R) of the paper's coupled equations, Lambda held fixed (EQ 4).

    With d(m, s) = H^{-1} db known, (l, r) follow site by site from the inverse of the site's own covariance.
    """
    m, s, k3, k4 = point.moments.cumulants[:4]
    by_mean, by_variance = response.covariance, response.variances
    determinant = s * k4 + 2.0 * s**3 - k3 * k3
    # (dl - m dr, -dr/2) are conjugate to (m, s)
    conjugate_m = ((k4 + 2.0 * s * s)[:, None] * by_mean - k3[:, None] * by_variance) / determinant[:, None]
    conjugate_s = (s[:, None] * by_variance - k3[:, None] * by_mean) / determinant[:, None]
    by_r = -2.0 * conjugate_s
    return Susceptibilities(by_mean, by_variance + 2.0 * m[:, None] * by_mean, conjugate_m + m[:, None] * by_r, by_r)

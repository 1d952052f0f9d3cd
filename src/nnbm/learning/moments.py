"""Moments of data in one pass: weighted, mergeable, on all pairs or on the edges alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_floats, forbid
from nnbm.ends import checked_ends, domain_rule
from nnbm.learning.edges import EdgeSet
from nnbm.learning.frame import Frame
from nnbm.learning.rows import Rows
from nnbm.site import HALF_LINE, Site

__all__ = ["Moments", "checked_moments", "moments"]


@dataclass(frozen=True, eq=False)
class Moments:
    """total: rows, repeats counted. mean, variance: (n,). covariance: (edges,). Central, so nothing cancels.

    site: the domain of the variables.
    """

    edges: EdgeSet
    total: float
    mean: FloatArray
    variance: FloatArray
    covariance: FloatArray
    site: Site = HALF_LINE

    @property
    def second_moment(self) -> FloatArray:
        """(n,) <x_i²>."""
        return self.variance + self.mean**2

    @property
    def dense_covariance(self) -> FloatArray:
        """(n, n); 0 where there is no edge."""
        return self.edges.symmetric(self.covariance, self.variance)

    def merged(self, other: Moments) -> Moments:
        """The moments of both sets of rows together (Chan, Golub & LeVeque 1983)."""
        if not self.edges.same(other.edges):
            raise ValueError("edges: moments of the same variables and edges are needed, but they changed. Start anew.")
        if self.site != other.site:
            raise ValueError("lower, upper: moments between the same ends are needed, but they changed. Start anew.")
        total = self.total + other.total
        share, apart = other.total / total, other.mean - self.mean
        between = share * (1.0 - share)
        e = self.edges
        return Moments(
            e,
            total,
            self.mean + share * apart,
            (1.0 - share) * self.variance + share * other.variance + between * apart**2,
            (1.0 - share) * self.covariance + share * other.covariance + between * apart[e.i] * apart[e.j],
            self.site,
        )

    def standardised(self) -> Moments:
        """The same of x / sd: every variance is 1."""
        e, sd = self.edges, np.sqrt(self.variance)
        site = Frame.of_scale(sd).site(self.site)
        covariance = self.covariance / (sd[e.i] * sd[e.j])
        return Moments(e, self.total, self.mean / sd, np.ones_like(sd), covariance, site)


def checked_moments(
    mean: ArrayLike, covariance: ArrayLike, rows: float, *, lower: ArrayLike = 0.0, upper: ArrayLike = np.inf
) -> tuple[FloatArray, FloatArray]:
    """mean (n,) and covariance (n, n) as arrays, or an error that says what is wrong with them."""
    center, spread = as_floats("mean", mean), as_floats("covariance", covariance)
    if center.ndim != 1 or center.size == 0 or spread.shape != (center.size, center.size):
        raise ValueError(
            f"mean, covariance: shapes (n,) and (n, n) are needed, but they are {center.shape} and {spread.shape}."
        )
    low, high = checked_ends(lower, upper, center.size)
    rule = f"a mean lies strictly inside the domain, and {domain_rule(low, high)}"
    forbid("mean", center, (center <= low) | (center >= high), rule, "Check its sign and order.")
    own = np.diagonal(spread)
    forbid("diagonal of covariance", own, own <= 0, "variances are positive", "Drop that variable.")
    uneven = np.abs(spread - spread.T) > 1e-6 * np.sqrt(np.outer(own, own))
    forbid("covariance", spread, uneven, "it must be symmetric", "Fill the half that is missing.")
    beyond = np.abs(spread) > (1.0 + 1e-9) * np.sqrt(np.outer(own, own))
    forbid("covariance", spread, beyond, "|C_ij| <= sqrt(C_ii C_jj) is needed", "Are these correlations or squares?")
    if not rows > 0:
        raise ValueError(f"rows: a number > 0 is needed, or inf, but rows = {rows}.")
    return center, 0.5 * (spread + spread.T)


def moments(rows: Rows, edges: EdgeSet) -> Moments:
    """The moments of a table; batches of rows are merged, so that a long table needs no copy.

    >>> found = moments(Rows.checked([[1.0, 2.0], [3.0, 1.0]]), EdgeSet.complete(2))
    >>> found.mean, found.variance, found.covariance
    (array([2. , 1.5]), array([1.  , 0.25]), array([-0.5]))
    """
    parts = (_of_batch(batch, edges) for batch in rows.batches())
    return reduce(Moments.merged, parts)


def _of_batch(rows: Rows, edges: EdgeSet) -> Moments:
    mean = rows.average(rows.columns)
    apart = rows.columns - mean[:, None]
    weighted = apart * rows.shares
    if edges.is_complete:
        products = weighted @ apart.T
        return Moments(edges, rows.total, mean, products.diagonal().copy(), products[edges.i, edges.j], rows.site)
    variance = np.einsum("ik,ik->i", weighted, apart)
    # edge by edge in slices, so that no (edges, rows) array is built
    covariance = np.empty(edges.size)
    for start in range(0, edges.size, 256):
        part = slice(start, start + 256)
        covariance[part] = np.einsum("ek,ek->e", weighted[edges.i[part]], apart[edges.j[part]])
    return Moments(edges, rows.total, mean, variance, covariance, rows.site)

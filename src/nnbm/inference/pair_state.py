"""What pairwise expectation consistency is solved for: the edges of a model, and parameters of their pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.inference.problem import Point
from nnbm.site import Site

__all__ = ["Edges", "PairState"]


@dataclass(frozen=True)
class Edges:
    """The E pairs first < second that a coupling joins, and each variable's number of them, `degree` (n,)."""

    first: IntArray
    second: IntArray
    degree: IntArray

    @classmethod
    def of(cls, off: FloatArray) -> Edges:
        """Those of a coupling (n, n)."""
        first, second = np.nonzero(np.triu(off))
        return cls(first, second, np.bincount(np.concatenate([first, second]), minlength=len(off)))

    @cached_property
    def rows(self) -> IntArray:
        """(n + E,) the first factors of all products that are constrained, squares first."""
        return np.concatenate([np.arange(self.degree.size), self.first])

    @cached_property
    def columns(self) -> IntArray:
        """(n + E,) the second ones."""
        return np.concatenate([np.arange(self.degree.size), self.second])

    @cached_property
    def places(self) -> IntArray:
        """(E, 5) where a pair's m_i, m_j, s_i, s_j, c stand among all 2n + E moments."""
        n = self.degree.size
        own = 2 * n + np.arange(self.first.size)
        return np.stack([self.first, self.second, n + self.first, n + self.second, own], axis=1)


@dataclass(frozen=True)
class PairState:
    """m, s (n,); the pairs' l_i, l_j, r_i, r_j, k, rows of (5, E); the Gaussian's precision on its pattern (n + E,)."""

    mean: FloatArray
    variance: FloatArray
    natural: FloatArray
    precision: FloatArray

    @classmethod
    def from_vector(cls, y: FloatArray, n: int) -> PairState:
        """From m, ln s, natural parameters and precision in a row."""
        edges = (y.size - 3 * n) // 6
        end = 2 * n + 5 * edges
        with np.errstate(over="ignore"):
            variance = np.exp(y[n : 2 * n])
        return cls(y[:n], variance, y[2 * n : end].reshape(5, edges), y[end:])

    @classmethod
    def suggested(cls, point: Point, edges: Edges) -> PairState:
        """What a closure's solution lets expect: the variances of its sites, the correlations of its Gaussian G."""
        problem, m, s, l, r = point.problem, point.mean, point.variance, point.l, point.r
        i, j = edges.first, edges.second
        correlation = np.zeros(i.size)
        if point.gaussian is not None:
            inverse = point.gaussian.inverse()
            own = np.sqrt(np.diagonal(inverse))
            correlation = inverse[i, j] / (own[i] * own[j])
        rest = 1.0 - correlation * correlation
        k = -correlation / (rest * np.sqrt(s[i] * s[j]))
        more_i, more_j = correlation * correlation / (rest * s[i]), correlation * correlation / (rest * s[j])
        # as a normal pair of this correlation changes the precisions and the fields of two normal variables
        natural = np.stack([l[i] + more_i * m[i] + k * m[j], l[j] + more_j * m[j] + k * m[i], r[i] + more_i,
                            r[j] + more_j, k])  # fmt: skip
        return cls(m, s, natural, np.concatenate([problem.diagonal - r + 1.0 / s, problem.off[i, j]]))

    @property
    def vector(self) -> FloatArray:
        """(3n + 6E,)."""
        return np.concatenate([self.mean, np.log(self.variance), self.natural.ravel(), self.precision])

    def exists(self, site: Site, edges: Edges) -> bool:
        """Whether the means lie between their ends, and every pair's density has a norm."""
        n = self.mean.size
        parts = (self.mean, self.variance, self.natural, self.precision)
        if not all(np.isfinite(part).all() for part in parts) or not (self.variance > 0.0).all():
            return False
        low, high = (np.broadcast_to(end, n) for end in (site.lower, site.upper))
        if not ((low < self.mean) & (self.mean < high)).all():
            return False
        i, j = edges.first, edges.second
        low, high = np.isfinite(low), np.isfinite(high)
        open_ended = ~(low & high)
        _, _, r_i, r_j, k = self.natural
        if ((r_i <= 0.0) & open_ended[i]).any() or ((r_j <= 0.0) & open_ended[j]).any():
            return False
        # r_i x² + r_j y² + 2 k x y must grow outwards; with a wall each, competition (k > 0 if on one side) helps it
        inwards = 1.0 * low - high
        competes = inwards[i] * inwards[j] * k > 0.0
        return not (open_ended[i] & open_ended[j] & ~competes & (k * k >= r_i * r_j)).any()

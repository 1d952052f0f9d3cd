"""The negative entropy of single variables with given mean and variance, beyond where a site has them.

With m the distance from the only wall of a variable, sites have v < 2 m². Marginals of what competes strongly spread
further. There the entropy of given m and v has no maximum, but a supremum, the exponential's: a vanishing mass far off
makes up for what is missing of v. So A = -1 - ln m, which joins the sites' A with the same slope, and (13.1) holds on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.problem import Problem

__all__ = ["SiteEntropies"]

_FARTHEST = 1e150  # its square is a float
_WIDEST = 1.0 - 1e-12  # of the exponential's variance: a site closer to it is taken for one


@dataclass(frozen=True)
class SiteEntropies:
    """A (n,) at m, s, with l and r (n,); slopes by m and s (n, 2) and second derivatives (n, 2, 2).

    widest: (n,) the variance of the exponential, inf where there is not just one wall.
    """

    l: FloatArray
    r: FloatArray
    value: FloatArray
    slope: FloatArray
    curvature: FloatArray
    widest: FloatArray

    @classmethod
    def at(cls, problem: Problem, mean: FloatArray, variance: FloatArray) -> SiteEntropies:
        """From m, s (n,); raises NoSite between two ends where no density has these moments."""
        site, n = problem.site, mean.size
        low, high = np.isfinite(site.lower), np.isfinite(site.upper)
        inwards = np.broadcast_to(1.0 * low - high, n)  # 0 with two walls or none
        wall = np.where(low, site.lower, site.upper)
        distance = np.abs(np.where(inwards == 0.0, np.inf, mean - wall))
        widest = np.square(np.minimum(distance, _FARTHEST))
        beyond = variance > _WIDEST * widest
        l, r = site.from_mean_variance(mean, np.where(beyond, 0.5 * widest, variance))
        moments = site.moments(l, r)
        s, k3, k4 = moments.cumulants[1:4]
        determinant = s * k4 + 2.0 * s**3 - k3 * k3
        curvature = np.empty((n, 2, 2))
        curvature[:, 0, 0] = (k4 + 2.0 * s * s) / determinant - r
        curvature[:, 0, 1] = curvature[:, 1, 0] = -k3 / determinant
        curvature[:, 1, 1] = s / determinant
        value = l * mean - 0.5 * r * (variance + mean * mean) - moments.log_partition
        if beyond.any():
            l, r = np.where(beyond, -inwards / distance, l), np.where(beyond, 0.0, r)
            value[beyond] = -1.0 - np.log(distance[beyond])
            curvature[beyond] = 0.0
            curvature[beyond, 0, 0] = 1.0 / widest[beyond]
        return cls(l, r, value, np.stack([l - r * mean, -0.5 * r], axis=1), curvature, widest)

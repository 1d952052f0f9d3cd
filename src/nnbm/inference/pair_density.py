"""Two coupled variables: q(x, y) proportional to exp(l_x x + l_y y - r_x x²/2 - r_y y²/2 - k x y) between their ends.

What an exponential family needs of many such pairs at once: ln Z, means, (co)variances, and the covariance of its five
statistics, of which fourth moments are part. Given x, y is a site with field l_y - k x, whose ln Z1 and cumulants are
known; x is summed over Gauss-Legendre nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.site import Site

__all__ = ["STATISTICS", "PairMoments", "pair_moments", "pair_span", "span"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_FARTHEST = 1e150  # an end beyond it is none: its square is no float
_DROP = 45.0  # e-folds below the peak where a density ends
_POWERS = ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1))  # of the statistics x, y, -x²/2, -y²/2, -xy
STATISTICS = np.array([1.0, 1.0, -0.5, -0.5, -1.0])


@dataclass(frozen=True)
class PairMoments:
    """Of E pairs: ln Z (E,); <x>, <y>, Var x, Var y, Cov(x, y) as rows of `values` (5, E).

    covariance: (E, 5, 5) of x, y, -x²/2, -y²/2, -xy, all taken from the means.
    """

    log_partition: FloatArray
    values: FloatArray
    covariance: FloatArray


def span(l: FloatArray, r: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends (n,) beyond which a site (l, r) has no mass worth counting; r <= 0 needs two ends, or one and a slope."""
    curved = np.maximum(r, 0.0)
    peak = np.clip(l / np.where(r > 0.0, r, 1.0), lower, upper)
    one_ended = np.where(np.isfinite(lower), lower, upper)
    peak = np.where(r > 0.0, peak, one_ended)
    reaches = []
    for slope in (l - curved * peak, curved * peak - l):
        steep = np.where(r < 0.0, 0.0, np.maximum(slope, 0.0))
        with np.errstate(divide="ignore"):
            reaches.append(2.0 * _DROP / (steep + np.sqrt(steep * steep + 2.0 * curved * _DROP)))
    return np.maximum(lower, peak - reaches[0]), np.minimum(upper, peak + reaches[1])


def pair_span(
    natural: FloatArray, first: tuple[FloatArray, FloatArray], x: tuple[FloatArray, FloatArray],
    y: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Ends (E,) for the x of pairs: those of a site with its moments, `first`, or closer ones, from the ends x and y.

    ln q(x) rises from a wall a by no more than g (x - a) - r_x (x - a)²/2, g = l_x - r_x a - k y at the end of y that
    makes it largest. A site with the moments of two modes far apart would reach much further.
    """
    l_x, _, r_x, _, k = natural
    ends = []
    for wall, sign, (far, near), plain in ((x[0], 1.0, y, first[1]), (x[1], -1.0, y[::-1], first[0])):
        other = np.where(k == 0.0, 0.0, np.where(k > 0.0, far, near))
        bounded = (np.abs(wall) < _FARTHEST) & (np.abs(other) < _FARTHEST) & (r_x > 0.0)
        a, there, r = (np.where(bounded, value, 1.0) for value in (wall, other, r_x))
        g = sign * (l_x - r * a - k * there)
        root = np.sqrt(g * g + 2.0 * r * _DROP)
        reach = np.where(g > 0.0, (g + root) / r, 2.0 * _DROP / (root - np.minimum(g, 0.0)))
        own = np.where(bounded, a + sign * reach, sign * np.inf)
        ends.append(np.minimum(plain, own) if sign > 0.0 else np.maximum(plain, own))
    return ends[1], ends[0]


def pair_moments(natural: FloatArray, ends: tuple[FloatArray, FloatArray], second: Site) -> PairMoments:
    """From l_x, l_y, r_x, r_y, k as rows (5, E), the `ends` of x, (E,) each, and the sites of the E y's."""
    l_x, l_y, r_x, r_y, k = natural
    half = 0.5 * (ends[1] - ends[0])
    x = ends[0] + half * (1.0 + _NODES[:, None])
    given = second.moments(l_y - k * x, r_y)
    exponent = (l_x - 0.5 * r_x * x) * x + given.log_partition
    top = exponent.max(axis=0)
    mass = np.exp(exponent - top) * _WEIGHTS[:, None]
    total = mass.sum(axis=0)
    mass /= total
    mean_x, mean_y = (mass * x).sum(axis=0), (mass * given.mean).sum(axis=0)
    dx, dy = x - mean_x, given.mean - mean_y
    s, k3, k4 = given.cumulants[1:4]
    square = dy * dy
    of_y = np.stack([np.ones_like(dy), dy, s + square, k3 + (3.0 * s + square) * dy,
                     k4 + 4.0 * dy * k3 + 3.0 * s * s + (6.0 * s + square) * square])  # fmt: skip
    weighted = np.empty((5, *mass.shape))
    weighted[0] = mass
    for power in range(1, 5):
        weighted[power] = weighted[power - 1] * dx
    moments = np.einsum("ake,bke->abe", weighted, of_y)
    values = np.stack([mean_x, mean_y, moments[2, 0], moments[0, 2], moments[1, 1]])
    return PairMoments(top + np.log(total * half), values, _covariance(moments))


def _covariance(moments: FloatArray) -> FloatArray:
    """(E, 5, 5) from central moments (5, 5, E) by the powers of x and y."""
    found = np.empty((moments.shape[2], 5, 5))
    for a, (i, j) in enumerate(_POWERS):
        for b, (k, m) in enumerate(_POWERS):
            found[:, a, b] = STATISTICS[a] * STATISTICS[b] * (moments[i + k, j + m] - moments[i, j] * moments[k, m])
    return found

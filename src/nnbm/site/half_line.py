"""One variable on the half line: `HalfLine`, over its statistics and their inverse."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, IntArray, as_floats, broadcast, forbid
from nnbm.site.checks import SPREAD, is_curvature, is_plain, refusal, require_floats
from nnbm.site.half_line_inverse import fill_from_second, fill_from_variance
from nnbm.site.half_line_statistics import fill_higher, fill_lean, fill_statistics
from nnbm.site.moments import SiteMoments

__all__ = ["HALF_LINE", "HalfLine"]


class HalfLine:
    """The site on x >= 0.

    >>> import numpy as np
    >>> site = HalfLine()
    >>> found = site.moments([0.0, -1e4], 1.0)
    >>> np.round(found.mean, 8)
    array([7.9788456e-01, 1.0000000e-04])
    >>> l, r = site.from_moments(found.mean, found.second_moment)
    >>> np.allclose(r, 1.0)
    True
    """

    lower = 0.0
    upper = math.inf

    def of(self, members: int | IntArray) -> Self:  # noqa: ARG002
        """The site of one variable, or of some: all alike."""
        return self

    def moments(self, l: ArrayLike, r: ArrayLike) -> SiteMoments:
        """Ln Z1 and cumulants of q(x; l, r) on x >= 0 for every l and r > 0, broadcast against each other.

        EQ 2. Relative error below 1e-12 for l/sqrt r from -1e8 to 1e8 (`tests/site/test_half_line.py`). Where l/r, the
        mean of a narrow normal, is not a float, this is refused; what else leaves the floats is inf or 0 (see
        `statistics`).
        """
        if not (is_plain(l) and is_plain(r) and l.shape[l.ndim - r.ndim :] == r.shape):
            l, r = (np.asarray(value, order="C") for value in _checked(l, r))
        out = np.empty((7, *l.shape))
        if not fill_statistics(l.reshape(-1), r.reshape(-1), out.reshape(7, -1)):
            _checked(l, r)  # the kernel looks at what it reads anyway; this finds the words
        return SiteMoments(out[0], out[1:])

    def largest_variance(self, low: FloatArray, high: FloatArray, r: FloatArray) -> FloatArray:  # noqa: ARG002
        """(n,) the variance at `high`: on x >= 0 it grows with l, from an exponential's to a normal's."""
        return self.moments(high, r).variance

    def higher_cumulants(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2, n): the seventh and the eighth in units of the standard deviation, to 1e-11 of their scale."""
        out = np.empty((2, l.size))
        fill_higher(l, r, out)
        return out

    def conditionals(self, l: FloatArray, r: float) -> FloatArray:
        """(5, rows): ln Z1 and the first four cumulants at l (rows,), one r > 0: for estimators, where time counts.

        ln Z1 and means to 1e-13, variance, third and fourth cumulant to 1e-12, 1e-10 and 1e-9 at worst (z = -8).
        """
        out = np.empty((5, l.size))
        fill_lean(l, r, out)
        return out

    def from_moments(self, mean: ArrayLike, second_moment: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and second moment v; they exist iff m² < v < 2 m² (EQ 2)."""
        m, v = broadcast(mean=as_floats("mean", mean), second_moment=as_floats("second_moment", second_moment))
        l, r = np.empty(m.shape), np.empty(m.shape)
        fill_from_second(np.ravel(m), np.ravel(v), l.reshape(-1), r.reshape(-1))
        wrong = np.isnan(l)
        if wrong.any():
            rule = "a variable on x >= 0 needs mean > 0 and mean² < second_moment < 2 mean²"
            raise refusal("second_moment", m, v, wrong, rule, SPREAD)
        require_floats("second_moment", m, v, ~is_curvature(r) | ~np.isfinite(l))
        return l, r

    def from_mean_variance(self, mean: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and variance s; they exist iff 0 < s < m² (EQ 2)."""
        m, s = broadcast(mean=as_floats("mean", mean), variance=as_floats("variance", variance))
        l, r = np.empty(m.shape), np.empty(m.shape)
        fill_from_variance(np.ravel(m), np.ravel(s), l.reshape(-1), r.reshape(-1))
        wrong = np.isnan(l)
        if wrong.any():
            rule = "a variable on x >= 0 needs mean > 0 and 0 < variance < mean²"
            raise refusal("variance", m, s, wrong, rule, SPREAD)
        require_floats("variance", m, s, ~is_curvature(r) | ~np.isfinite(l))
        return l, r


def _checked(l: ArrayLike, r: ArrayLike) -> tuple[FloatArray, ...]:
    """l and r of one shape, or an error that names the first value which no site has."""
    slope, curvature = broadcast(l=as_floats("l", l), r=as_floats("r", r))
    forbid("r", curvature, curvature <= 0, "r must be positive", "Without it the density has no norm.")
    with np.errstate(over="ignore", under="ignore"):
        forbid("l", slope, slope / curvature == np.inf, "l/r must be a float", "Measure x in a larger unit.")
    return slope, curvature


HALF_LINE = HalfLine()

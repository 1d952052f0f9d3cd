"""One variable between its own two ends: `Box`, over the kernels for half lines, intervals and the whole line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, IntArray, as_floats, as_reals, broadcast, first_place, forbid
from nnbm.site.box_statistics import fill_from_second, fill_from_variance, fill_higher, fill_statistics, find_refused
from nnbm.site.checks import SPREAD, is_curvature, is_plain, refusal, require_floats
from nnbm.site.half_line import HALF_LINE
from nnbm.site.moments import Site, SiteMoments

__all__ = ["Box", "site_between"]


@dataclass(frozen=True, eq=False, init=False)
class Box:
    """The site on lower <= x <= upper, one pair of ends a variable (n,) or one for all; either may be infinite.

    l and r are arrays whose last axis are the n variables. Between two finite ends r may have any sign: below 0 the
    density has its mass at the ends. Where an end is infinite r has to be positive. Ends far from 0 in units of the
    standard deviation cost l its digits: move the origin.

    >>> import numpy as np
    >>> site = Box([0.0, -1.0, -np.inf], [np.inf, 1.0, np.inf])
    >>> found = site.moments([0.0, 0.5, 3.0], [1.0, -1.0, 2.0])
    >>> np.round(found.mean, 4), np.round(found.variance, 4)
    (array([0.7979, 0.186 , 1.5   ]), array([0.3634, 0.3568, 0.5   ]))
    >>> l, r = site.from_mean_variance(found.mean, found.variance)
    >>> np.allclose(r, [1.0, -1.0, 2.0])
    True
    """

    lower: FloatArray
    upper: FloatArray

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        ends = broadcast(lower=as_reals("lower", lower), upper=as_reals("upper", upper))
        for name, end in zip(("lower", "upper"), ends, strict=True):
            forbid(name, end, np.isnan(end), "an end is a number or infinite", "Leave a side open with -inf or inf.")
            if end.ndim > 1:
                raise ValueError(f"{name}: one number or one per variable is needed, but its shape is {end.shape}.")
            kept = np.array(end)
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)
        self._require_room()

    def _require_room(self) -> None:
        """Refuse ends without a float's distance between them."""
        with np.errstate(over="ignore", invalid="ignore"):
            width = self.upper - self.lower
        finite = np.isfinite(self.lower) & np.isfinite(self.upper)
        bad = ~(self.lower < self.upper) | (finite & np.isinf(width))
        if bad.any():
            place = first_place(bad)
            where = f"[{place[0]}]" if place else ""
            raise ValueError(
                f"lower, upper: lower < upper is needed, a float apart or infinite, but lower{where} = "
                f"{self.lower[place]} and upper{where} = {self.upper[place]}. Swap them, or leave out what cannot vary."
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def __hash__(self) -> int:
        return hash(((self.lower + 0.0).tobytes(), (self.upper + 0.0).tobytes()))  # -0.0 == 0.0, but not their bytes

    def of(self, members: int | IntArray | slice) -> Self:
        """The site of one variable, or of some of the n."""
        return type(self)(self.lower[members], self.upper[members]) if self.lower.ndim else self

    def moments(self, l: ArrayLike, r: ArrayLike) -> SiteMoments:
        """Ln Z1 and cumulants of q(x; l, r) for every l and r, broadcast against each other and the ends (EQ 2).

        k_n to 1e-12 of the n-th absolute central moment, but for the rounding of the mean and of l - r lower. Half
        lines that begin at 0 are `HalfLine`, bit by bit. What is not a float is refused or inf or 0, as there.
        """
        if not (is_plain(l) and is_plain(r) and _ends(l, r.shape) and _ends(l, self.lower.shape)):
            l, r = (np.asarray(value, order="C") for value in self.checked(l, r))
        out = np.empty((7, *l.shape))
        flat = out.reshape(7, -1)
        if not fill_statistics(l.reshape(-1), r.reshape(-1), self.lower.reshape(-1), self.upper.reshape(-1), flat):
            self.checked(l, r)  # the kernel looks at what it reads anyway; this finds the words
        return SiteMoments(out[0], out[1:])

    def largest_variance(self, low: FloatArray, high: FloatArray, r: FloatArray) -> FloatArray:
        """(n,) the largest variance for l from `low` to `high`.

        It is the one nearest to the l that centres the density: about it the third cumulant, the variance's slope, is
        positive below and negative above (the GHS inequality; Ellis, Monroe & Newman, Comm. Math. Phys. 46, 1976).
        """
        open_below, open_above = np.isneginf(self.lower), np.isposinf(self.upper)
        middle = 0.5 * (np.where(open_below, 0.0, self.lower) + np.where(open_above, 0.0, self.upper))
        centre = np.where(open_below == open_above, r * middle, np.where(open_above, np.inf, -np.inf))
        # on the whole line every l has the same
        best = np.clip(np.where(open_below & open_above, 0.0, centre), low, high)
        no_wall = np.isinf(best)
        variance = self.moments(np.where(no_wall, 0.0, best), r).variance
        return np.where(no_wall, 1.0 / np.where(no_wall, r, 1.0), variance)

    def higher_cumulants(self, l: FloatArray, r: FloatArray) -> FloatArray:
        """(2, n): the seventh and the eighth in units of the standard deviation, to 1e-11 of their scale."""
        out = np.empty((2, l.size))
        fill_higher(l, r, self.lower.reshape(-1), self.upper.reshape(-1), out)
        return out

    def conditionals(self, l: FloatArray, r: float) -> FloatArray:
        """Of one variable (5, rows): ln Z1 and the first four cumulants at l (rows,) for one r, soon on half lines."""
        if self.lower.size != 1:
            raise ValueError(f"conditionals: of one variable, but there are {self.lower.size}. Take box.of(variable).")
        lower, upper = float(self.lower.item()), float(self.upper.item())
        below, above = np.isfinite(lower), np.isfinite(upper)
        if below == above:
            return np.concatenate([(found := self.moments(l, r)).log_partition[None], found.cumulants[:4]])
        wall, sign = (lower, 1.0) if below else (upper, -1.0)
        out = HALF_LINE.conditionals(sign * (l - r * wall), r)
        out[0] += wall * (l - 0.5 * r * wall)
        out[1] = wall + sign * out[1]
        out[3] *= sign
        return out

    def from_moments(self, mean: ArrayLike, second_moment: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and second moment v: `from_mean_variance` for s = v - m², rounded once."""
        return self._natural("second_moment", mean, second_moment, fill_from_second)

    def from_mean_variance(self, mean: ArrayLike, variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The (l, r) with this mean m and variance s.

        They exist iff lower < m < upper and 0 < s < (m - lower)(upper - m), the variance of two points, where both
        ends are finite; 0 < s < (m - wall)² where one is; 0 < s where none is. Their moments are those asked for to
        1e-10, but for the rounding of l and r: near two points their weights follow from l - r (lower + upper)/2.
        """
        return self._natural("variance", mean, variance, fill_from_variance)

    def _natural(
        self, other: str, mean: ArrayLike, value: ArrayLike, fill: Callable[..., None]
    ) -> tuple[FloatArray, FloatArray]:
        """What `fill` finds from mean and `other` value, or refusals."""
        named = {"mean": as_floats("mean", mean), other: as_floats(other, value)}
        m, v, _ = broadcast(**named, lower=self.lower)
        l, r = np.empty(m.shape), np.empty(m.shape)
        ends = self.lower.reshape(-1), self.upper.reshape(-1)
        fill(np.ravel(m), np.ravel(v), *ends, l.reshape(-1), r.reshape(-1))
        wrong = np.isnan(r)
        if wrong.any():
            rule, remedy = self._rule(int(np.flatnonzero(wrong)[0]))
            raise refusal(other, m, v, wrong, rule, remedy)
        bounded = np.isfinite(self.lower) & np.isfinite(self.upper)
        require_floats(other, m, v, ~np.isfinite(l) | ~np.where(bounded, np.isfinite(r), is_curvature(r)))
        return l, r

    def _rule(self, place: int) -> tuple[str, str]:
        """What the moments of the variable at this (flat) place have to satisfy, and the remedy."""
        a, b = (float(end.reshape(-1)[place % end.size]) for end in (self.lower, self.upper))
        if np.isinf(a) and np.isinf(b):
            return "an unbounded variable needs variance > 0", "Drop it if it is constant."
        if np.isinf(b):
            return f"a variable on x >= {a:g} needs mean > {a:g} and 0 < variance < (mean - {a:g})²", SPREAD
        if np.isinf(a):
            return f"a variable on x <= {b:g} needs mean < {b:g} and 0 < variance < ({b:g} - mean)²", SPREAD
        needs = f"a variable on {a:g} <= x <= {b:g} needs a mean between them and 0 < variance < "
        return (
            f"{needs}(mean - {a:g})({b:g} - mean)",
            "Two points at the ends have the most variance.",
        )

    def checked(self, l: ArrayLike, r: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """l and r of one shape, or an error that names the first value which no site has."""
        slope, curvature, lower, upper = broadcast(
            l=as_floats("l", l), r=as_floats("r", r), lower=self.lower, upper=self.upper
        )
        unbounded = np.isinf(lower) | np.isinf(upper)
        remedy = "Without it the density has no norm; only between two finite ends any sign will do."
        forbid("r", curvature, unbounded & (curvature <= 0), "r must be positive", remedy)
        lost = np.empty(slope.shape, np.bool_)
        find_refused(slope.ravel(), curvature.ravel(), lower.ravel(), upper.ravel(), lost.reshape(-1))
        forbid("l", slope, lost & unbounded, "l/r must be a float", "Measure x in a larger unit.")
        forbid("l", slope, lost, "l width and r width² must be floats", "Measure x in another unit.")
        return slope, curvature


def _ends(array: FloatArray, shape: tuple[int, ...]) -> bool:
    """Whether the last axes of `array` have this shape."""
    return array.shape[array.ndim - len(shape) :] == shape


def site_between(lower: ArrayLike, upper: ArrayLike) -> Site:
    """The site of variables with these ends: HALF_LINE itself where all of them live on x >= 0.

    >>> site_between(0.0, np.inf) is HALF_LINE, site_between(0.0, [1.0, np.inf]) is HALF_LINE
    (True, False)
    """
    if (np.asarray(lower) == 0.0).all() and (np.asarray(upper) == np.inf).all():
        return HALF_LINE
    return Box(lower, upper)

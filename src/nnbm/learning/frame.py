"""The coordinates in which estimators see a table: a = (x - centre) / scale, so that its units do not matter.

Around the means no digit is lost where a mean is many standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.site import Site, site_between

__all__ = ["Frame", "wall_distance"]


@dataclass(frozen=True, eq=False)
class Frame:
    """centre, scale: (n,) each."""

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of_scale(cls, scale: FloatArray) -> Frame:
        """Other units, the same zero."""
        return cls(np.zeros_like(scale), scale)

    @property
    def offset(self) -> FloatArray:
        """(n,) the centre in units of the scale."""
        return self.centre / self.scale

    def points(self, columns: FloatArray) -> FloatArray:
        """Values (n, rows) as this frame sees them."""
        return (columns - self.centre[:, None]) / self.scale[:, None]

    def site(self, site: Site) -> Site:
        """The variables' domain as this frame sees it."""
        lower, upper = (np.broadcast_to(end, self.centre.shape) for end in (site.lower, site.upper))
        with np.errstate(over="ignore"):  # beyond the floats there is no end
            return site_between((lower - self.centre) / self.scale, (upper - self.centre) / self.scale)


def wall_distance(values: FloatArray, lower: float, upper: float) -> tuple[FloatArray, FloatArray]:
    """How far one variable's values are from its walls, (x - lower)(upper - x) / (upper - lower), and its slope.

    Of a single wall it is the plain distance; without walls inf, of slope 0.

    >>> wall_distance(np.array([1.0, 2.0]), 0.0, 4.0)
    (array([0.75, 1.  ]), array([0.5, 0. ]))
    """
    if np.isinf(lower) and np.isinf(upper):
        return np.full_like(values, np.inf), np.zeros_like(values)
    if np.isinf(upper):
        return values - lower, np.ones_like(values)
    if np.isinf(lower):
        return upper - values, np.full_like(values, -1.0)
    width = upper - lower
    return (values - lower) * ((upper - values) / width), (lower + upper - 2.0 * values) / width

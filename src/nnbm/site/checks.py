"""What every site does with its input: take it as it is where a kernel may, and refuse moments that no site has."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.errors import NoSite

__all__ = ["SPREAD", "is_curvature", "is_plain", "refusal", "require_floats"]

SPREAD = "More spread than an exponential's means several modes: use a method that needs no site moments."


def is_plain(value: object) -> TypeGuard[FloatArray]:
    """Whether a kernel may have it as it is: an array of floats in one piece."""
    return type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous


def refusal(other: str, mean: FloatArray, value: FloatArray, bad: NDArray[np.bool_], rule: str, remedy: str) -> NoSite:
    """NoSite with every (flat) place of `bad`; it tells the first one's mean and `other` value."""
    places = np.flatnonzero(bad)
    k = int(places[0])
    return NoSite(
        f"mean, {other}: {rule}, but place {', '.join(map(str, places[:5]))}{', ...' if places.size > 5 else ''} "
        f"({places.size} of {mean.size}) breaks it: at {k} the mean is {np.ravel(mean)[k]:.6g} and the {other} "
        f"{np.ravel(value)[k]:.6g}. {remedy}",
        places,
    )


def is_curvature(r: FloatArray) -> NDArray[np.bool_]:
    """Where r is positive, finite, and has not lost digits to underflow."""
    return np.isfinite(r) & (r >= np.finfo(np.float64).tiny)


def require_floats(other: str, mean: FloatArray, value: FloatArray, lost: NDArray[np.bool_]) -> None:
    """Refuse moments whose l or r is `lost` beyond the floats."""
    if lost.any():
        raise refusal(
            other, mean, value, lost, "l and r of these moments must be floats", "Measure x in another unit, near 1."
        )

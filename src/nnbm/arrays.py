"""Array types, and the one place where input becomes a float64 array or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FloatArray", "IntArray", "as_floats", "first_place", "forbid"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def first_place(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first True of `bad`, row by row."""
    return tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))


def forbid(name: str, values: FloatArray, bad: NDArray[np.bool_], rule: str, remedy: str) -> None:
    """Raise a ValueError about the first place where `bad` holds; nothing happens if there is none."""
    if not bad.any():
        return
    place = first_place(bad)
    where = f"{name}[{', '.join(map(str, place))}]" if place else name
    others = int(bad.sum()) - 1
    more = f" (and {others} more)" if others else ""
    raise ValueError(f"{name}: {rule}, but {where} = {values[place]!s}{more}. {remedy}")


def as_floats(name: str, value: ArrayLike | Any) -> FloatArray:
    """`value` as a finite float64 array (no copy where it is one), or an error naming place and value."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name}: real numbers are needed, but its dtype is {array.dtype}. "
            + (
                "Drop the imaginary part if it is zero (array.real)."
                if array.dtype.kind == "c"
                else "Convert it first, e.g. array.astype(float), and look at what does not convert."
            )
        )
    floats = array.astype(np.float64, copy=False)
    forbid(name, floats, ~np.isfinite(floats), "every value must be finite", "Drop or repair that entry.")
    return floats

"""Values out of a file, seen to be what they should before anything is built of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray, as_whole
from nnbm.ends import checked_ends
from nnbm.site import HALF_LINE, Site

__all__ = ["ENDS", "counted", "ends_of", "labels", "of_kind", "stored_ends"]

ENDS = frozenset({"lower", "upper"})


def ends_of(site: Site, n: int) -> dict[str, FloatArray]:
    """The arrays that tell where n variables live; none for x >= 0."""
    if site is HALF_LINE:
        return {}
    return {"lower": np.array(np.broadcast_to(site.lower, n)), "upper": np.array(np.broadcast_to(site.upper, n))}


def stored_ends(parts: Mapping[str, NDArray[Any]], n: int) -> tuple[FloatArray, FloatArray]:
    """Lower and upper (n,) from a file's arrays; x >= 0 where there are none."""
    return checked_ends(parts.get("lower", np.asarray(0.0)), parts.get("upper", np.asarray(np.inf)), n)


def labels(names: NDArray[Any]) -> tuple[str, ...]:
    """A row of strings."""
    if names.dtype.kind != "U" or names.ndim != 1:
        raise ValueError(f"names: a row of strings is needed; it is {names.dtype} of shape {names.shape}.")
    return tuple(str(name) for name in names)


def of_kind(kind: str, name: str, value: Any) -> Any:
    """One value of NumPy's kind."""
    if np.ndim(value) != 0 or np.asarray(value).dtype.kind != kind:
        raise ValueError(f"{name}: one value of NumPy's kind {kind!r} is needed, but {name} = {value!r}.")
    return value


def counted(name: str, value: Any, least: int) -> int:
    """A whole number, at least `least`."""
    number = as_whole(name, value)
    if number < least:
        raise ValueError(f"{name}: at least {least} is needed, but {name} = {number}.")
    return number

"""Values out of a file, seen to be what they should before anything is built of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import as_whole

__all__ = ["counted", "labels", "of_kind"]


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

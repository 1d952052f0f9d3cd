"""Memory of a chain's own: two chains' states in one cache line slow each other's threads down."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["apart"]

_CACHE_LINE = 16  # numbers of 8 bytes; two lines, since hardware fetches them in pairs


def apart(rows: NDArray[Any]) -> list[NDArray[Any]]:
    """A copy of each row (count, ...), no two in one cache line: threads that share a line slow each other down."""
    flat = rows.reshape(rows.shape[0], -1)
    padded = np.empty((flat.shape[0], flat.shape[1] + _CACHE_LINE), rows.dtype)[:, : flat.shape[1]]
    padded[:] = flat
    return [row.reshape(rows.shape[1:]) for row in padded]

"""The one decorator of every numba kernel: compiled on first use, cached on disk wherever there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

__all__ = ["kernel"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(**options: Any) -> Callable[[_Function], _Function]:
    """Numba's njit with the GIL released and a cache on disk; without the cache where none can be written.

    numba refuses to define a cached function where neither the package, nor the user's cache folder, nor
    NUMBA_CACHE_DIR can be written (a read-only container): then every process compiles for itself.
    """

    def compiled(function: _Function) -> _Function:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            return njit(nogil=True, **options)(function)

    return compiled

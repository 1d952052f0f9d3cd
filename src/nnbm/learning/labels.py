"""How messages call a variable: by its name where it has one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

__all__ = ["label", "listed"]

_MOST_LISTED = 6


def label(names: Sequence[str] | None, k: int) -> str:
    """'name', or column k.

    >>> label(["a", "b"], 1), label(None, 1)
    ("'b'", 'column 1')
    """
    return repr(str(names[k])) if names is not None and len(names) else f"column {k}"


def listed(names: Sequence[str] | None, places: Iterable[int]) -> str:
    """The first few of them.

    >>> listed(None, range(8))
    'column 0, column 1, column 2, column 3, column 4, column 5 and 2 more'
    """
    places = list(places)
    shown = ", ".join(label(names, int(k)) for k in islice(places, _MOST_LISTED))
    return shown if len(places) <= _MOST_LISTED else f"{shown} and {len(places) - _MOST_LISTED} more"

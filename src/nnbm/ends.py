"""The ends between which variables live, and the one place where values are held against them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbm.arrays import FloatArray, as_floats, as_reals, forbid

_NARROWEST = 1e-150  # its square, and 1 over that, are floats

__all__ = ["beyond", "checked_ends", "checked_points", "domain_rule"]


def checked_ends(
    lower: ArrayLike, upper: ArrayLike, n: int, names: Sequence[str] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Lower < upper of n variables, read-only (n,) each, infinite where there is no end; or an error.

    names: of the variables; labelled ends (pandas) must have the same, in the same order.

    >>> checked_ends(0.0, [1.0, np.inf], 2)
    (array([0., 0.]), array([ 1., inf]))
    """
    low, high = _per_variable("lower", lower, n, names), _per_variable("upper", upper, n, names)
    forbid("lower", low, np.isnan(low) | np.isposinf(low), "a number, or -inf for none, is needed", "Repair it.")
    forbid("upper", high, np.isnan(high) | np.isneginf(high), "a number, or inf for none, is needed", "Repair it.")
    forbid("upper", high, high <= low, "it must lie above lower", "Swap them, or drop a variable that cannot vary.")
    with np.errstate(over="ignore"):
        width = high - low
    wide = np.isfinite(low) & np.isfinite(high) & np.isinf(width)
    forbid("upper", high, wide, "upper - lower must be a float", "Measure x in a larger unit.")
    rule = f"upper - lower must be {_NARROWEST:g} at least"
    forbid("upper", high, width < _NARROWEST, rule, "Measure x in a smaller unit.")
    return low, high


def _per_variable(name: str, value: ArrayLike, n: int, names: Sequence[str] | None) -> FloatArray:
    _require_labels(name, value, names)
    given = as_reals(name, value)
    if given.shape not in ((), (n,)):
        raise ValueError(f"{name}: one number, or one per variable ({n}), is needed; its shape is {given.shape}.")
    found = np.array(np.broadcast_to(given, (n,)))
    found.flags.writeable = False
    return found


def _require_labels(name: str, value: object, names: Sequence[str] | None) -> None:
    """Refuse ends that are labelled (pandas, known by what they offer) otherwise than the variables."""
    index = getattr(value, "index", None)
    if not names or index is None or callable(index):  # a list has a method of this name
        return
    labels = list(index)
    if all(isinstance(label, str) for label in labels) and labels != list(names):
        raise ValueError(
            f"{name}: its labels must be those of the variables, in the same order, but they differ. "
            f"Reorder it, e.g. {name}.loc[names]."
        )


def beyond(points: FloatArray, lower: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
    """Where points (..., n) lie outside."""
    return (points < lower) | (points > upper)


def domain_rule(lower: FloatArray, upper: FloatArray) -> str:
    """Where the model lives, in words: for the error about a value that lies elsewhere."""
    if (lower == lower[0]).all() and (upper == upper[0]).all():
        low, high = float(lower[0]), float(upper[0])
        if np.isinf(high):
            return f"the model lives on x >= {low:g}"
        return f"the model lives on x <= {high:g}" if np.isinf(low) else f"the model lives on {low:g} <= x <= {high:g}"
    return "the model lives between `lower` and `upper` of each variable"


def checked_points(name: str, points: ArrayLike, lower: FloatArray, upper: FloatArray, remedy: str) -> FloatArray:
    """Points (..., n) as finite floats between the ends, or an error that names the first that is not."""
    x = as_floats(name, points)
    forbid(name, x, beyond(x, lower, upper), domain_rule(lower, upper), remedy)
    return x

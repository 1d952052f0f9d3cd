"""The ends between which variables live, and the one place where values are held against them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnbm.arrays import FloatArray, as_floats, as_reals, forbid

__all__ = ["beyond", "checked_ends", "checked_points", "domain_rule"]


def checked_ends(lower: ArrayLike, upper: ArrayLike, n: int) -> tuple[FloatArray, FloatArray]:
    """Lower < upper of n variables, read-only (n,) each, infinite where there is no end; or an error.

    >>> checked_ends(0.0, [1.0, np.inf], 2)
    (array([0., 0.]), array([ 1., inf]))
    """
    low, high = _per_variable("lower", lower, n), _per_variable("upper", upper, n)
    forbid("lower", low, np.isnan(low) | np.isposinf(low), "a number, or -inf for none, is needed", "Repair it.")
    forbid("upper", high, np.isnan(high) | np.isneginf(high), "a number, or inf for none, is needed", "Repair it.")
    forbid("upper", high, high <= low, "it must lie above lower", "Swap them, or drop a variable that cannot vary.")
    with np.errstate(over="ignore"):
        wide = np.isfinite(low) & np.isfinite(high) & np.isinf(high - low)
    forbid("upper", high, wide, "upper - lower must be a float", "Measure x in a larger unit.")
    return low, high


def _per_variable(name: str, value: ArrayLike, n: int) -> FloatArray:
    given = as_reals(name, value)
    if given.shape not in ((), (n,)):
        raise ValueError(f"{name}: one number, or one per variable ({n}), is needed; its shape is {given.shape}.")
    found = np.array(np.broadcast_to(given, (n,)))
    found.flags.writeable = False
    return found


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

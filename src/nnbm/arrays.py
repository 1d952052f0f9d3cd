"""Array types, and the one place where input becomes float64 numbers or a clear error."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

__all__ = [
    "FloatArray",
    "IntArray",
    "as_floats",
    "as_reals",
    "as_sparse_floats",
    "as_whole",
    "broadcast",
    "first_place",
    "forbid",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FINITE, _REPAIR = "every value must be finite", "Drop or repair that entry."


def first_place(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first True of `bad`, row by row."""
    return tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))


def forbid(name: str, values: FloatArray, bad: NDArray[np.bool_], rule: str, remedy: str) -> None:
    """Raise a ValueError about the first place where `bad` holds; nothing happens if there is none."""
    if not bad.any():
        return
    place = first_place(bad)
    raise _complaint(name, place, values[place], int(bad.sum()) - 1, rule, remedy)


def _complaint(name: str, place: tuple[int, ...], value: float, others: int, rule: str, remedy: str) -> ValueError:
    where = f"{name}[{', '.join(map(str, place))}]" if place else name
    more = f" (and {others} more)" if others else ""
    return ValueError(f"{name}: {rule}, but {where} = {value!s}{more}. {remedy}")


def as_reals(name: str, value: ArrayLike | Any) -> FloatArray:
    """`value` as a float64 array (no copy where it is one), finite or not, or an error naming the argument."""
    if np.ma.is_masked(value):
        raise TypeError(
            f"{name}: masked entries have no value here. Fill them (array.filled(...)) or drop them "
            "(array.compressed())."
        )
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: an array is needed, with rows of one length, but {error}") from error
    _require_real(name, array.dtype)
    return array.astype(np.float64, copy=False)


def as_floats(name: str, value: ArrayLike | Any) -> FloatArray:
    """`value` as a finite float64 array (no copy where it is one), or an error naming place and value."""
    floats = as_reals(name, value)
    forbid(name, floats, ~np.isfinite(floats), _FINITE, _REPAIR)
    return floats


def as_sparse_floats(name: str, matrix: Any) -> sparse.csr_array:
    """A scipy.sparse matrix of any kind as a sound, finite float64 CSR copy without duplicates, or an error.

    Structure and numbers are checked before SciPy's compiled code works on them: it trusts indices, and sums
    duplicates in the matrix's own type.
    """
    _require_real(name, matrix.dtype)
    _require_sound(name, matrix)
    found = sparse.csr_array(matrix.astype(np.float64))
    found.sum_duplicates()
    bad = ~np.isfinite(found.data)
    if bad.any():
        entry = int(np.argmax(bad))
        place = (int(np.searchsorted(found.indptr, entry, side="right")) - 1, int(found.indices[entry]))
        raise _complaint(name, place, found.data[entry], int(bad.sum()) - 1, _FINITE, _REPAIR)
    return found


def as_whole(name: str, value: Any) -> int:
    """`value` as a Python int: Python's and NumPy's whole numbers, but neither floats nor strings nor booleans."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}: a whole number is needed, but {name} = {value!r}. Convert it first, e.g. int(...).")


def broadcast(**named: FloatArray) -> tuple[FloatArray, ...]:
    """The arrays at their common shape, or an error that names them."""
    try:
        return tuple(np.broadcast_arrays(*named.values()))
    except ValueError as error:
        shapes = " and ".join(str(array.shape) for array in named.values())
        raise ValueError(
            f"{', '.join(named)}: their shapes must broadcast, but they are {shapes}. Give one number or equal shapes."
        ) from error


def _require_real(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind in "biuf":
        return
    raise TypeError(
        f"{name}: real numbers are needed, but its dtype is {dtype}. "
        + (
            "Drop the imaginary part if it is zero (array.real)."
            if dtype.kind == "c"
            else "Convert it first, e.g. array.astype(float), and look at what does not convert."
        )
    )


def _require_sound(name: str, matrix: Any) -> None:
    """Refuse a sparse matrix whose indices lead out of it: compiled code would follow them."""
    try:
        if matrix.format == "coo":
            type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
        elif hasattr(matrix, "check_format"):
            # on a second object over the same arrays, because the check may trim the one it is given
            parts = (matrix.data, matrix.indices, matrix.indptr)
            type(matrix)(parts, shape=matrix.shape).check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{name}: this {matrix.format} matrix is broken: {error}. Rebuild it from its entries, "
            "e.g. scipy.sparse.coo_array((values, (i, j)), shape=(n, n))."
        ) from error

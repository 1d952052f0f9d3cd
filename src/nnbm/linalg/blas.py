"""Matrix products for kernels: SciPy's BLAS by its address, so that numba can call it and still cache the caller."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import binding
from numba import types
from scipy.linalg import cython_blas

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import IndexArray

__all__ = ["PLAN", "combine", "subtract_product"]

PLAN = 8  # how many numbers subtract_product writes down for BLAS

_FAST = {"contract"}  # fused multiply-add, nothing else


def _address(name: str) -> int:
    """Where SciPy's BLAS function of this name lies."""
    capsule = cython_blas.__pyx_capi__[name]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer_of(capsule, name_of(capsule)))


_NOTHING: Any = types.void  # typed as if it could not be called
# a symbol of our own, which a cached kernel finds again in another process
binding.add_symbol("nnbm_dgemm", _address("dgemm"))
_dgemm: Any = types.ExternalFunction("nnbm_dgemm", _NOTHING(*[types.uintp] * 13))


@kernel()
def subtract_product(
    into: FloatArray, at: int, lead: int, rows: int, cols: int, left: FloatArray, left_at: int, left_lead: int,
    left_turned: bool, right: FloatArray, right_at: int, right_lead: int, right_turned: bool, depth: int,
    plan: IndexArray, factors: FloatArray,
) -> None:  # fmt: skip
    """into (rows, cols) -= left (rows, depth) right (depth, cols), each column by column from a place on, or turned.

    plan (PLAN,) and factors (2,) are for scribbling and belong to a caller: numba frees an array after its last use,
    and does not see that BLAS still reads it.
    """
    plan[0], plan[1], plan[2] = rows, cols, depth
    plan[3], plan[4], plan[5] = left_lead, right_lead, lead
    plan[6] = 84 if left_turned else 78  # T or N, the first byte of a little-endian number
    plan[7] = 84 if right_turned else 78
    factors[0], factors[1] = -1.0, 1.0
    p, f = plan.ctypes.data, factors.ctypes.data
    _dgemm(
        p + 24, p + 28, p, p + 4, p + 8, f, left.ctypes.data + 8 * left_at, p + 12,
        right.ctypes.data + 8 * right_at, p + 16, f + 8, into.ctypes.data + 8 * at, p + 20,
    )  # fmt: skip


@kernel(fastmath=_FAST)
def combine(
    column: FloatArray, left: FloatArray, at: int, lead: int, right: FloatArray, right_at: int, step: int, depth: int
) -> None:
    """column -= sum_p right[right_at + p step] left[at + p lead :], four p at a time: where BLAS is too large."""
    size = column.size
    p = 0
    while p + 4 <= depth:
        q = right_at + p * step
        r0, r1, r2, r3 = right[q], right[q + step], right[q + 2 * step], right[q + 3 * step]
        a = at + p * lead
        l0, l1 = left[a : a + size], left[a + lead : a + lead + size]
        l2, l3 = left[a + 2 * lead : a + 2 * lead + size], left[a + 3 * lead : a + 3 * lead + size]
        for i in range(size):
            column[i] -= (r0 * l0[i] + r1 * l1[i]) + (r2 * l2[i] + r3 * l3[i])
        p += 4
    while p < depth:
        r0 = right[right_at + p * step]
        l0 = left[at + p * lead : at + p * lead + size]
        for i in range(size):
            column[i] -= r0 * l0[i]
        p += 1

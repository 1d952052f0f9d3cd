"""Inner products and matrix times vector for kernels: at n = 36 a call of BLAS would cost more than the product."""

from __future__ import annotations

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel

__all__ = ["SUM", "dot", "multiply"]

SUM = {"reassoc", "contract", "nsz"}  # sums may be taken in any order, which is what SIMD needs


@kernel(fastmath=SUM)
def dot(a: FloatArray, b: FloatArray) -> float:
    """a'b."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=SUM)
def multiply(matrix: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """Into out (n,): matrix (n, k) times x (k,), four rows at a time."""
    n, first = out.size, 0
    while first + 3 < n:
        row0, row1, row2, row3 = matrix[first], matrix[first + 1], matrix[first + 2], matrix[first + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(x.size):
            s0 += row0[j] * x[j]
            s1 += row1[j] * x[j]
            s2 += row2[j] * x[j]
            s3 += row3[j] * x[j]
        out[first], out[first + 1], out[first + 2], out[first + 3] = s0, s1, s2, s3
        first += 4
    for i in range(first, n):
        out[i] = dot(matrix[i], x)

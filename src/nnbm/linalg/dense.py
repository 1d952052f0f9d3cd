"""Dense symmetric positive definite matrices through LAPACK; the sparse twin will offer the same four verbs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel

__all__ = ["Balanced", "Factor", "balanced", "factor", "solve_in_place"]

_BLOCK = 64
_SMALL = 64  # up to here OpenBLAS's dpotri takes up to twice the time of dtrtri and a product

_LEAST_PIVOT = 1e-12  # of a unit diagonal: less is rounding


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of a positive definite matrix (n, n)."""

    lower: FloatArray

    def solve(self, right: FloatArray) -> FloatArray:
        """A^{-1} right for right (n,) or (n, k)."""
        return lapack.dpotrs(self.lower, right, lower=1)[0]

    def inverse(self) -> FloatArray:
        """A^{-1} (n, n), exactly symmetric."""
        inverse = lapack.dpotri(self.lower, lower=1)[0].T
        _mirror(inverse)
        return inverse

    def half_inverse(self) -> FloatArray:
        """The lower triangle (n, n) of A^{-1}; above it there is nothing of use."""
        if self.lower.shape[0] > _SMALL:
            return lapack.dpotri(self.lower, lower=1)[0]
        half = lapack.dtrtri(self.lower, lower=1)[0]
        return (half.T @ half).T

    def inverse_diagonal(self) -> FloatArray:
        """(n,) the diagonal of A^{-1}, at half the cost of the whole."""
        return _column_squares(lapack.dtrtri(self.lower, lower=1)[0])

    def matrix(self) -> FloatArray:
        """A itself (n, n)."""
        return self.lower @ self.lower.T

    @property
    def log_determinant(self) -> float:
        """ln det A."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())


@kernel()
def solve_in_place(lower: FloatArray, y: FloatArray) -> None:
    """y (n,) becomes A^{-1} y, with the Cholesky factor of A column by column: for kernels."""
    n = y.size
    for j in range(n):
        y[j] /= lower[j, j]
        for i in range(j + 1, n):
            y[i] -= lower[i, j] * y[j]
    for j in range(n - 1, -1, -1):
        total = y[j]
        for i in range(j + 1, n):
            total -= lower[i, j] * y[i]
        y[j] = total / lower[j, j]


@kernel()
def _mirror(matrix: FloatArray) -> None:
    """Copy the upper triangle (n, n) onto the lower one, in blocks that the cache holds."""
    n = matrix.shape[0]
    for top in range(0, n, _BLOCK):
        for left in range(0, top + 1, _BLOCK):
            for i in range(top, min(top + _BLOCK, n)):
                for j in range(left, min(left + _BLOCK, i)):
                    matrix[i, j] = matrix[j, i]


@kernel()
def _column_squares(matrix: FloatArray) -> FloatArray:
    """(n,) the sum of squares of each column of a lower triangle."""
    n = matrix.shape[0]
    total = np.zeros(n)
    for j in range(n):
        for i in range(j, n):
            total[j] += matrix[i, j] * matrix[i, j]
    return total


def factor(matrix: FloatArray, *, overwrite: bool = False) -> Factor | None:
    """The factor of a symmetric matrix (n, n), or None if it is not positive definite; only its lower triangle counts.

    overwrite: the matrix may be lost; if it lies column by column its memory becomes the factor's.

    >>> import numpy as np
    >>> factor(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    True
    >>> factor(np.array([[2.0, 1.0], [1.0, 2.0]])).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """
    lower, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=overwrite)
    return Factor(lower) if info == 0 and math.isfinite(lower[-1, -1]) else None


@dataclass(frozen=True)
class Balanced:
    """The factor of a positive definite matrix in units (n,) where its diagonal is 1."""

    unit: FloatArray
    scaled: Factor

    def solve(self, right: FloatArray) -> FloatArray:
        """A^{-1} right for right (n,)."""
        return self.unit * self.scaled.solve(self.unit * right)

    def inverse(self) -> FloatArray:
        """A^{-1} (n, n)."""
        return self.scaled.inverse() * self.unit * self.unit[:, None]


def balanced(matrix: FloatArray) -> Balanced | None:
    """The factor of a matrix whose rows have different units; None if it is not positive definite beyond rounding.

    >>> import numpy as np
    >>> balanced(np.array([[1.0, 1e8], [1e8, 1e16]])) is None
    True
    >>> balanced(np.array([[1.0, 0.0], [0.0, 1e16]])).solve(np.array([1.0, 1e16]))
    array([1., 1.])
    """
    diagonal = matrix.diagonal()
    if not (diagonal > 0).all():
        return None
    unit = 1.0 / np.sqrt(diagonal)
    scaled = factor(matrix * unit * unit[:, None])
    if scaled is None or float(np.diagonal(scaled.lower).min()) ** 2 < _LEAST_PIVOT:
        return None
    return Balanced(unit, scaled)

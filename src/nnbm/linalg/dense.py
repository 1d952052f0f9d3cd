"""Dense symmetric positive definite matrices through LAPACK; the sparse twin will offer the same four verbs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from nnbm.arrays import FloatArray

__all__ = ["Balanced", "Factor", "balanced", "factor"]

_LEAST_PIVOT = 1e-12  # of a unit diagonal: less is rounding


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of a positive definite matrix (n, n)."""

    lower: FloatArray

    def solve(self, right: FloatArray) -> FloatArray:
        """A^{-1} right for right (n,) or (n, k)."""
        return lapack.dpotrs(self.lower, right, lower=1)[0]

    def half_solve(self, right: FloatArray) -> FloatArray:
        """L^{-1} right for right (n, k), A = L L'."""
        return lapack.dtrtrs(self.lower, right, lower=1)[0]

    def inverse(self) -> FloatArray:
        """A^{-1} (n, n), exactly symmetric."""
        half = lapack.dpotri(self.lower, lower=1)[0]
        return np.tril(half) + np.tril(half, -1).T

    def inverse_diagonal(self) -> FloatArray:
        """(n,) the diagonal of A^{-1}, at half the cost of the whole."""
        half = lapack.dtrtri(self.lower, lower=1)[0]
        return np.einsum("ki,ki->i", half, half)

    def matrix(self) -> FloatArray:
        """A itself (n, n)."""
        return self.lower @ self.lower.T

    @property
    def log_determinant(self) -> float:
        """ln det A."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())


def factor(matrix: FloatArray) -> Factor | None:
    """The factor of a symmetric matrix (n, n), or None if it is not positive definite.

    >>> import numpy as np
    >>> factor(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    True
    >>> factor(np.array([[2.0, 1.0], [1.0, 2.0]])).solve(np.array([3.0, 3.0]))
    array([1., 1.])
    """
    lower, info = lapack.dpotrf(matrix, lower=1, clean=1)
    return Factor(lower) if info == 0 and np.isfinite(lower[-1, -1]) else None


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

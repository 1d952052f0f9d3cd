"""The second-order free energy's Hessian and its factors (EQ 4), in the coordinates where they are simplest.

In means and *variances* s = v - m² the couplings enter F2 as sum_E (w_ij m_i m_j - 1/2 w_ij² s_i s_j): no cross terms.
The Hessian of EQ 4, transformed by dv = ds + 2 m dm, has the blocks (D = s k4 + 2 s³ - k3²)

    H_mm = off(w_ij) + diag(w_ii - r_i + (k4 + 2 s²)/D)    H_ms = diag(-k3/D)    H_ss = off(-w_ij²/2) + diag(s/D)

and M = dm/db, the same in either coordinates, is the inverse of a Schur complement of size n. D and the blocks are
free of the cancellation that a d - c² suffers far from the wall.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.linalg.dense import Factor, factor

__all__ = ["SecondOrderResponse", "second_order"]


@dataclass(frozen=True)
class SecondOrderResponse:
    """A positive definite Hessian: factors of H_ss and of its Schur complement M^{-1}, and H_ms = diag(-pull)."""

    spread: Factor
    means: Factor
    pull: FloatArray

    @cached_property
    def covariance(self) -> FloatArray:
        """(n, n) M."""
        return self.means.inverse()

    @property
    def diagonal(self) -> FloatArray:
        """(n,) M_ii, at half the cost."""
        return self.means.inverse_diagonal()

    @property
    def variances(self) -> FloatArray:
        """(n, n) ds/db."""
        return self.spread.solve(self.pull[:, None] * self.covariance)


def second_order(off: FloatArray, back: FloatArray, cumulants: FloatArray) -> SecondOrderResponse | None:
    """From w_ij (n, n), w_ii - r_i (n,) and the sites' cumulants (6, n); None if H is not positive definite."""
    # what follows is column by column, so that LAPACK may work in place
    matrix, pull = np.empty(off.shape, order="F"), np.empty(back.size)
    _fill_spread(off, cumulants, matrix, pull)
    spread = factor(matrix, overwrite=True)
    if spread is None:
        return None
    matrix = spread.half_inverse()
    _schur_complement(off, back, cumulants, pull, matrix)
    means = factor(matrix, overwrite=True)
    return None if means is None else SecondOrderResponse(spread, means, pull)


@kernel(error_model="numpy")
def _fill_spread(off: FloatArray, cumulants: FloatArray, matrix: FloatArray, pull: FloatArray) -> None:
    """H_ss, its lower triangle."""
    for j in range(pull.size):
        s, k3, k4 = cumulants[1, j], cumulants[2, j], cumulants[3, j]
        determinant = s * k4 + 2.0 * s * s * s - k3 * k3
        pull[j] = k3 / determinant
        matrix[j, j] = s / determinant
        for i in range(j + 1, pull.size):
            matrix[i, j] = -0.5 * off[j, i] * off[j, i]


@kernel(error_model="numpy")
def _schur_complement(
    off: FloatArray, back: FloatArray, cumulants: FloatArray, pull: FloatArray, matrix: FloatArray
) -> None:
    """The lower triangle of H_ss^{-1} becomes that of H_mm - H_ms H_ss^{-1} H_sm."""
    for j in range(pull.size):
        s, k3, k4 = cumulants[1, j], cumulants[2, j], cumulants[3, j]
        determinant = s * k4 + 2.0 * s * s * s - k3 * k3
        matrix[j, j] = back[j] + (k4 + 2.0 * s * s) / determinant - pull[j] * pull[j] * matrix[j, j]
        for i in range(j + 1, pull.size):
            matrix[i, j] = off[j, i] - pull[j] * pull[i] * matrix[i, j]

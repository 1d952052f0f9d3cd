"""W = D - C with D diagonal and C = R'R: what integrating out the walls needs (NOTATION 1.3), dense and sparse.

Any symmetric W has such splits. Dense: D in proportion to the units of the variables, as small as C >= 0 allows.
Sparse: one row of R an edge, so that R has two entries a row and nothing fills in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh

from nnbm.arrays import FloatArray
from nnbm.draw import normal
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.products import dot, multiply
from nnbm.stream import Stream, StreamArray, load, store

__all__ = ["Split", "noise", "product_with", "split", "times_sparse"]

# of D: C must stay positive definite under rounding; a millionth more noise costs nothing
_MARGINS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
_SMALL = 300  # variables up to which all eigenvalues are cheaper than a search for the largest


class Split(NamedTuple):
    """D (n,) and C = R'R. Dense: C (n, n) and its Cholesky factor R', the rest empty. Sparse: both empty, C as CSR.

    Row e of R has `left[e]` at site i[e] and `right[e]` at site j[e].
    """

    curvature: FloatArray
    matrix: FloatArray
    factor: FloatArray
    pointers: NDArray[np.int32]
    neighbours: NDArray[np.int32]
    weights: FloatArray
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    left: FloatArray
    right: FloatArray

    @property
    def rank(self) -> int:
        """Rows of R: how many normals a draw of R'xi takes."""
        return self.factor.shape[0] or self.i.size

    @property
    def own(self) -> FloatArray:
        """(n,) the diagonal of C."""
        if self.matrix.size:
            return np.diagonal(self.matrix)
        n = self.curvature.size
        return np.asarray(np.bincount(self.i, self.left**2, n) + np.bincount(self.j, self.right**2, n), np.float64)

    def noise_rows(self, count: int, row: StreamArray) -> FloatArray:
        """(2 count, n) draws of R'xi from the random stream in row (4,)."""
        out = np.empty((2 * count, self.curvature.size))
        _fill_noise(self, np.empty((2, self.rank)), row, out)
        return out


_NO_MATRIX, _NO_FLOATS, _NO_INDICES = np.empty((0, 0)), np.empty(0), np.empty(0, np.int32)


def split(model: NNBM) -> Split:
    """A model's."""
    diagonal = model.diagonal
    strength = np.asarray(abs(model.coupling).sum(axis=1)).ravel()
    unit = np.where(diagonal > 0.0, diagonal, np.where(strength > 0.0, strength, 1.0))
    if isinstance(model.coupling, np.ndarray):
        return _dense(model.coupling, unit)
    return _sparse(model, unit)


def _dense(w: FloatArray, unit: FloatArray) -> Split:
    """D = largest eigenvalue of W in these units."""
    root = np.sqrt(unit)
    scaled = w / root / root[:, None]
    largest = _largest_eigenvalue(scaled)
    for margin in _MARGINS:
        curvature = (largest + margin) * unit
        matrix = -w
        matrix.flat[:: unit.size + 1] += curvature
        try:
            lower = np.asarray(np.linalg.cholesky(matrix), np.float64)
        except np.linalg.LinAlgError:
            continue
        nothing = (_NO_INDICES, _NO_INDICES, _NO_FLOATS, _NO_INDICES, _NO_INDICES, _NO_FLOATS, _NO_FLOATS)
        return Split(curvature, matrix, lower, *nothing)
    raise ArithmeticError(
        "coupling: fields need a diagonal D with D - coupling positive definite, and rounding leaves none that is "
        'near: its numbers are too far apart. Measure variables in other units, or take method="gibbs".'
    )


def _largest_eigenvalue(scaled: FloatArray) -> float:
    """To 1e-6 or better; too small an answer is noticed by the caller's factorisation."""
    n = scaled.shape[0]
    if n <= _SMALL:
        return float(np.linalg.eigvalsh(scaled)[-1])
    start = np.random.default_rng(0).normal(size=n)  # a fixed one: the split must not depend on chance
    return float(eigsh(scaled, k=1, which="LA", v0=start, tol=1e-7, return_eigenvectors=False)[0])


def _sparse(model: NNBM, unit: FloatArray) -> Split:
    """Edge by edge: -w_ij x_i x_j = (left x_i + right x_j)²/2 less squares that go into D."""
    edges = sparse.triu(model.coupling, k=1, format="coo")
    i, j, w = edges.row.astype(np.int32), edges.col.astype(np.int32), edges.data
    size = np.sqrt(np.abs(w))
    balance = (unit[i] / unit[j]) ** 0.25
    left, right = size * balance, -np.sign(w) * size / balance
    own = np.bincount(i, left * left, model.n) + np.bincount(j, right * right, model.n)
    places = np.arange(model.n)
    rows, columns = np.concatenate([i, j, places]), np.concatenate([j, i, places])
    c = sparse.csr_array((np.concatenate([-w, -w, own]), (rows, columns)), shape=(model.n, model.n))
    csr = c.indptr.astype(np.int32), c.indices.astype(np.int32), c.data
    return Split(model.diagonal + own, _NO_MATRIX, _NO_MATRIX, *csr, i, j, left, right)


def product_with(part: Split, x: FloatArray) -> FloatArray:
    """C x for x (n, ...)."""
    if part.matrix.size:
        return part.matrix @ x
    n = part.curvature.size
    return np.asarray(sparse.csr_array((part.weights, part.neighbours, part.pointers), shape=(n, n)) @ x)


@kernel()
def times_sparse(
    pointers: NDArray[np.int32], neighbours: NDArray[np.int32], weights: FloatArray, x: FloatArray, out: FloatArray
) -> None:
    """Into out (n,): C x."""
    for k in range(out.size):
        total = 0.0
        for e in range(pointers[k], pointers[k + 1]):
            total += weights[e] * x[neighbours[e]]
        out[k] = total


@kernel()
def noise(
    part: Split, normals: FloatArray, first: FloatArray, second: FloatArray, inner: FloatArray, stream: Stream
) -> Stream:
    """R'xi and R'eta into first and second (n,), |xi|², xi'eta, |eta|² into inner (3,); normals (2, rank) is room."""
    xi, eta = normals[0], normals[1]
    for k in range(xi.size):
        xi[k], stream = normal(stream)
        eta[k], stream = normal(stream)
    inner[0], inner[1], inner[2] = dot(xi, xi), dot(xi, eta), dot(eta, eta)
    if part.factor.size > 0:
        # the zeros above the diagonal cost less than rows of unequal length
        multiply(part.factor, xi, first)
        multiply(part.factor, eta, second)
        return stream
    first[:], second[:] = 0.0, 0.0
    for e in range(part.i.size):
        i, j, left, right = part.i[e], part.j[e], part.left[e], part.right[e]
        first[i] += left * xi[e]
        first[j] += right * xi[e]
        second[i] += left * eta[e]
        second[j] += right * eta[e]
    return stream


@kernel()
def _fill_noise(part: Split, normals: FloatArray, row: StreamArray, out: FloatArray) -> None:
    """Draws of R'xi into out (2 count, n)."""
    stream, inner = load(row), np.empty(3)
    for k in range(out.shape[0] // 2):
        stream = noise(part, normals, out[2 * k], out[2 * k + 1], inner, stream)
    store(stream, row)

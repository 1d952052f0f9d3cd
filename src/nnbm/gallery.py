"""Models with a name: the paper's two, a bimodal pair, random graphs, and least squares under x >= 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nnbm.arrays import FloatArray, as_floats, as_reals, as_sparse_floats, first_place
from nnbm.model import NNBM

__all__ = ["from_least_squares", "orientation_tuning", "random_graph", "square_grid", "two_modes"]


def square_grid(
    rows: int,
    columns: int,
    *,
    coupling: float = 0.8,
    bias: tuple[float, float] = (-0.4, 0.4),
    diagonal: float = 1.0,
    seed: int | None = 0,
) -> NNBM:
    """An open square lattice with one coupling and random biases, sparse (the paper's first experiment).

    b_i ~ U(bias), w_ii = diagonal, w_ij = coupling between neighbours; variable (row, column) is row * columns +
    column. With coupling 0.8 and diagonal 1 the 6x6 matrix is not positive definite.

    >>> square_grid(6, 6)
    NNBM(n=36, edges=60, sparse, copositive)
    """
    if rows < 1 or columns < 1:
        raise ValueError(f"rows, columns: at least 1 each, but they are {rows} and {columns}.")
    low, high = bias
    if not low <= high:
        raise ValueError(f"bias: (low, high) with low <= high is needed, but bias = {bias}.")
    place = np.arange(rows * columns).reshape(rows, columns)
    i = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    j = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    b = np.random.default_rng(seed).uniform(low, high, place.size)
    return NNBM(b, _symmetric(i, j, np.full(i.size, float(coupling)), np.full(place.size, float(diagonal))))


def orientation_tuning(n: int = 36, *, beta: float = 10.0, epsilon: float = 2.0) -> NNBM:
    """Cortical orientation tuning: a ring of n neurons of preferred angles 2 pi i / n (the paper's second experiment).

    b_i = beta, w_ij = beta (delta_ij + 1/n - (epsilon/n) cos(2 pi (i - j)/n)), dense. Uniform activity for
    epsilon < 2; a bump at a random angle for epsilon > 2.

    >>> orientation_tuning(36, beta=10.0, epsilon=2.0).n
    36
    """
    if n < 2:
        raise ValueError(f"n: a ring needs at least 2 neurons, but n = {n}.")
    if not beta > 0:
        raise ValueError(f"beta: the inverse temperature must be positive, but beta = {beta}.")
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    # the shorter way round, so that w_ij and w_ji are the same float
    angle = 2.0 * np.pi * np.minimum(distance, n - distance) / n
    return NNBM(np.full(n, float(beta)), beta * (np.eye(n) + 1.0 / n - (epsilon / n) * np.cos(angle)))


def two_modes(*, competition: float = 3.0, bias: tuple[float, float] = (3.0, 3.0)) -> NNBM:
    """Two competitors: W = [[1, c], [c, 1]]; bimodal when c > 1 and both b_i < c b_j (each alone suppresses the other).

    The modes are (b_0, 0) and (0, b_1); unequal biases give unequal weights.

    >>> two_modes()
    NNBM(n=2, edges=1, dense, copositive)
    """
    if not competition > 1 or not max(bias) < competition * min(bias):
        raise ValueError(
            "competition, bias: two modes need competition > 1 and each bias below competition times the other, "
            f"but competition = {competition} and bias = {bias}. Raise competition."
        )
    return NNBM(bias, [[1.0, competition], [competition, 1.0]])


def random_graph(
    n: int,
    *,
    degree: float = 4.0,
    strength: float = 0.5,
    bias: tuple[float, float] = (-1.0, 1.0),
    seed: int | None = 0,
) -> NNBM:
    """A random sparse graph with couplings of both signs.

    Each of round(n degree / 2) distinct edges has w_ij ~ U(-strength, strength), b_i ~ U(bias), and
    w_ii = 1 + sum_j max(0, -w_ij): dominant over the negative couplings, hence always strictly copositive.

    >>> random_graph(1000, degree=4).n
    1000
    """
    possible = n * (n - 1) // 2
    count = round(n * degree / 2)
    if not 0 <= count <= possible:
        raise ValueError(
            f"degree: n = {n} variables have at most {n - 1} neighbours each, but degree = {degree}. Lower it."
        )
    rng = np.random.default_rng(seed)
    i, j = _upper_pairs(rng.choice(possible, size=count, replace=False, shuffle=False), n)
    w = rng.uniform(-strength, strength, count)
    diagonal = np.ones(n)
    np.add.at(diagonal, i, np.maximum(0.0, -w))
    np.add.at(diagonal, j, np.maximum(0.0, -w))
    return NNBM(rng.uniform(*bias, n), _symmetric(i, j, w, diagonal))


def from_least_squares(design: ArrayLike | Any, response: ArrayLike, sigma: float) -> NNBM:
    """The posterior of x >= 0 in response = design x + noise of standard deviation sigma, flat prior on x >= 0.

    b = A'y / sigma², W = A'A / sigma² (EQ 1); design A is (rows, n), dense or scipy.sparse, kept in its kind.

    >>> model = from_least_squares([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [1.0, 2.0, 2.0], sigma=0.5)
    >>> model.bias
    array([12., 24.])
    """
    y = as_floats("response", response)
    a: Any = as_sparse_floats("design", design) if sparse.issparse(design) else as_floats("design", design)
    if a.ndim != 2 or y.shape != a.shape[:1]:
        raise ValueError(
            f"design, response: shapes (rows, n) and (rows,) are needed, but they are {a.shape} and {y.shape}."
        )
    noise = as_reals("sigma", sigma)
    if noise.size != 1 or not (np.isfinite(noise) & (noise > 0)).all():
        raise ValueError(f"sigma: the noise's standard deviation must be a positive number, but sigma = {sigma}.")
    with np.errstate(all="ignore"):  # what overflows is reported by its column
        scaled, target = a / float(noise.item()), y / float(noise.item())
        coupling, bias = scaled.T @ scaled, scaled.T @ target
    _check_columns(coupling.diagonal(), bias)
    return NNBM(bias, coupling)


def _check_columns(squares: FloatArray, products: FloatArray) -> None:
    """Refuse columns of the design that leave their variable without a finite, positive w_ii."""
    bad = ~(np.isfinite(squares) & (squares > 0) & np.isfinite(products))
    if bad.any():
        (j,) = first_place(bad)
        raise ValueError(
            f"design, sigma: every column's squares over sigma² must sum to a positive float, but column {j} of design "
            f"gives {squares[j]}. Drop a column of zeros, since nothing is known of its variable; rescale one that is "
            "very small or large."
        )


def _symmetric(i: Any, j: Any, w: Any, diagonal: Any) -> sparse.csr_array:
    """The symmetric CSR matrix of the edges (i, j, w) and the diagonal."""
    n = diagonal.size
    own = np.arange(n)
    rows, columns = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    return sparse.csr_array((np.concatenate([w, w, diagonal]), (rows, columns)), shape=(n, n))


def _upper_pairs(code: Any, n: int) -> tuple[Any, Any]:
    """The (i, j), i < j < n, numbered row by row by `code` in [0, n(n-1)/2)."""
    k = n * (n - 1) // 2 - 1 - code
    p = ((np.sqrt(8.0 * k + 1.0) - 1.0) / 2.0).astype(np.int64)
    p += (p + 1) * (p + 2) // 2 <= k
    p -= p * (p + 1) // 2 > k
    return n - 2 - p, n - 1 - (k - p * (p + 1) // 2)

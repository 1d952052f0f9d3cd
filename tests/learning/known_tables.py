"""Tables of known origin and the exact answers that go with them; drawn once, shared by the tests of learning."""

import functools
from dataclasses import dataclass

import numpy as np

import nnbm
from nnbm.learning.edges import EdgeSet
from nnbm.learning.parameters import Parameters


@functools.cache
def model_of(name: str) -> nnbm.NNBM:
    return {
        "grid": lambda: nnbm.gallery.square_grid(3, 3, coupling=0.5),
        "random graph": lambda: nnbm.gallery.random_graph(10, degree=3.0, strength=0.5, seed=1),
        "complete": lambda: nnbm.gallery.orientation_tuning(8, beta=4.0, epsilon=1.5),
        "trio": lambda: nnbm.NNBM([0.2, 0.4, -0.5], [[1.0, 0.5, -0.4], [0.5, 1.2, 0.3], [-0.4, 0.3, 0.9]]),
    }[name]()


@functools.cache
def table_of(name: str, count: int = 4000, seed: int = 0) -> np.ndarray:
    """(count, n) draws, six sweeps apart; read-only, because it is shared."""
    found = nnbm.sample(model_of(name), count // 4, chains=4, thin=6, seed=seed, threads=1, progress=False).flat
    found.flags.writeable = False
    return found


def own_edges(model: nnbm.NNBM) -> EdgeSet:
    return EdgeSet(model.n, *model.edges)


def truth(model: nnbm.NNBM, edges: EdgeSet | None = None) -> Parameters:
    return Parameters.of_model(model, edges or own_edges(model))


def slopes(function, at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Derivatives (..., k) of a function of a vector (k,), by central differences, relative steps."""
    columns = []
    for k in range(at.size):
        move = np.zeros(at.size)
        move[k] = step * max(1.0, abs(at[k]))
        columns.append((np.asarray(function(at + move)) - np.asarray(function(at - move))) / (2.0 * move[k]))
    return np.stack(columns, axis=-1)


@dataclass(frozen=True)
class Family:
    """ln Z, <T> and Cov(T) of T = (x_i, -x_i²/2, -x_i x_j)."""

    log_partition: float
    mean: np.ndarray
    fisher: np.ndarray


def quadrature(parameters: Parameters, upper: float = 14.0, nodes: int = 160) -> Family:
    """Of one or two variables, by Gauss-Legendre on [0, upper]^n: independent of nnbm's own formulas."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    x, w = 0.5 * upper * (points + 1.0), 0.5 * upper * weights
    e = parameters.edges
    grid = np.stack(np.meshgrid(*[x] * e.n, indexing="ij"), axis=0).reshape(e.n, -1)
    mass = np.stack(np.meshgrid(*[w] * e.n, indexing="ij"), axis=0).reshape(e.n, -1).prod(axis=0)
    statistics = np.concatenate([grid, -0.5 * grid**2, -grid[e.i] * grid[e.j]])
    log_density = parameters.vector @ statistics
    mass = mass * np.exp(log_density - log_density.max())
    total = mass.sum()
    mean = statistics @ mass / total
    apart = statistics - mean[:, None]
    return Family(float(np.log(total) + log_density.max()), mean, (apart * mass / total) @ apart.T)


def exact_maximum(edges: EdgeSet, target: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The vector whose <T> is `target`, by Newton's method on quadratures."""
    vector = start
    for _ in range(60):
        found = quadrature(Parameters.from_vector(edges, vector))
        move = np.linalg.solve(found.fisher, target - found.mean)
        vector = vector + min(1.0, 0.5 / np.abs(move).max()) * move
        if np.abs(move).max() < 1e-11:
            return vector
    raise AssertionError("the reference itself did not converge")

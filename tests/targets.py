"""Models whose answers are known: by quadrature for n <= 3, by mpmath for one variable."""

import functools
from dataclasses import dataclass

import mpmath as mp
import numpy as np

import nnbm


@dataclass(frozen=True)
class Exact:
    log_partition: float
    mean: np.ndarray
    covariance: np.ndarray


@functools.cache
def integrate(model: nnbm.NNBM, upper: float, nodes: int = 96) -> Exact:
    """Moments by tensor Gauss-Legendre on [0, upper]^n (composite, four panels); independent of nnbm's own sites."""
    points, weights = np.polynomial.legendre.leggauss(nodes // 4)
    panel = upper / 4
    x = np.concatenate([panel * (k + 0.5 * (points + 1)) for k in range(4)])
    w = np.tile(weights * panel / 2, 4)
    grid = np.stack(np.meshgrid(*[x] * model.n, indexing="ij"), axis=-1).reshape(-1, model.n)
    mass = np.stack(np.meshgrid(*[w] * model.n, indexing="ij"), axis=-1).reshape(-1, model.n).prod(axis=1)
    log_density = -model.energy(grid)
    top = log_density.max()
    mass = mass * np.exp(log_density - top)
    total = mass.sum()
    mean = mass @ grid / total
    second = (grid * mass[:, None]).T @ grid / total
    return Exact(float(np.log(total) + top), mean, second - np.outer(mean, mean))


def small_models() -> dict[str, tuple[nnbm.NNBM, float]]:
    """name -> (model, upper end of the box that holds all its mass)."""
    return {
        "one variable, wall deep": (nnbm.NNBM([3.0], [[1.0]]), 14.0),
        "one variable, far tail": (nnbm.NNBM([-6.0], [[2.0]]), 5.0),
        "pair, positive definite": (nnbm.NNBM([0.5, -0.3], [[1.0, -0.6], [-0.6, 1.5]]), 16.0),
        "pair, not positive definite": (nnbm.NNBM([0.8, 0.5], [[1.0, 2.5], [2.5, 2.0]]), 10.0),
        "triple, mixed signs": (
            nnbm.NNBM([0.2, 0.4, -0.5], [[1.0, 0.5, -0.4], [0.5, 1.2, 0.3], [-0.4, 0.3, 0.9]]),
            14.0,
        ),
        "triple, not positive definite": (
            nnbm.NNBM([0.6, 0.3, 0.2], [[1.0, 1.6, 0.9], [1.6, 1.0, 1.4], [0.9, 1.4, 1.0]]),
            10.0,
        ),
    }


def copies(model: nnbm.NNBM, count: int) -> nnbm.NNBM:
    """`count` unconnected copies as one sparse model: independent chains for the price of one."""
    from scipy import sparse

    return nnbm.NNBM(np.tile(model.bias, count), sparse.kron(sparse.eye_array(count), model.coupling, format="csr"))


def digits_for(z: float) -> int:
    """Working digits that survive the cancellation for z << 0 and the cumulants of size exp(-z²/2) for z >> 0."""
    return 60 + int(24 * np.log10(abs(z) + 1) + 0.22 * min(max(z, 0.0), 45.0) ** 2)


def site_cumulants(l: float, r: float, highest: int = 6) -> list[mp.mpf]:
    """[ln Z1, k_1 .. k_highest] of q(x; l, r), x >= 0, from moments at enough digits to survive all cancellation."""
    with mp.workdps(digits_for(l / r**0.5)):
        root = mp.sqrt(mp.mpf(r))
        z = mp.mpf(l) / root
        partition = mp.sqrt(mp.pi / 2) * mp.exp(z * z / 2) * mp.erfc(-z / mp.sqrt(2))
        moments = [mp.mpf(1), z + 1 / partition]
        for k in range(1, highest):
            moments.append(z * moments[k] + k * moments[k - 1])
        cumulants: list[mp.mpf] = []
        for k in range(1, highest + 1):
            mixed = mp.fsum(mp.binomial(k - 1, j - 1) * cumulants[j - 1] * moments[k - j] for j in range(1, k))
            cumulants.append(moments[k] - mixed)
        return [mp.log(partition) - mp.log(root), *(c / root ** (k + 1) for k, c in enumerate(cumulants))]

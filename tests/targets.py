"""Models whose answers are known: by quadrature for n <= 3, by mpmath for one variable."""

import functools
from dataclasses import dataclass
from itertools import pairwise

import mpmath as mp
import numpy as np

import nnbm


@dataclass(frozen=True)
class Exact:
    log_partition: float
    mean: np.ndarray
    covariance: np.ndarray


@functools.cache
def integrate(model: nnbm.NNBM, upper: float, nodes: int = 96, lower: float = 0.0) -> Exact:
    """Moments by tensor Gauss-Legendre (composite, four panels); independent of nnbm's own sites.

    Between the model's ends, or where there is none between `lower` and `upper`.
    """
    points, weights = np.polynomial.legendre.leggauss(nodes // 4)
    axes, shares = [], []
    for low, high in zip(np.maximum(model.lower, lower), np.minimum(model.upper, upper), strict=True):
        panel = (high - low) / 4
        axes.append(np.concatenate([low + panel * (k + 0.5 * (points + 1)) for k in range(4)]))
        shares.append(np.tile(weights * panel / 2, 4))
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, model.n)
    mass = np.stack(np.meshgrid(*shares, indexing="ij"), axis=-1).reshape(-1, model.n).prod(axis=1)
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


INFINITE = np.inf


def box_models() -> dict[str, tuple[nnbm.NNBM, float, float]]:
    """name -> (model between other ends than 0 and infinity, lower and upper end of its mass)."""
    pair, triple = [[1.0, -0.6], [-0.6, 1.5]], [[1.0, 0.5, -0.4], [0.5, 1.2, 0.3], [-0.4, 0.3, 0.9]]
    strong = [[1.0, 1.6, 0.9], [1.6, 1.0, 1.4], [0.9, 1.4, 1.0]]
    return {
        "interval": (nnbm.NNBM([1.5], [[1.0]], lower=-0.5, upper=2.0), -1, 2),
        "interval, two humps": (nnbm.NNBM([-2.2], [[-3.0]], lower=0.5, upper=2.0), 0, 2),
        "interval, flat": (nnbm.NNBM([0.0], [[0.0]], lower=-1.0, upper=3.0), -1, 3),
        "interval, far tail": (nnbm.NNBM([-40.0], [[1.0]], lower=1.0, upper=2.0), 1, 2),
        "no ends": (nnbm.NNBM([0.7], [[2.0]], lower=-INFINITE), -7, 8),
        "upper end only": (nnbm.NNBM([0.7], [[2.0]], lower=-INFINITE, upper=-1.0), -9, 0),
        "pair, one of each": (nnbm.NNBM([0.5, -0.3], pair, lower=[-INFINITE, -1.0], upper=[INFINITE, 1.0]), -14, 16),
        "pair, mirrored": (nnbm.NNBM([-0.5, 0.3], pair, lower=-INFINITE, upper=[0.0, 0.4]), -16, 1),
        "pair, attracting": (nnbm.NNBM([0.2, 0.1], [[-0.5, -2.0], [-2.0, 0.0]], lower=-1.0, upper=[1.0, 0.8]), -1, 1),
        "triple, in a cube": (nnbm.NNBM([0.2, 0.4, -0.5], triple, lower=-1.0, upper=2.0), -1, 2),
        "triple, mixed ends": (
            nnbm.NNBM([0.2, 0.4, -0.5], triple, lower=[0.0, -INFINITE, -1.0], upper=[INFINITE, INFINITE, 1.0]),
            -14,
            14,
        ),
        "triple, competing": (
            nnbm.NNBM([0.6, 0.3, 0.2], strong, lower=[0.0, 0.0, -2.0], upper=[INFINITE, 3.0, 1.0]),
            -2,
            10,
        ),
    }


def copies(model: nnbm.NNBM, count: int) -> nnbm.NNBM:
    """`count` unconnected copies as one sparse model: independent chains for the price of one."""
    from scipy import sparse

    ends = {"lower": np.tile(model.lower, count), "upper": np.tile(model.upper, count)}
    coupling = sparse.kron(sparse.eye_array(count), model.coupling, format="csr")
    return nnbm.NNBM(np.tile(model.bias, count), coupling, **ends)


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


@functools.cache
def legendre(count: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """(node, weight) of Gauss' rule on [0, 1], to 30 digits."""
    with mp.workdps(40):
        pairs = []
        for start in np.polynomial.legendre.leggauss(count)[0]:
            x = mp.mpf(float(start))
            for _ in range(5):
                before, here = mp.mpf(1), x
                for k in range(2, count + 1):
                    before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
                slope = count * (before - x * here) / (1 - x * x)
                x -= here / slope
            pairs.append(((1 + x) / 2, 1 / ((1 - x * x) * slope**2)))
        return pairs


@dataclass(frozen=True)
class IntervalSite:
    """ln Z1, the cumulants k[1] .. k[8] (k[0] = ln Z1) and <|x - m|^n> of q(x; l, r) on [0, width], by mpmath."""

    cumulants: list[mp.mpf]
    absolute: list[mp.mpf]

    @property
    def sd(self) -> mp.mpf:
        return mp.sqrt(self.cumulants[2])

    def scale(self, order: int) -> mp.mpf:
        """What the error of a cumulant is compared with."""
        return max(self.sd**order, abs(self.cumulants[order]))


def interval_site(l: float, r: float, width: float) -> IntervalSite:
    """Composite Gauss: panels by factors of 2 from both ends and by standard deviations about a peak between them."""
    with mp.workdps(32):
        l, r, width = mp.mpf(float(l)), mp.mpf(float(r)), mp.mpf(float(width))

        def log_density(x):
            return x * (l - r * x / 2)

        edges = {mp.mpf(0), width}
        for end, inwards, slope in ((mp.mpf(0), 1, l), (width, -1, l - r * width)):
            rate = abs(slope) + mp.sqrt(abs(r)) + 1 / width
            step = 2 / rate
            while step < width:
                edges.add(end + inwards * step)
                step *= 2 if step * rate < 300 else 1000
        peak = min(max(l / r, 0), width) if r > 0 else mp.mpf(0)
        if r > 0:
            edges |= {x for k in range(-14, 15) if 0 < (x := l / r + k / mp.sqrt(r)) < width}
        top = max(log_density(mp.mpf(0)), log_density(width), log_density(peak))
        ordered = sorted(edges)
        places, masses = [], []
        for left, right in pairwise(ordered):
            if max(log_density(left), log_density(right)) - top < -250 and not left < peak < right:
                continue
            for node, weight in legendre(24):
                x = left + (right - left) * node
                places.append(x)
                masses.append((right - left) * weight * mp.exp(log_density(x) - top))
        total = mp.fsum(masses)
        mean = mp.fsum(a * x for a, x in zip(masses, places, strict=True)) / total
        central, absolute = (
            [mp.fsum(a * f(x - mean) ** k for a, x in zip(masses, places, strict=True)) / total for k in range(9)]
            for f in (lambda d: d, abs)
        )
        cumulants = [mp.mpf(0)] * 9
        for k in range(2, 9):
            mixed = mp.fsum(mp.binomial(k - 1, j - 1) * cumulants[j] * central[k - j] for j in range(1, k))
            cumulants[k] = central[k] - mixed
        cumulants[0], cumulants[1] = top + mp.log(total), mean
        return IntervalSite(cumulants, absolute)

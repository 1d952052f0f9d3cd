"""What tests of every sampler share: exact draws of a pair, and how far a law has moved."""

from collections.abc import Callable

import numpy as np
from scipy import stats

from nnbm import NNBM
from targets import integrate

# two modes; a positive definite one
PAIRS = [NNBM([0.8, 0.5], [[1.0, 2.5], [2.5, 2.0]]), NNBM([0.5, -0.3], [[1.0, -0.6], [-0.6, 1.5]])]


def z_scores(model: NNBM, upper: float, x: np.ndarray, lower: float = 0.0) -> np.ndarray:
    """Standardised errors of means and second moments of independent rows x (count, n) against the exact ones."""
    exact = integrate(model, upper, lower=lower)
    products = np.einsum("ki,kj->kij", x, x)[:, *np.triu_indices(model.n)]
    found = np.concatenate([x, products], axis=1)
    second = exact.covariance + np.outer(exact.mean, exact.mean)
    expected = np.concatenate([exact.mean, second[np.triu_indices(model.n)]])
    return (found.mean(axis=0) - expected) / (found.std(axis=0) / np.sqrt(x.shape[0]))


def exact_pairs(model: NNBM, count: int, seed: int) -> np.ndarray:
    """Exact draws of a pair, without Gibbs: the marginal of x_0 by inversion on a grid, then SciPy's truncnorm."""
    rng = np.random.default_rng(seed)
    w = model.coupling
    grid = np.linspace(0, 12, 60_001)
    l, r = model.bias[1] - w[0, 1] * grid, w[1, 1]
    log_inner = l**2 / (2 * r) + stats.norm.logcdf(l / np.sqrt(r))
    density = np.exp(model.bias[0] * grid - 0.5 * w[0, 0] * grid**2 + log_inner)
    mass = np.cumsum(0.5 * (density[1:] + density[:-1]))
    x0 = np.interp(rng.uniform(size=count), np.concatenate([[0], mass / mass[-1]]), grid)
    loc, scale = (model.bias[1] - w[0, 1] * x0) / r, r**-0.5
    x1 = stats.truncnorm.rvs(-loc / scale, np.inf, loc=loc, scale=scale, random_state=rng)
    return np.column_stack([x0, x1])


def drift(truth: NNBM, moved: Callable[[np.ndarray], np.ndarray], count: int = 100_000) -> float:
    """Largest scaled Kolmogorov-Smirnov distance between exact draws of `truth` and others that were `moved`."""
    after, fresh = moved(exact_pairs(truth, count, seed=4)), exact_pairs(truth, count, seed=5)
    features = [lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x.sum(axis=1), lambda x: x[:, 0] - x[:, 1]]
    return max(stats.ks_2samp(f(after), f(fresh)).statistic for f in features) * np.sqrt(count / 2)

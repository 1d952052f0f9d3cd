"""Where the modes lie: naive mean field, climbed from starts that lie apart."""

from __future__ import annotations

import math

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.copositive import Verdict
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.couplings import Couplings, couplings_of, dense_field, sparse_field
from nnbm.site.box_statistics import box_statistics
from nnbm.site.interval_statistics import workspace

__all__ = ["climbed", "log_mass"]

_SWEEPS = 1000
_SETTLED = 1e-6  # widths 1/sqrt w_ii (or of the interval) that no mean moves by any more
_SAME = 0.1  # the same, between the means of two climbs that have ended in one place


@kernel()
def _climb(
    couplings: Couplings, bias: FloatArray, diagonal: FloatArray, lower: FloatArray, upper: FloatArray,
    unit: FloatArray, sweeps: int, mean: FloatArray,
) -> None:  # fmt: skip
    """Each site in turn takes the mean that its field asks for: coordinate ascent on the bound of ln Z."""
    dense, pointers, middle, neighbours, weights = couplings
    is_dense = dense.shape[0] > 0
    nodes = workspace()
    for _ in range(sweeps):
        largest = 0.0
        for i in range(mean.size):
            if is_dense:
                below, above = dense_field(dense[i], i, mean)
            else:
                below, above = sparse_field(pointers, middle, neighbours, weights, i, mean)
            new = box_statistics(bias[i] - below - above, diagonal[i], lower[i], upper[i], nodes).k1
            largest = max(largest, abs(new - mean[i]) / unit[i])
            mean[i] = new
        if not largest > _SETTLED:
            return


def climbed(model: NNBM, starts: FloatArray) -> FloatArray:
    """(modes, n) the different solutions m_i = <x_i> at l_i = b_i - sum_j w_ij m_j above `starts`, best bound first.

    Coordinate ascent never goes down, so from any start it ends in the basin where it began. What leaves the floats is
    left out; where W is positive definite, one start is enough.

    >>> import numpy as np
    >>> from nnbm import gallery
    >>> climbed(gallery.two_modes(), np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 0.0]])).shape
    (2, 2)
    """
    couplings, unit = couplings_of(model), _units(model)
    # copies: one type of array for all models, or every other one would compile the kernel anew
    bias, diagonal, lower, upper = map(np.array, (model.bias, model.diagonal, model.lower, model.upper))
    found: list[FloatArray] = []
    # walls only narrow a variable, so of a positive definite W the bound is convex, however slow the climb
    several = model.copositivity.verdict is not Verdict.POSITIVE_DEFINITE
    for start in starts if several else starts[:1]:
        mean = np.array(start)
        _climb(couplings, bias, diagonal, lower, upper, unit, _SWEEPS, mean)
        apart = all((np.abs(mean - other) > _SAME * unit).any() for other in found)
        if apart and np.isfinite(mean).all():
            found.append(mean)
    if not found:
        return np.empty((0, model.n))
    means = np.array(found)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = log_mass(model, means)
    return means[np.isfinite(mass)][np.argsort(-mass[np.isfinite(mass)], kind="stable")]


def log_mass(model: NNBM, means: FloatArray) -> FloatArray:
    """(modes,) the bound of ln Z in each mode: independent sites in the others' means, couplings counted once."""
    off = np.asarray((model.coupling @ means.T).T) - model.diagonal * means
    sites = model.site.moments(model.bias - off, np.broadcast_to(model.diagonal, means.shape)).log_partition
    return np.asarray(sites.sum(axis=1) + 0.5 * (off * means).sum(axis=1))


def _units(model: NNBM) -> FloatArray:
    """(n,) how wide a variable alone can be."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(model.diagonal > 0.0, 1.0 / np.sqrt(np.abs(model.diagonal)), math.inf)
    return np.minimum(own, model.upper - model.lower)

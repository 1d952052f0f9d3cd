"""The path from independent sites to the model, along which tempering swaps and annealing walks.

About a centre m the couplings (x_i - m_i) w_ij (x_j - m_j) are switched on by t; at t = 0 the sites are independent,
in the field that the others have at m. One such path per centre, one centre per mode, and the mixture of them:

    p_t(x) ∝ exp(-E(x)) sum_k rho_k exp((1 - t) U_k(x)),   U_k = 1/2 (x - m_k)' W_off (x - m_k) - ln Z_k   (EQ 14)

with Z_k the norm at t = 0, so that p_0 is the normalised mixture sum_k rho_k q_k, from which draws are exact, and p_1
the model, with the model's own Z. Modes exchange where labels do, at small t, and the path within each is short: it
leads from a mode's mean field to the mode, not from disorder to order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.draw import box_draw, excess
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.couplings import Couplings, couplings_of, dense_field, sparse_field
from nnbm.sampling.mean_field_modes import climbed, log_mass
from nnbm.sampling.starts import crowd_of_starts
from nnbm.sampling.update import Conditionals, conditionals_of
from nnbm.stream import StreamArray, load, store, uniform

__all__ = ["Path", "advance", "log_factor", "path_about", "path_of", "potentials_of", "sweep_cost"]

_FEWEST_STARTS, _FIRST_STARTS, _MOST_STARTS, _STARTED_SITES = 2, 16, 128, 40_000  # of climbs: some tenths of a second
_STARTS_PER_MODE = 3  # fewer suggest that there are modes unseen: a bump may stand anywhere
_MOST_MODES = 64
_CENTRE_SHARE = 0.1  # of draws at t = 0 that start between the modes, for those that were not found
_EVEN_SHARE = 0.5  # of the rest goes to all modes alike: their mean-field masses are only estimates
_RELAXED, _MOST_RELAXATIONS = 6.0, 300  # e-folds of what is common to all sites


class Path(NamedTuple):
    """The path as kernels read it: U_k(x) = 1/2 x'W_off x - fields_k.x - constants_k.

    fields: (centres, n) W_off m_k. constants: (centres,) sum_i ln Z1(b_i - fields_ki, w_ii). log_shares: (centres,)
    ln rho_k.
    """

    couplings: Couplings
    given: Conditionals
    fields: FloatArray
    constants: FloatArray
    log_shares: FloatArray


def path_of(model: NNBM, seed: np.random.SeedSequence) -> Path:
    """The path about all mean-field modes that are found from dispersed starts, and about the middle between them."""
    modes = _modes(model, seed)
    if len(modes) < 2:
        return path_about(model, modes if len(modes) else _between(model), np.ones(1))
    mass = log_mass(model, modes)
    share = np.exp(mass - mass.max())
    share = (1.0 - _EVEN_SHARE) * share / share.sum() + _EVEN_SHARE / share.size
    centres = np.concatenate([modes, _between(model)])
    return path_about(model, centres, np.append((1.0 - _CENTRE_SHARE) * share, _CENTRE_SHARE))


def _modes(model: NNBM, seed: np.random.SeedSequence) -> FloatArray:
    """(modes, n) by mean field, from ever more starts as long as new ones turn up."""
    most = max(_FEWEST_STARTS, min(_MOST_STARTS, _STARTED_SITES // model.n))
    starts = min(_FIRST_STARTS, most)
    while True:
        modes = climbed(model, crowd_of_starts(model, starts, seed))
        if starts == most or _STARTS_PER_MODE * len(modes) <= starts:
            return modes[:_MOST_MODES]
        starts = min(2 * starts, most)


def path_about(model: NNBM, centres: FloatArray, shares: FloatArray) -> Path:
    """The path about given centres (centres, n) with shares rho_k (centres,)."""
    fields = np.ascontiguousarray((model.coupling @ centres.T).T - model.diagonal * centres)
    sites = model.site.moments(model.bias - fields, np.broadcast_to(model.diagonal, fields.shape))
    constants = sites.log_partition.sum(axis=1)
    # copies: one type of array for all models, or every other one would compile the kernels anew
    given = Conditionals._make(np.array(part) for part in conditionals_of(model))
    return Path(couplings_of(model), given, fields, constants, np.log(shares))


def _between(model: NNBM) -> FloatArray:
    """(1, n) naive mean field relaxed for a while from free sites, all at once: as symmetric as the model still."""
    l, diagonal, left = model.bias, model.diagonal, _RELAXED
    for _ in range(_MOST_RELAXATIONS):
        moments = model.site.moments(l, diagonal)
        # a longer step could swing further out each time
        reach = float((abs(model.coupling) @ moments.variance - diagonal * moments.variance).max())
        step = min(1.0 / (1.0 + reach), left)
        l = l + step * (model.bias - np.asarray(model.coupling @ moments.mean) + diagonal * moments.mean - l)
        left -= step
        if left <= 0.0:
            break
    return model.site.moments(l, diagonal).mean[None]


def sweep_cost(path: Path) -> float:
    """About how long `advance` and a swap take, in tens of nanoseconds."""
    centres, n = path.fields.shape
    neighbours = path.couplings.weights.size / 8.0 + path.couplings.dense.size / 16.0
    return 30.0 + 2.0 * n + neighbours + centres * (4.0 + 0.1 * n)


@kernel()
def _sweep(path: Path, label: int, t: float, x: FloatArray, row: StreamArray) -> float:
    """Draw every site, by label, from its conditional with the couplings t about centre `label`; 1/2 x'W_off x."""
    bias, diagonal, lower, upper, one_wall, scale = path.given
    # numba counts references of every array in a tuple that is handed on: hence one by one, and outside the loop
    dense, pointers, middle, neighbours, weights = path.couplings
    is_dense = dense.shape[0] > 0
    own = path.fields[label]
    stream, energy = load(row), 0.0
    for i in range(x.size):
        if is_dense:
            below, above = dense_field(dense[i], i, x)
        else:
            below, above = sparse_field(pointers, middle, neighbours, weights, i, x)
        field = t * (below + above) + (1.0 - t) * own[i]
        if one_wall[i]:
            over, stream = excess((field - bias[i] + diagonal[i] * lower[i]) * scale[i], stream)
            x[i] = lower[i] + over * scale[i]
        else:
            x[i], stream = box_draw(bias[i] - field, diagonal[i], lower[i], upper[i], stream)
        energy += below * x[i]
    store(stream, row)
    return energy


@kernel()
def log_factor(log_shares: FloatArray, t: float, potentials: FloatArray) -> float:
    """ln sum_k rho_k exp((1 - t) U_k): p_t without its energy, and without its norm."""
    if log_shares.size == 1:
        return (1.0 - t) * potentials[0]
    top = -np.inf
    for k in range(log_shares.size):
        top = max(top, log_shares[k] + (1.0 - t) * potentials[k])
    total = 0.0
    for k in range(log_shares.size):
        total += math.exp(log_shares[k] + (1.0 - t) * potentials[k] - top)
    return top + math.log(total)


@kernel()
def _label(log_shares: FloatArray, t: float, potentials: FloatArray, row: StreamArray) -> int:
    """A centre given the state: at t = 0 given nothing, so that the sweep after it draws a new state altogether."""
    last = log_shares.size - 1
    if last == 0:
        return 0
    stream = load(row)
    u, stream = uniform(stream)
    store(stream, row)
    total = log_factor(log_shares, t, potentials) if t > 0.0 else 0.0
    for k in range(last):
        u -= math.exp(log_shares[k] + ((1.0 - t) * potentials[k] if t > 0.0 else 0.0) - total)
        if u <= 0.0:
            return k
    return last


@kernel()
def advance(path: Path, t: float, x: FloatArray, potentials: FloatArray, row: StreamArray) -> None:
    """One sweep at t: x (n,) in place, and its U_k in `potentials` (centres,), which must be those of x before.

    At t = 0 the new state does not depend on the old one.
    """
    label = _label(path.log_shares, t, potentials, row)
    energy = _sweep(path, label, t, x, row)
    for k in range(potentials.size):
        linear = 0.0
        for i in range(x.size):
            linear += path.fields[k, i] * x[i]
        potentials[k] = energy - linear - path.constants[k]


def potentials_of(path: Path, x: FloatArray) -> FloatArray:
    """(count, centres) the U_k of states x (count, n)."""
    energy = np.array([_energy(path.couplings, state) for state in x])
    return np.asarray(energy[:, None] - x @ path.fields.T - path.constants)


@kernel()
def _energy(couplings: Couplings, x: FloatArray) -> float:
    """1/2 x'W_off x."""
    dense, pointers, middle, neighbours, weights = couplings
    is_dense = dense.shape[0] > 0
    total = 0.0
    for i in range(x.size):
        if is_dense:
            below, _ = dense_field(dense[i], i, x)
        else:
            below, _ = sparse_field(pointers, middle, neighbours, weights, i, x)
        total += below * x[i]
    return total

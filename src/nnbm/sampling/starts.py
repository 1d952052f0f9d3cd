"""Where chains start: apart from each other, or their agreement (R-hat) would mean nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_floats
from nnbm.draw import DRAW
from nnbm.ends import checked_points
from nnbm.model import NNBM
from nnbm.sampling.mean_field_modes import climbed
from nnbm.sampling.update import conditionals_of, update_dense, update_sparse
from nnbm.stream import sequence, streams

__all__ = ["checked_starts", "crowd_of_starts", "dispersed_starts"]

_CROWD = 8  # fills that modes are climbed from
_FEW_VARIABLES = 300  # up to so many the modes cost some milliseconds


def dispersed_starts(model: NNBM, chains: int, seed: np.random.SeedSequence) -> FloatArray:
    """(chains, n) places that lie apart: a `crowd_of_starts`, and of a small model with several modes their centres.

    The mean-field solutions of all modes that are found, best first, are taken in turn, so no mode is left without a
    chain while another has two; where there are fewer modes than chains, the crowd takes the rest.
    """
    crowd = crowd_of_starts(model, chains, seed)
    if model.n <= _FEW_VARIABLES and chains > 1:
        modes = climbed(model, crowd_of_starts(model, max(chains, _CROWD), seed))
        if len(modes) > 1:
            taken = min(len(modes), chains)
            crowd[:taken] = modes[:taken]
    return crowd


def crowd_of_starts(model: NNBM, chains: int, seed: np.random.SeedSequence) -> FloatArray:
    """(chains, n): each chain fills an empty network (x = 0, or the end next to it) in its own random order.

    Where variables suppress each other the first come win, so different orders end in different modes; every second
    chain takes the order of the one before backwards, so two that compete each win somewhere.
    """
    orders_seed, draws_seed = sequence(seed).spawn(2)
    rng, rows = np.random.default_rng(orders_seed), streams(draws_seed, chains)
    x = np.tile(np.clip(0.0, model.lower, model.upper), (chains, 1))
    given, w = conditionals_of(model), model.coupling
    order = np.arange(model.n, dtype=np.int32)
    for k in range(chains):
        order = order[::-1].copy() if k % 2 else rng.permutation(order)
        if isinstance(w, np.ndarray):
            update_dense(DRAW, order, w, given, x[k], rows[k])
        else:
            update_sparse(DRAW, order, w.indptr, w.indices, w.data, given, x[k], rows[k])
    return x


def checked_starts(model: NNBM, chains: int, initial: ArrayLike) -> FloatArray:
    """(chains, n) from what the user gave: one point for all chains, (n,), or one each."""
    points = as_floats("initial", initial)
    if points.shape not in ((model.n,), (chains, model.n)):
        raise ValueError(
            f"initial: shape ({model.n},) or ({chains}, {model.n}) is needed; its shape is {points.shape}."
        )
    inside = checked_points("initial", points, model.lower, model.upper, "Clip it.")
    return np.array(np.broadcast_to(inside, (chains, model.n)))

"""Where chains start: apart from each other, or their agreement (R-hat) would mean nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_floats, forbid
from nnbm.model import NNBM
from nnbm.sampling.update import update_dense, update_sparse
from nnbm.stream import streams

__all__ = ["checked_starts", "dispersed_starts"]


def dispersed_starts(model: NNBM, chains: int, seed: np.random.SeedSequence) -> FloatArray:
    """(chains, n): each chain fills an empty network site by site, in its own random order.

    Where variables suppress each other the first come win, so different orders end in different modes; every second
    chain takes the order of the one before backwards, so two that compete each win somewhere.
    """
    orders_seed, draws_seed = seed.spawn(2)
    rng, rows = np.random.default_rng(orders_seed), streams(draws_seed, chains)
    x, scale, w = np.zeros((chains, model.n)), 1.0 / np.sqrt(model.diagonal), model.coupling
    order = np.arange(model.n, dtype=np.int32)
    for k in range(chains):
        order = order[::-1].copy() if k % 2 else rng.permutation(order)
        if isinstance(w, np.ndarray):
            update_dense(order, w, model.bias, scale, x[k], rows[k])
        else:
            update_sparse(order, w.indptr, w.indices, w.data, model.bias, scale, x[k], rows[k])
    return x


def checked_starts(model: NNBM, chains: int, initial: ArrayLike) -> FloatArray:
    """(chains, n) from what the user gave: one point for all chains, (n,), or one each."""
    points = as_floats("initial", initial)
    if points.shape not in ((model.n,), (chains, model.n)):
        raise ValueError(
            f"initial: shape ({model.n},) or ({chains}, {model.n}) is needed; its shape is {points.shape}."
        )
    forbid("initial", points, points < 0, "the model lives on x >= 0", "Clip it.")
    return np.array(np.broadcast_to(points, (chains, model.n)))

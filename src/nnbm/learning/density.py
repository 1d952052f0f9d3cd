"""ln Z of a learned model, for its likelihood: without sampling where that is accurate, by sampling elsewhere."""

from __future__ import annotations

import warnings

from nnbm.errors import UnreliableWarning
from nnbm.inference.infer import infer
from nnbm.model import NNBM
from nnbm.sampling.partition import log_partition
from nnbm.stream import Seed

__all__ = ["log_norm"]

_ERROR = 0.01  # of ln Z by sampling, which shifts the scores of all rows alike
_DENSE_VARIABLES = 2000  # above, inference takes longer than sampling does


def log_norm(model: NNBM, seed: Seed) -> float:
    """ln Z of the model by `infer` where it does not warn, else by `log_partition` to 0.01.

    >>> from nnbm import gallery
    >>> round(log_norm(gallery.two_modes(), 0), 3)
    4.572
    """
    if model.n <= _DENSE_VARIABLES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreliableWarning)
            found = infer(model, throw=False)
        if found.status.reliable and found.log_partition is not None:
            return found.log_partition
    return log_partition(model, error=_ERROR, seed=seed, progress=False).value

"""How many rungs, and where: from the rejections of swaps seen in a pilot (Syed, Bouchard-Côté, Deligiannidis & Doucet,
Non-reversible parallel tempering, 2021).
"""

from __future__ import annotations

import numpy as np

from nnbm.arrays import FloatArray

__all__ = ["best_pairs", "respaced", "round_trip_rate"]

_MOST_PAIRS = 100


def respaced(ladder: FloatArray, rejections: FloatArray, pairs: int) -> FloatArray:
    """(pairs + 1,) rungs between the same ends with equal shares of the barrier, the sum of `rejections` (rungs - 1,).

    >>> import numpy as np
    >>> respaced(np.array([0.0, 0.5, 1.0]), np.array([0.6, 0.2]), 2).round(3)
    array([0.   , 0.333, 1.   ])
    """
    floor = 1e-6 * max(rejections.sum(), 1.0) + 1e-12  # so that the barrier increases strictly
    barrier = np.concatenate([[0.0], np.cumsum(rejections + floor)])
    rungs = np.interp(np.linspace(0.0, barrier[-1], pairs + 1), barrier, ladder)
    rungs[[0, -1]] = ladder[[0, -1]]
    return rungs


def round_trip_rate(barrier: float, pairs: int) -> float:
    """Round trips per sweep of the ladder if every swap is refused equally often: 1 / (2 + 2 sum r / (1 - r))."""
    refused = barrier / pairs
    return 0.0 if refused >= 1.0 else 1.0 / (2.0 + 2.0 * pairs * refused / (1.0 - refused))


def best_pairs(barrier: float) -> int:
    """The number of neighbouring rungs with the most round trips per sweep of a site: some two per unit of barrier.

    >>> best_pairs(0.9), best_pairs(4.0)
    (2, 8)
    """
    if barrier >= _MOST_PAIRS:
        return _MOST_PAIRS
    return max(range(1, _MOST_PAIRS + 1), key=lambda pairs: round_trip_rate(barrier, pairs) / (pairs + 1))

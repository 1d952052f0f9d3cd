"""What can be known about a coupling matrix, and how verdicts on blocks combine."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from nnbm.arrays import FloatArray, IntArray

__all__ = [
    "BY_CHOLESKY", "BY_DROPPING", "BY_PROJECTING", "BY_SEARCH", "BY_SLOPE", "PAIR_LIMIT", "Copositivity", "Verdict",
    "combined", "refuted", "refuted_by_pair", "undecided",
]  # fmt: skip

# a coupling, at unit diagonal, that is -1 or less within rounding
PAIR_LIMIT = 20.0 * float(np.finfo(np.float64).eps) - 1.0

BY_CHOLESKY = "it has a Cholesky factor, with a margin for rounding"
BY_DROPPING = "positive definite plus nonnegative: drop the positive couplings"
BY_SLOPE = "positive definite plus nonnegative: the slope at the minimum"
BY_PROJECTING = "positive definite plus nonnegative: alternating projections"
BY_SEARCH = "exhaustive search of the possible supports"


class Verdict(enum.Enum):
    """What is known about a coupling matrix; the value is the sentence to show."""

    POSITIVE_DEFINITE = "positive definite: the partition function is finite for every bias"
    BOUNDED = "every variable has two ends: the partition function is finite for every bias and coupling"
    COPOSITIVE = "strictly copositive: the partition function is finite for every bias"
    UNPROVEN = "neither proved nor refuted to be strictly copositive: the partition function may be infinite"
    NOT_COPOSITIVE = "not strictly copositive: the partition function is infinite for some biases"


@dataclass(frozen=True)
class Copositivity:
    """A verdict, how it is known, and for NOT_COPOSITIVE a `witness` (n,) with x'Wx <= 0.

    The witness is x >= 0 of sum 1, or a direction that never leaves a box.
    """

    verdict: Verdict
    certificate: str
    witness: FloatArray | None


def refuted(point: FloatArray, how: str) -> Copositivity:
    """The verdict that `point` with x'Wx <= 0 settles: x >= 0, or another direction that has no end."""
    return Copositivity(Verdict.NOT_COPOSITIVE, f"a direction x with x'Wx <= 0 was found by {how}", point)


def refuted_by_pair(size: int, i: int, j: int) -> Copositivity:
    """The same where w_ij <= -1 at unit diagonal: x_i = x_j = 1/2."""
    pair = np.zeros(size)
    pair[[i, j]] = 0.5
    return refuted(pair, "looking at pairs")


def combined(size: int, blocks: Iterable[tuple[IntArray, Copositivity]]) -> Copositivity:
    """The verdict on a matrix from those on its blocks, asked for one by one until one is refuted."""
    reasons: dict[str, None] = {}
    unproven: Copositivity | None = None
    for block, found in blocks:
        if found.witness is not None:
            witness = np.zeros(size)
            witness[block] = found.witness
            return replace(found, witness=witness)
        if found.verdict is Verdict.UNPROVEN:
            unproven = unproven or found
        reasons[found.certificate] = None
    if unproven is not None:
        return unproven
    known = "; ".join(reasons)
    return Copositivity(
        Verdict.COPOSITIVE,
        f"every block of variables linked by negative couplings is certified ({known})",
        None,
    )


def undecided(size: int, tried: list[str]) -> Copositivity:
    """The honest answer for a block of `size` variables after all that was `tried`."""
    return Copositivity(
        Verdict.UNPROVEN,
        f"a block of {size} variables linked by negative couplings is undecided after {', '.join(tried)}",
        None,
    )

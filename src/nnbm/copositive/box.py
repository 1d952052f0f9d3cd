"""Whether exp(b'x - x'Wx / 2) has a finite integral over lower <= x <= upper for every b.

It has iff x'Wx > 0 along every direction that never leaves the box: a variable with two ends cannot move, one with a
lower end moves up only, one without ends both ways. After a change of signs that is strict copositivity, once the
variables without ends are minimised over: W must be positive definite on them, and its Schur complement on the others
strictly copositive.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from nnbm.arrays import FloatArray, IntArray
from nnbm.copositive.definite import DENSE_VARIABLES, EPS, is_positive_definite
from nnbm.copositive.entries import row_of_each_entry, with_data
from nnbm.copositive.orthant import examine
from nnbm.copositive.verdict import Copositivity, Verdict, refuted, undecided

__all__ = ["examine_in_box"]


def examine_in_box(coupling: FloatArray | sparse.csr_array, lower: FloatArray, upper: FloatArray) -> Copositivity:
    """Proof, disproof or "unproven" that Z is finite for every bias between these ends, (n,) each.

    `coupling` (n, n) as in `examine`, w_ii > 0 for every variable that lacks an end. A witness is a direction (n,)
    that stays within the box, whose sizes sum to 1, with x'Wx <= 0.

    >>> import numpy as np
    >>> examine_in_box(np.array([[1.0, -2.0], [-2.0, 1.0]]), np.zeros(2), np.array([1.0, np.inf])).verdict.name
    'COPOSITIVE'
    >>> refusal = examine_in_box(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([0.0, -np.inf]), np.full(2, np.inf))
    >>> refusal.verdict.name, refusal.witness.tolist()
    ('NOT_COPOSITIVE', [0.3333333333333333, -0.6666666666666666])
    """
    up, down = np.isposinf(upper), np.isneginf(lower)
    if up.all() and not down.any():
        return examine(coupling)
    moving = np.flatnonzero(up | down)
    if moving.size == 0:
        return Copositivity(Verdict.BOUNDED, "every variable has two ends", None)
    signs = np.where(up, 1.0, -1.0)[moving]
    found = _examine_moving(_signed(coupling, moving, signs), np.flatnonzero((up & down)[moving]))
    if found.witness is not None:
        direction = np.zeros(lower.size)
        direction[moving] = signs * found.witness
        return replace(found, witness=direction / np.abs(direction).sum())
    if found.verdict is Verdict.POSITIVE_DEFINITE and moving.size < lower.size:  # of W as a whole nothing is known
        return replace(found, verdict=Verdict.COPOSITIVE)
    return found


def _signed(
    coupling: FloatArray | sparse.csr_array, places: IntArray, signs: FloatArray
) -> FloatArray | sparse.csr_array:
    """W on `places`, every one-ended variable turned so that it moves up."""
    if isinstance(coupling, np.ndarray):
        return coupling[np.ix_(places, places)] * np.outer(signs, signs)
    part = sparse.csr_array(coupling[places][:, places])
    part.sort_indices()
    return with_data(part, part.data * signs[row_of_each_entry(part)] * signs[part.indices])


def _examine_moving(turned: FloatArray | sparse.csr_array, free: IntArray) -> Copositivity:
    """The verdict where `free` variables move both ways and all others up."""
    as_if_up = examine(turned)
    if free.size == 0 or as_if_up.witness is not None or as_if_up.verdict is Verdict.POSITIVE_DEFINITE:
        return as_if_up
    size = turned.shape[0]
    if size > DENSE_VARIABLES:
        return undecided(size, ["positive definiteness"])
    w = turned if isinstance(turned, np.ndarray) else turned.toarray()
    root = np.sqrt(w.diagonal())
    found = _examine_unit(w / np.outer(root, root), free)
    return found if found.witness is None else replace(found, witness=found.witness / root)


def _examine_unit(unit: FloatArray, free: IntArray) -> Copositivity:
    """The same for a dense matrix of unit diagonal."""
    own = unit[np.ix_(free, free)]
    if not is_positive_definite(own):
        direction = np.zeros(len(unit))
        direction[free] = np.linalg.eigh(own)[1][:, 0]
        return refuted(direction, "looking at the variables without ends")
    others = np.setdiff1d(np.arange(len(unit)), free)
    # the best answer of the free variables to the others
    answer = -cho_solve(cho_factor(own, lower=True), unit[np.ix_(free, others)])
    schur = unit[np.ix_(others, others)] + unit[np.ix_(others, free)] @ answer
    schur.flat[:: others.size + 1] -= EPS * len(unit) * (len(unit) + 8)  # what is left of a 0 by rounding
    found = _examine_rest(schur)
    if found.witness is None:
        return found
    direction = np.empty(len(unit))
    direction[others], direction[free] = found.witness, answer @ found.witness
    return replace(found, witness=direction)


def _examine_rest(schur: FloatArray) -> Copositivity:
    """The verdict on a Schur complement, whose diagonal need not be positive."""
    if len(schur) == 0:
        return Copositivity(Verdict.POSITIVE_DEFINITE, "it is positive definite on the variables without ends", None)
    own = schur.diagonal()
    if (own <= 0.0).any():
        direction = np.zeros(len(schur))
        direction[int(own.argmin())] = 1.0
        return refuted(direction, "looking at one variable and those without ends")
    return examine(0.5 * (schur + schur.T))

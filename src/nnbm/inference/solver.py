"""The only iteration loop: steps, Anderson acceleration, step back from infeasible points, homotopy, history.

A method supplies `step(y)`: the move it would make from y with its residual, or None where y is outside its domain.
Anderson acceleration of type II (Walker & Ni 2011) mixes the last moves; y is dimensionless by the method's choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.linalg.dense import solve_in_place

__all__ = ["Options", "Outcome", "Path", "Step", "follow", "iterate"]

# a residual that falls by as much in one step is Newton's: what was learnt further away would spoil the next
_QUADRATIC = 0.025

Step = Callable[[FloatArray], tuple[FloatArray, float] | None]


@dataclass(frozen=True)
class Options:
    """How hard to try.

    tolerance: of the residual, a relative change. sweeps: most steps from one starting point. memory: steps that
    Anderson acceleration mixes. patience: steps without a new best residual before giving up. largest: bound on
    every component of an accelerated move, beyond twice the plain one. smallest_stride: where a homotopy says that the
    solution ends.
    """

    tolerance: float = 1e-9
    sweeps: int = 150
    memory: int = 6
    patience: int = 40
    largest: float = 1.1
    smallest_stride: float = 2e-3

    def __post_init__(self) -> None:
        if not self.tolerance > 0 or self.sweeps < 1:
            raise ValueError(
                f"options: tolerance > 0 and sweeps >= 1 are needed, but they are {self.tolerance} and {self.sweeps}."
            )


@dataclass(frozen=True)
class Outcome:
    """Where an iteration ended: the last feasible y, whether it converged, and the residual of every step."""

    y: FloatArray
    converged: bool
    history: tuple[float, ...]


def iterate(step: Step, start: FloatArray, options: Options) -> Outcome:
    """Step from `start` until the residual is below the tolerance, the patience ends or nothing feasible is left."""
    y, moves = start, _Moves(options, start.size)
    history: list[float] = []
    best, since_best, halvings = math.inf, 0, 0
    feasible: FloatArray | None = None
    while len(history) < options.sweeps and since_best < options.patience:
        made = step(y)
        if made is None or not math.isfinite(made[1]):
            history.append(math.inf)
            halvings += 1
            if feasible is None or halvings > 10:
                break
            y = feasible + 0.5 * (y - feasible)
            moves.forget()
            continue
        feasible, halvings = y, 0
        move, residual = made
        history.append(residual)
        if residual < options.tolerance:
            return Outcome(y, True, tuple(history))
        since_best = 0 if residual < best else since_best + 1
        fell = residual < _QUADRATIC * best
        best = min(best, residual)
        y = moves.next(y, move, plainly=fell)
    return Outcome(start if feasible is None else feasible, False, tuple(history))


class _Moves:
    """The last points and moves, and the mixture of them that would have cancelled the residual."""

    def __init__(self, options: Options, size: int) -> None:
        self._options = options
        # the latest point and move, and rings of the differences between successive ones
        self._latest = np.empty((2, size))
        self._by_point, self._by_move = np.empty((2, max(0, options.memory), size))
        self.forget()

    def forget(self) -> None:
        self._seen = 0

    def next(self, y: FloatArray, move: FloatArray, *, plainly: bool = False) -> FloatArray:
        """(size,) where to go from y: by the mixed move, as far as that is not much further than the plain one."""
        self._seen += 1
        after, mixed = _advance(
            self._seen, plainly, y, move, self._latest, self._by_point, self._by_move, self._options.largest
        )
        if not mixed:
            self.forget()
        return after


@kernel(error_model="numpy")
def _advance(
    seen: int, plainly: bool, y: FloatArray, move: FloatArray, latest: FloatArray, by_point: FloatArray,
    by_move: FloatArray, largest: float,
) -> tuple[FloatArray, bool]:  # fmt: skip
    """The next y, and False if the moves depend on each other too much to be mixed."""
    memory, known = len(by_point), 0
    if seen > 1 and memory > 0:
        by_point[(seen - 2) % memory] = y - latest[0]
        by_move[(seen - 2) % memory] = move - latest[1]
    if seen > 2 and not plainly:
        known = min(seen - 1, memory)
    latest[0], latest[1] = y, move
    weights = by_move[:known] @ move
    mixed = _solve_gram(by_move[:known] @ by_move[:known].T, weights)
    after = y + move
    for k in range(y.size):
        step = move[k]
        if mixed:
            for row in range(known):
                step -= weights[row] * (by_point[row, k] + by_move[row, k])
        reach = largest + 2.0 * abs(move[k])
        after[k] = y[k] + min(max(step, -reach), reach)
    return after, mixed


@kernel(error_model="numpy")
def _solve_gram(gram: FloatArray, right: FloatArray) -> bool:
    """right becomes gram^{-1} right by Cholesky, with a ridge at rounding; False where that is not enough."""
    for j in range(right.size):
        pivot = gram[j, j] * (1.0 + 1e-12)
        for k in range(j):
            pivot -= gram[j, k] * gram[j, k]
        if not pivot > 0.0:
            return False
        gram[j, j] = math.sqrt(pivot)
        for i in range(j + 1, right.size):
            for k in range(j):
                gram[i, j] -= gram[i, k] * gram[j, k]
            gram[i, j] /= gram[j, j]
    solve_in_place(gram, right)
    return True


@dataclass(frozen=True)
class Path:
    """Where a homotopy ended: `reached` is 1 when it arrived."""

    outcome: Outcome
    reached: float


def follow(step_at: Callable[[float], Step], start: FloatArray, options: Options) -> Path:
    """Switch the couplings on, t = 0 -> 1, each solution starting the next; strides adapt to what converges.

    Points are extrapolated along the path. `start` solves t = 0. The history is that of all steps together.
    """
    here, previous = (0.0, start), None
    stride = 0.25
    history: list[float] = []
    while here[0] < 1.0 and stride >= options.smallest_stride:
        t = min(1.0, here[0] + stride)
        guess = here[1]
        if previous is not None:
            guess = guess + (t - here[0]) / (here[0] - previous[0]) * (here[1] - previous[1])
        found = iterate(step_at(t), guess, options)
        history += found.history
        if found.converged:
            previous, here = here, (t, found.y)
            stride *= 1.5
        else:
            stride *= 0.5
    return Path(Outcome(here[1], here[0] == 1.0, tuple(history)), here[0])

"""The only iteration loop: steps, Anderson acceleration, step back from infeasible points, homotopy, history.

A method supplies `step(y)`: the move it would make from y with its residual, or None where y is outside its domain.
Anderson acceleration of type II (Walker & Ni 2011) mixes the last moves; y is dimensionless by the method's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray

__all__ = ["Options", "Outcome", "Path", "Step", "follow", "iterate"]

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
    y, moves = start, _Moves(options.memory)
    history: list[float] = []
    best, since_best, halvings = np.inf, 0, 0
    feasible: FloatArray | None = None
    while len(history) < options.sweeps and since_best < options.patience:
        made = step(y)
        if made is None or not np.isfinite(made[1]):
            history.append(np.inf)
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
        best = min(best, residual)
        reach = options.largest + 2.0 * np.abs(move)
        y = y + np.clip(moves.mix(y, move), -reach, reach)
    return Outcome(start if feasible is None else feasible, False, tuple(history))


class _Moves:
    """The last points and moves, and the mixture of them that would have cancelled the residual."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.forget()

    def forget(self) -> None:
        self._points: list[FloatArray] = []
        self._moves: list[FloatArray] = []

    def mix(self, y: FloatArray, move: FloatArray) -> FloatArray:
        self._points.append(y)
        self._moves.append(move)
        if len(self._points) < 3:
            return move
        del self._points[: -self._memory - 1], self._moves[: -self._memory - 1]
        by_point = np.diff(np.array(self._points), axis=0)
        by_move = np.diff(np.array(self._moves), axis=0)
        gram = by_move @ by_move.T
        gram.flat[:: len(gram) + 1] *= 1.0 + 1e-12
        try:
            weights = np.linalg.solve(gram, by_move @ move)
        except np.linalg.LinAlgError:
            self.forget()
            return move
        return move - weights @ (by_point + by_move)


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

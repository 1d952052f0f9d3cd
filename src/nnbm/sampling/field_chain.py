"""A chain of trajectories in the fields (`field_dynamics`): its kernels and its state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.sampling.field_dynamics import (
    INNER_KICK,
    INNER_MOVE,
    OUTER_KICK,
    OUTER_MOVE,
    Soft,
    Walls,
    begin,
    energy,
    finish,
    kick,
    means_beside_walls,
    move,
    other_means,
)
from nnbm.sampling.products import multiply
from nnbm.sampling.rows import apart
from nnbm.sampling.split import Split, noise, times_sparse
from nnbm.site.interval_statistics import workspace
from nnbm.stream import StreamArray, load, store, uniform

__all__ = ["FieldChain", "Plan", "trajectory"]


@dataclass(frozen=True)
class Plan:
    """How all chains of a model run: steps of about this size, about so many of them, directions of smaller mass."""

    bias: FloatArray
    part: Split
    walls: Walls
    soft: Soft
    step: float
    length: int


@kernel(error_model="numpy")
def trajectory(
    part: Split, bias: FloatArray, walls: Walls, soft: Soft, step: float, rounds: int, room: FloatArray,
    inner: FloatArray, along: FloatArray, nodes: FloatArray,
) -> None:  # fmt: skip
    """Run `rounds` times three steps from the fields and velocities in room (rows y, v, l)."""
    matrix, pointers, neighbours, weights = part.matrix, part.pointers, part.neighbours, part.weights
    table, place, gain, shift, some = walls.means, walls.place, walls.gain, walls.shift, walls.others.size > 0
    through, speedup, dense = soft.through, soft.speedup, matrix.size > 0
    y, v, l, m, force = room[0], room[1], room[2], room[3], room[4]
    last = 3 * rounds
    for k in range(last + 1):
        if means_beside_walls(table, l, place, gain, shift, m) > 0 or some:
            other_means(l, walls, nodes, m)
        if dense:
            multiply(matrix, m, force)
        else:
            times_sparse(pointers, neighbours, weights, m, force)
        turn = k % 3
        share = INNER_KICK if turn else (OUTER_KICK if k in (0, last) else 2.0 * OUTER_KICK)
        kick(through, speedup, 3.0 * step * share, m, force, y, v, inner, along)
        if k < last:
            move(bias, 3.0 * step * (INNER_MOVE if turn == 1 else OUTER_MOVE), y, v, l, inner, along)


@kernel(error_model="numpy")
def _draws(
    part: Split, bias: FloatArray, walls: Walls, soft: Soft, step: float, length: int, x: FloatArray, row: StreamArray,
    sweeps: int, draws: FloatArray, tally: FloatArray,
) -> None:  # fmt: skip
    """Fill draws (count, n), each after `sweeps` trajectories; tally (3,): trajectories, acceptance, steps."""
    n, rank = x.size, part.factor.shape[0] if part.factor.size > 0 else part.i.size
    room, normals, inner = np.empty((7, n)), np.empty((2, rank)), np.empty(3)
    along, nodes = np.empty((2, soft.speedup.size)), workspace()
    y, v, l, first, second = room[0], room[1], room[2], room[5], room[6]
    stream = load(row)
    for count in range(draws.shape[0]):
        for _ in range(sweeps):
            stream = noise(part, normals, first, second, inner, stream)
            if part.matrix.size > 0:
                multiply(part.matrix, x, y)
            else:
                times_sparse(part.pointers, part.neighbours, part.weights, x, y)
            begin(bias, soft, x, first, second, y, v, l, inner, along)
            first[:] = l
            u, stream = uniform(stream)
            w, stream = uniform(stream)
            rounds = max(1, int(length * (0.5 + w) / 3.0 + 0.5))
            before = energy(l, walls, soft, inner, along, nodes)
            trajectory(part, bias, walls, soft, step * (0.8 + 0.4 * u), rounds, room, inner, along, nodes)
            change = energy(l, walls, soft, inner, along, nodes) - before
            chance = min(1.0, math.exp(-change)) if change > -np.inf else 0.0
            u, stream = uniform(stream)
            # a refused trajectory leaves x a fresh draw given the fields it began with
            stream = finish(l if u <= chance else first, walls, x, stream)
            if not abs(before) < np.inf:
                x[:] = np.nan
            tally[0] += 1.0
            tally[1] += chance
            tally[2] += 3.0 * rounds
        draws[count] = x
    store(stream, row)


@dataclass(frozen=True)
class FieldChain:
    """A chain that follows a plan."""

    plan: Plan
    x: FloatArray
    row: StreamArray
    tally: FloatArray

    @classmethod
    def of(cls, plan: Plan, start: FloatArray, row: StreamArray) -> Self:
        """A chain with its own copies."""
        return cls(plan, *(apart(own[None])[0] for own in (start, row, np.zeros(3))))

    def run(self, sweeps: int, draws: FloatArray) -> None:
        """Fill draws (count, n), each after `sweeps` trajectories."""
        p = self.plan
        _draws(p.part, p.bias, p.walls, p.soft, p.step, p.length, self.x, self.row, sweeps, draws, self.tally)

    def state(self) -> Mapping[str, NDArray[Any]]:
        """All that later draws depend on, and the tally."""
        return {"x": self.x, "stream": self.row, "tally": self.tally}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such a state."""
        self.x[:], self.row[:], self.tally[:] = state["x"], state["stream"], state["tally"]

    def info(self) -> Mapping[str, float | FloatArray]:
        """Share of trajectories accepted, step size, mean number of steps, the largest speed-up."""
        trajectories = max(self.tally[0], 1.0)
        return {
            "acceptance": self.tally[1] / trajectories,
            "step": self.plan.step,
            "steps": self.tally[2] / trajectories,
            "speedup": float(self.plan.soft.speedup.max(initial=1.0)),
        }

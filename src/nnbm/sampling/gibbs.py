"""Gibbs sampling: every site in turn is drawn exactly from its conditional, or moved within it.

Geman & Geman (1984); for truncated normals Geweke (1991). No step size, any copositive coupling. Sweeps of draws
alternate with sweeps of overrelaxation (Adler 1981; Neal 1998), see `draw.moves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nnbm.arrays import FloatArray, IntArray
from nnbm.draw import DRAW, FLIP, SHIFT
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.coloring import greedy_colors
from nnbm.sampling.protocol import Chain
from nnbm.sampling.rows import apart
from nnbm.sampling.update import Conditionals, Indices, conditionals_of, update_dense, update_sparse
from nnbm.stream import Seed, StreamArray, streams

__all__ = ["Gibbs"]

Move = Literal["draw", "flip", "shift"]

_MOVES: Mapping[Move, int] = {"draw": DRAW, "flip": FLIP, "shift": SHIFT}
_BLOCK = 2**15  # sites that share a random stream in chromatic order; large enough to be worth a thread's wake-up


@kernel()
def _dense_draws(
    cycle: Indices, first: int, sites: Indices, coupling: FloatArray, given: Conditionals, x: FloatArray,
    row: StreamArray, sweeps: int, draws: FloatArray,
) -> None:  # fmt: skip
    """Fill draws (count, n), each after `sweeps` sweeps over `sites`, with the moves of the cycle from `first` on."""
    for k in range(draws.shape[0]):
        for sweep in range(sweeps):
            move = cycle[(first + k * sweeps + sweep) % cycle.size]
            update_dense(move, sites, coupling, given, x, row)
        draws[k] = x


@kernel()
def _sparse_draws(
    cycle: Indices, first: int, sites: Indices, bounds: IntArray, pointers: Indices, neighbours: Indices,
    weights: FloatArray, given: Conditionals, x: FloatArray, rows: StreamArray, sweeps: int, draws: FloatArray,
) -> None:  # fmt: skip
    """The same block after block: block k is sites[bounds[k]:bounds[k + 1]] with the random stream rows[k]."""
    for k in range(draws.shape[0]):
        for sweep in range(sweeps):
            move = cycle[(first + k * sweeps + sweep) % cycle.size]
            for block in range(bounds.size - 1):
                part = sites[bounds[block] : bounds[block + 1]]
                update_sparse(move, part, pointers, neighbours, weights, given, x, rows[block])
        draws[k] = x


class _Cycle:
    """The moves of one sweep after another, and how far a chain is in them."""

    def __init__(self, moves: Sequence[Move]) -> None:
        self.moves = np.array([_MOVES[move] for move in moves], np.int32)
        self.done = 0

    def ahead(self, sweeps: int) -> int:
        """Where the next so many sweeps begin."""
        first = self.done
        self.done = (first + sweeps) % self.moves.size
        return first


@dataclass(frozen=True)
class _DenseChain:
    coupling: FloatArray
    given: Conditionals
    sites: Indices
    cycle: _Cycle
    x: FloatArray
    row: StreamArray

    def run(self, sweeps: int, draws: FloatArray) -> None:
        moves, first = self.cycle.moves, self.cycle.ahead(sweeps * draws.shape[0])
        _dense_draws(moves, first, self.sites, self.coupling, self.given, self.x, self.row, sweeps, draws)

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"x": self.x, "streams": self.row, "cycle": np.array(self.cycle.done)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.x[:], self.row[:], self.cycle.done = state["x"], state["streams"], int(state["cycle"])

    def info(self) -> Mapping[str, float | FloatArray]:
        return {}


@dataclass(frozen=True)
class _Blocks:
    """The order of a sweep: sites (n,), cut at `bounds` (blocks + 1,); groups of blocks that do not speak to each
    other, colours, are bounds[groups[k]:groups[k + 1] + 1].
    """

    sites: Indices
    bounds: IntArray
    groups: IntArray


def _in_label_order(n: int) -> _Blocks:
    return _Blocks(np.arange(n, dtype=np.int32), np.array([0, n]), np.array([0, 1]))


def _by_color(coupling: sparse.csr_array) -> _Blocks:
    order, starts = greedy_colors(coupling)
    if np.diff(starts).max() <= _BLOCK:  # nothing for a second thread to do
        return replace(_in_label_order(order.size), sites=order)
    cuts = [np.arange(first, last, _BLOCK) for first, last in pairwise(starts)]
    bounds = np.concatenate([*cuts, starts[-1:]])
    return _Blocks(order, bounds, np.searchsorted(bounds, starts))


@dataclass(frozen=True)
class _SparseChain:
    coupling: sparse.csr_array
    given: Conditionals
    blocks: _Blocks
    cycle: _Cycle
    x: FloatArray
    rows: StreamArray  # one stream per block, so threads may take the blocks of a colour in any order
    threads: int

    def run(self, sweeps: int, draws: FloatArray) -> None:
        if self.threads > 1 and self.blocks.bounds.size > self.blocks.groups.size:
            self._run_threaded(sweeps, draws)
            return
        w, blocks = self.coupling, self.blocks
        moves, first = self.cycle.moves, self.cycle.ahead(sweeps * draws.shape[0])
        _sparse_draws(
            moves, first, blocks.sites, blocks.bounds, w.indptr, w.indices, w.data, self.given, self.x, self.rows,
            sweeps, draws,
        )  # fmt: skip

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"x": self.x, "streams": self.rows, "cycle": np.array(self.cycle.done)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.x[:], self.rows[:], self.cycle.done = state["x"], state["streams"], int(state["cycle"])

    def info(self) -> Mapping[str, float | FloatArray]:
        return {}

    def _run_threaded(self, sweeps: int, draws: FloatArray) -> None:
        groups = self.blocks.groups
        with ThreadPoolExecutor(self.threads) as pool:
            for k in range(draws.shape[0]):
                for _ in range(sweeps):
                    update = partial(self._update, int(self.cycle.moves[self.cycle.ahead(1)]))
                    for first, last in pairwise(groups):
                        # the list waits: a colour starts when the one before is done
                        list(pool.map(update, range(first, last)))
                draws[k] = self.x

    def _update(self, move: int, block: int) -> None:
        w, bounds = self.coupling, self.blocks.bounds
        part = self.blocks.sites[bounds[block] : bounds[block + 1]]
        update_sparse(move, part, w.indptr, w.indices, w.data, self.given, self.x, self.rows[block])


def _is_cycle(cycle: object) -> bool:
    return isinstance(cycle, tuple) and set(cycle) <= _MOVES.keys() and "draw" in cycle


@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling; a sweep updates every site once.

    order: "sequential" goes through the sites by label; "chromatic" colour by colour: neighbours in this order do not
    wait for each other, and on a large graph several threads can share one chain. None (default) is chromatic for a
    sparse coupling. The draws depend on the order but never on the number of threads.
    cycle: what one sweep after another does at every site: "draw" from the conditional, "flip" to the other side of its
    median, "shift" by half of its mass. Draws are needed, or nothing mixes; ("draw",) is plain Gibbs sampling. Where
    a slow direction is all that counts, more flips in a row help: ("draw",) + 7 * ("flip",).

    >>> from nnbm import gallery, sample
    >>> s = sample(gallery.square_grid(6, 6), draws=1000, method=Gibbs(order="chromatic"), seed=0)
    >>> s.draws.shape
    (4, 1000, 36)
    """

    order: Literal["sequential", "chromatic"] | None = None
    cycle: tuple[Move, ...] = ("draw", "flip", "shift", "flip")
    name = "gibbs"

    def __post_init__(self) -> None:
        if self.order not in (None, "sequential", "chromatic"):
            raise ValueError(f'order: "sequential", "chromatic" or None is meant, but order = {self.order!r}.')
        if not _is_cycle(self.cycle):
            raise ValueError(
                f"cycle: a tuple of {', '.join(map(repr, _MOVES))} with at least one 'draw' is meant, "
                f"but cycle = {self.cycle!r}. ('draw',) is plain Gibbs sampling."
            )

    def chains(self, model: NNBM, starts: FloatArray, seed: Seed, threads: int) -> Sequence[Chain]:
        """One chain per row of `starts` (chains, n)."""
        given, count = conditionals_of(model), starts.shape[0]
        states = apart(starts)
        if isinstance(model.coupling, np.ndarray) and self.order != "chromatic":
            sites, rows = _in_label_order(model.n).sites, apart(streams(seed, count))
            return [
                _DenseChain(model.coupling, given, sites, _Cycle(self.cycle), states[k], rows[k]) for k in range(count)
            ]
        coupling = sparse.csr_array(model.coupling)
        blocks = _in_label_order(model.n) if self.order == "sequential" else _by_color(coupling)
        each = blocks.bounds.size - 1
        block_rows = apart(streams(seed, count * each).reshape(count, each, 4))
        share = max(1, threads // count)
        return [
            _SparseChain(coupling, given, blocks, _Cycle(self.cycle), states[k], block_rows[k], share)
            for k in range(count)
        ]

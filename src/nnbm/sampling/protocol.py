"""What a sampler is: something that makes chains; what a chain is: something that can go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.model import NNBM
from nnbm.stream import Seed

__all__ = ["Chain", "Sampler"]


class Chain(Protocol):
    """One Markov chain: it owns its state and its random stream.

    Once a state is not finite, every later one must not be, either: the loop looks at one state per slice.
    """

    def run(self, sweeps: int, draws: FloatArray) -> None:
        """Fill `draws` (count, n), each after `sweeps` further sweeps. May run without the GIL.

        run(2, one row) must leave the chain as run(1, one row) twice: the loop cuts sweeps into slices as time goes.
        """
        ...

    def state(self) -> Mapping[str, NDArray[Any]]:
        """All that later draws and `info` depend on, by name, random streams included: a run goes on from it.

        Names, dtypes and shapes (numbers only) are those of every chain made alike. It may be the chain's own memory.
        """
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from the `state` of a chain made alike, to the last bit; what is handed over is copied."""
        ...

    def info(self) -> Mapping[str, float | FloatArray]:
        """What a person needs to know of the run so far, by name: acceptance rates, lengths. Empty if nothing."""
        ...


class Sampler(Protocol):
    """A method of `sample`, with its options as fields."""

    name: str

    def chains(self, model: NNBM, starts: FloatArray, seed: Seed, threads: int) -> Sequence[Chain]:
        """One chain per row of `starts` (chains, n), copied; `threads` are there for all of them together."""
        ...

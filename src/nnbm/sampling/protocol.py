"""What a sampler is: something that makes chains; what a chain is: something that can go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nnbm.arrays import FloatArray
from nnbm.model import NNBM
from nnbm.stream import Seed

__all__ = ["Chain", "Sampler"]


class Chain(Protocol):
    """One Markov chain: it owns its state and its random stream."""

    def run(self, sweeps: int, draws: FloatArray) -> None:
        """Fill `draws` (count, n), each after `sweeps` further sweeps. May run without the GIL."""
        ...


class Sampler(Protocol):
    """A method of `sample`, with its options as fields."""

    name: str

    def chains(self, model: NNBM, starts: FloatArray, seed: Seed, threads: int) -> Sequence[Chain]:
        """One chain per row of `starts` (chains, n), copied; `threads` are there for all of them together."""
        ...

"""Where a chain's draws go: kept in memory, summed up, or written to disk."""

from __future__ import annotations

from typing import Protocol

from nnbm.arrays import FloatArray

__all__ = ["Kept", "Sink"]


class Sink(Protocol):
    """Takes the draws of one chain, always in this order: `rows`, the chain fills them, `keep`, `pause`."""

    def rows(self, most: int) -> FloatArray:
        """(count, n) with 1 <= count <= most: the memory that the chain writes its next states to.

        A state between two draws is written to the first row and not kept; the next `rows` may be the same memory.
        """
        ...

    def keep(self, count: int) -> None:
        """The first `count` of the rows last given are draws, all finite; they are the sink's to overwrite."""
        ...

    def pause(self, sweeps: int) -> None:
        """The chain rests after `sweeps` sweeps in all, burn-in included: the moment to note its state."""
        ...


class Kept:
    """Draws (count, n) in memory, written by the chain where they stay."""

    def __init__(self, draws: FloatArray) -> None:
        self.recorded = 0
        self._draws = draws

    def rows(self, most: int) -> FloatArray:
        """The next of the draws themselves."""
        return self._draws[self.recorded : self.recorded + most]

    def keep(self, count: int) -> None:
        """They are where they stay."""
        self.recorded += count

    def pause(self, sweeps: int) -> None:
        """Draws in memory need no notes."""

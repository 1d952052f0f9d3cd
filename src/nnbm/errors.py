"""What can go wrong, by name. Every message names the argument, the rule, the place and value, and a remedy."""

from __future__ import annotations

from typing import Any

from nnbm.arrays import FloatArray, IntArray

__all__ = ["NoSite", "NotConverged", "NotCopositive", "UnreliableWarning"]


class NoSite(ValueError):
    """No one-variable density has these moments; `indices` are the (flat) places."""

    def __init__(self, message: str, indices: IntArray) -> None:
        super().__init__(message)
        self.indices = indices


class NotConverged(RuntimeError):
    """A method found no solution to rely on; `result` is the partial one."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class NotCopositive(ValueError):
    """The partition function is infinite; `witness` is a direction x >= 0 with x'Wx <= 0."""

    def __init__(self, message: str, witness: FloatArray) -> None:
        super().__init__(message)
        self.witness = witness


class UnreliableWarning(UserWarning):
    """A result came back whose own diagnostics say that it is not to be relied on."""

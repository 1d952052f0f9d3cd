"""A benchmark row, and how to time things on a noisy machine: alternate, repeat, take the best of each."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Row", "best_seconds"]

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, against what, and the bar it was to reach (None: no bar, for orientation)."""

    name: str
    value: float
    unit: str
    detail: str
    relation: Literal["<=", ">="] = "<="
    target: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the bar was reached."""
        return None if self.target is None else bool(_HOLDS[self.relation](self.value, self.target))


def best_seconds(*tasks: Callable[[], object], repeats: int = 7) -> list[float]:
    """The shortest time of each task; tasks alternate, so that a slow moment of the machine hits all alike."""
    for task in tasks:
        task()  # compile and warm up
    best = [float("inf")] * len(tasks)
    for _ in range(repeats):
        for k, task in enumerate(tasks):
            started = time.perf_counter()
            task()
            best[k] = min(best[k], time.perf_counter() - started)
    return best

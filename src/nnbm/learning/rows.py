"""A table of nonnegative measurements, checked once: what estimators read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, as_reals, forbid
from nnbm.learning.labels import label

__all__ = ["Rows"]

_BATCH = 1 << 14  # rows at a time: a node's design stays in the cache


@dataclass(frozen=True, eq=False)
class Rows:
    """columns (n, rows): one contiguous row per variable; weights (rows,) or None, counted like repeats of a row."""

    columns: FloatArray
    weights: FloatArray | None = None

    @classmethod
    def checked(
        cls,
        table: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        varying: bool = True,
    ) -> Rows:
        """From a table (rows, n), or an error with the column's name. varying: whether every column must vary.

        >>> Rows.checked([[1.0, 0.5], [0.2, -1.0]], names=["a", "b"])
        Traceback (most recent call last):
        ...
        ValueError: X: Negative values in data passed to nnbm: the model lives on x >= 0, but row 1 of 'b' is -1.0. \
Clip, shift or drop it.
        """
        x = as_reals("X", table)
        if x.ndim != 2:
            raise ValueError(f"X: a table (rows, variables) is needed; its shape is {x.shape}.")
        if 0 in x.shape:
            raise ValueError(f"X: at least one row and one variable are needed; its shape is {x.shape}.")
        _forbid(x, ~np.isfinite(x), "NaN and inf have no place in it", "Drop those rows or repair them.", names)
        negative = "Negative values in data passed to nnbm: the model lives on x >= 0"
        _forbid(x, x < 0, negative, "Clip, shift or drop it.", names)
        rows = cls(np.ascontiguousarray(x.T), None if weights is None else _checked_weights(weights, x.shape[0]))
        if varying:
            _forbid_dead_columns(rows, names)
        return rows

    @classmethod
    def of_draws(cls, draws: FloatArray) -> Rows:
        """From draws of a model (rows, n), which need no check."""
        return cls(np.ascontiguousarray(draws.T))

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.columns.shape[0]

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.columns.shape[1]

    @property
    def total(self) -> float:
        """Sum of the weights: the number of rows, repeats counted."""
        return float(self.count if self.weights is None else self.weights.sum())

    @property
    def shares(self) -> FloatArray:
        """(rows,) the weights as parts of 1."""
        return np.full(self.count, 1.0 / self.count) if self.weights is None else self.weights / self.total

    def batches(self, size: int = _BATCH) -> Iterator[Rows]:
        """The same rows, `size` at a time; none without any weight."""
        for start in range(0, self.count, size):
            part = slice(start, start + size)
            batch = Rows(self.columns[:, part], None if self.weights is None else self.weights[part])
            if batch.total > 0.0:
                yield batch

    def scaled(self, scale: FloatArray) -> Rows:
        """y = x / scale."""
        return Rows(self.columns / scale[:, None], self.weights)

    def average(self, values: FloatArray) -> FloatArray:
        """Mean over the rows (last axis)."""
        return np.asarray(values.mean(axis=-1) if self.weights is None else values @ self.weights / self.total)


def _checked_weights(weights: ArrayLike, count: int) -> FloatArray:
    w = as_reals("sample_weight", weights)
    if w.ndim == 0:
        w = np.full(count, float(w))
    if w.shape != (count,):
        raise ValueError(f"sample_weight: one per row, shape ({count},), is needed; its shape is {w.shape}.")
    bad = ~(np.isfinite(w) & (w >= 0))
    forbid("sample_weight", w, bad, "weights must be finite and not negative", "Drop those rows.")
    if not w.any():
        raise ValueError(
            "sample_weight: some weight must be positive, but every weight is zero. Leave it out to weigh rows alike."
        )
    return w


def _forbid(x: FloatArray, bad: np.ndarray, rule: str, remedy: str, names: Sequence[str] | None) -> None:
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        more = int(bad.sum()) - 1
        raise ValueError(
            f"X: {rule}, but row {row} of {label(names, column)} is {x[row, column]!s}"
            f"{f' (and {more} more places)' if more else ''}. {remedy}"
        )


def _forbid_dead_columns(rows: Rows, names: Sequence[str] | None) -> None:
    live = rows.columns if rows.weights is None else rows.columns[:, rows.weights > 0]
    constant = np.ptp(live, axis=1) == 0.0
    if live.shape[1] < 2:
        raise ValueError(f"X: at least 2 rows are needed to learn anything, but there is {live.shape[1]} sample.")
    if constant.any():
        k = int(np.argmax(constant))
        raise ValueError(
            f"X: every column must vary, but {label(names, k)} is {live[k, 0]:g} in every row"
            f"{f' (and {int(constant.sum()) - 1} more columns are constant)' if constant.sum() > 1 else ''}. Drop it."
        )

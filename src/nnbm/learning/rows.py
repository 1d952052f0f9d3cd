"""A table of measurements between the variables' ends, checked once: what estimators read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray, IntArray, as_reals, forbid
from nnbm.ends import beyond, checked_ends, domain_rule
from nnbm.learning.frame import Frame, wall_distance
from nnbm.learning.labels import label
from nnbm.site import HALF_LINE, Site, site_between

__all__ = ["Rows"]

_LARGEST, _LEAST_MEAN = 1e120, 1e-120
_BATCH = 1 << 14  # rows at a time: a node's design stays in the cache


@dataclass(frozen=True, eq=False)
class Rows:
    """columns (n, rows): one contiguous row per variable; weights (rows,) or None, counted like repeats of a row.

    site: the domain of the variables.
    """

    columns: FloatArray
    weights: FloatArray | None = None
    site: Site = HALF_LINE

    @classmethod
    def checked(
        cls,
        table: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        varying: bool = True,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
    ) -> Rows:
        """From a table (rows, n), or an error with the column's name.

        varying: whether every column must vary. lower, upper: ends of the variables, (n,) or one number.

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
        ends = checked_ends(lower, upper, x.shape[1], names)
        w = None if weights is None else _checked_weights(weights, x.shape[0])
        counted = np.arange(x.shape[0]) if w is None else np.flatnonzero(w)
        part = x if w is None else x[counted]
        nan = "NaN and inf have no place in it"
        _forbid(part, ~np.isfinite(part), nan, "Drop those rows or repair them.", names, counted)
        site, rule = site_between(*ends), domain_rule(*ends)
        if site is HALF_LINE:
            rule = f"Negative values in data passed to nnbm: {rule}"
        _forbid(part, beyond(part, *ends), rule, "Clip, shift or drop it.", names, counted)
        large = f"values above {_LARGEST:g} leave the floats when squared"
        _forbid(part, np.abs(part) > _LARGEST, large, "Measure that column in a larger unit.", names, counted)
        rows = cls(np.ascontiguousarray(part.T), None if w is None else w[counted], site)
        if varying:
            _forbid_dead_columns(rows, names)
        return rows

    @classmethod
    def of_draws(cls, draws: FloatArray, site: Site = HALF_LINE) -> Rows:
        """From draws of a model (rows, n), which need no check."""
        return cls(np.ascontiguousarray(draws.T), site=site)

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
            batch = Rows(self.columns[:, part], None if self.weights is None else self.weights[part], self.site)
            if batch.total > 0.0:
                yield batch

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """(n,) lower and upper."""
        return np.broadcast_to(self.site.lower, (self.n,)), np.broadcast_to(self.site.upper, (self.n,))

    @property
    def frame(self) -> Frame:
        """Means as centre; as scale the mean distances from the walls (on x >= 0: the means), sd without walls."""
        scale, mean = np.empty(self.n), self.average(self.columns)
        for k, (low, high) in enumerate(zip(*self.ends, strict=True)):
            scale[k] = self.average(wall_distance(self.columns[k], float(low), float(high))[0])
        spread = np.sqrt(self.average((self.columns - mean[:, None]) ** 2))
        return Frame(mean, np.where(np.isfinite(scale) & (scale > 0.0), scale, spread))

    def seen_from(self, frame: Frame) -> Rows:
        """The same rows in the frame's coordinates."""
        return Rows(frame.points(self.columns), self.weights, frame.site(self.site))

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


def _forbid(
    x: FloatArray, bad: np.ndarray, rule: str, remedy: str, names: Sequence[str] | None, counted: IntArray
) -> None:
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        more = int(bad.sum()) - 1
        raise ValueError(
            f"X: {rule}, but row {counted[row]} of {label(names, column)} is {x[row, column]!s}"
            f"{f' (and {more} more places)' if more else ''}. {remedy}"
        )


def _forbid_dead_columns(rows: Rows, names: Sequence[str] | None) -> None:
    live = rows.columns
    constant = np.ptp(live, axis=1) == 0.0
    if rows.count < 2:
        raise ValueError(f"X: at least 2 rows are needed to learn anything, but there is {rows.count} sample.")
    small = ~constant & (np.abs(live).max(axis=1) < _LEAST_MEAN)
    if small.any():
        k = int(np.argmax(small))
        raise ValueError(
            f"X: values below {_LEAST_MEAN:g} leave the floats when squared, but {label(names, k)} has no larger ones. "
            "Measure it in a smaller unit."
        )
    if constant.any():
        k = int(np.argmax(constant))
        raise ValueError(
            f"X: every column must vary, but {label(names, k)} is {live[k, 0]:g} in every row"
            f"{f' (and {int(constant.sum()) - 1} more columns are constant)' if constant.sum() > 1 else ''}. Drop it."
        )

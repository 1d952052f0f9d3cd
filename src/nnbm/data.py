"""Read a table of measurements from a file: comma, semicolon or tab separated text, or npy."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnbm.archive import FilePath
from nnbm.arrays import FloatArray, as_reals

__all__ = ["Table", "read_table"]

_SEPARATORS = ",;\t"
_TEXT = (".csv", ".tsv", ".txt")


@dataclass(frozen=True, eq=False)
class Table:
    """values (rows, n); names (n,), or empty where the file has none."""

    names: tuple[str, ...]
    values: FloatArray


def read_table(path: FilePath, columns: Sequence[str] | None = None) -> Table:
    r"""The table in a file, whose first line may hold the columns' names.

    columns: names of those to read, in this order; None reads all, and all must be numbers then. A cell that is no
    number is an error that names its line and column.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     _ = file.write_text("id,oak,ash\na,1.5,2\nb,0.5,1\n")
    ...     read_table(file, ["ash", "oak"]).values
    array([[2. , 1.5],
           [1. , 0.5]])
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        return _read_npy(path, columns)
    if suffix not in _TEXT:
        raise ValueError(f"path: a name ending in .npy, {', '.join(_TEXT)} is needed, but path = {os.fspath(path)}.")
    lines = _lines(path)
    first = next(lines, [])
    if not first:
        raise ValueError(f"path: {os.fspath(path)} is empty. Give a table.")
    names = () if all(_is_number(cell) for cell in first) else _checked_names(path, first)
    wanted = _places(path, names, columns) if columns is not None else list(range(len(first)))
    return Table(tuple(names[k] for k in wanted) if names else (), _numbers(path, names, wanted, len(first)))


def _read_npy(path: FilePath, columns: Sequence[str] | None) -> Table:
    if columns is not None:
        raise ValueError(f"columns: {os.fspath(path)} has no names to choose from. Leave it out.")
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"path: {os.fspath(path)} is not a sound npy file: {error}") from error
    return Table((), as_reals("path", values))


def _lines(path: FilePath) -> Iterator[list[str]]:
    """The cells of every line that is not blank."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        try:
            head = file.readline()
            file.seek(0)
            separator = max(_SEPARATORS, key=head.count)
            for cells in csv.reader(file, delimiter=separator, strict=True):
                if cells:
                    yield [cell.strip() for cell in cells]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"path: {os.fspath(path)} is not sound text: {error}. Save it as UTF-8 csv.") from error


def _numbers(path: FilePath, names: Sequence[str], wanted: Sequence[int], width: int) -> FloatArray:
    """(rows, wanted) the numbers below the names; line by line, so that an error knows where it is."""
    lines = _lines(path)
    if names:
        next(lines)
    rows: list[FloatArray] = []
    for number, cells in enumerate(lines, start=1):
        if len(cells) != width:
            raise ValueError(
                f"path: every row of {os.fspath(path)} must have {width} cells, but row {number} has {len(cells)}."
            )
        chosen = [cells[k] for k in wanted]
        try:
            rows.append(np.array(chosen, dtype=np.float64))
        except ValueError as error:
            k = next(k for k in wanted if not _is_number(cells[k]))
            column = repr(names[k]) if names else f"column {k}"
            cell = f"{cells[k]!r}, not a number" if cells[k] else "empty"
            raise ValueError(
                f"path: row {number} of {column} in {os.fspath(path)} is {cell}. Repair it, drop the row, or name the "
                "columns to read (columns, --columns)."
            ) from error
    return np.array(rows).reshape(len(rows), len(wanted))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _checked_names(path: FilePath, names: list[str]) -> list[str]:
    if len(set(names)) < len(names) or "" in names:
        twice = next(name for name in names if names.count(name) > 1 or not name)
        raise ValueError(
            f"path: the columns of {os.fspath(path)} need names that differ, but {twice!r} stands "
            f"{names.count(twice)} times. Rename it."
        )
    return names


def _places(path: FilePath, names: Sequence[str], columns: Sequence[str]) -> list[int]:
    missing = [name for name in columns if name not in names]
    if missing or not columns:
        known = ", ".join(names) if names else "none: its first line holds numbers"
        raise ValueError(
            f"columns: {missing[0] if missing else 'nothing'!r} is not a column of {os.fspath(path)}; they are {known}."
        )
    return [names.index(name) for name in columns]

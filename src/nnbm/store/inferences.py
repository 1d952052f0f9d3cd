"""Results of `infer` as npz files or csv tables."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.archive import FilePath, read_archive, write_archive, write_whole
from nnbm.arrays import FloatArray, as_floats, as_reals
from nnbm.inference.response import Susceptibilities
from nnbm.inference.result import Inference, Status
from nnbm.store.fields import labels, of_kind

__all__ = ["load_inference", "save_inference"]

_KIND = "nnbm inference 1"
_OTHER = "alternative_"  # prefix of the arrays that hold the alternatives, stacked


def save_inference(result: Inference, path: FilePath) -> None:
    """Write a result to a file whose name ends in .npz (all of it, alternatives too) or .csv (a row per variable).

    Covariance and ln Z are kept where the method has them and converged; susceptibilities are not kept.
    Every row of the csv repeats method, status and expected error: no part of the table can be read without them.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        solutions = [_solution(found) for found in (result, *result.alternatives)]
        parts = dict(solutions[0])
        for name in solutions[0]:
            parts[_OTHER + name] = np.array([found[name] for found in solutions[1:]])
        parts |= {"names": np.array(result.names, dtype=np.str_), "detail": np.array(result.detail)}
        write_archive(path, _KIND, parts | {"history": np.array(result.history, dtype=np.float64)})
    elif suffix == ".csv":
        write_whole(path, lambda file: file.write(_table(result).encode()))
    else:
        raise ValueError(f"path: a name ending in .npz or .csv is needed, but path = {os.fspath(path)}. Rename it.")


def load_inference(path: FilePath) -> Inference:
    """Read what `save_inference` wrote to an npz file."""
    keys = {"method", "status", "mean", "variance", "expected_error", "covariance", "log_partition", "l", "r"}
    parts = read_archive(path, _KIND, {"names", "detail", "history"} | keys | {_OTHER + key for key in keys})
    try:
        names = labels(parts["names"])
        result = _inference(names, {key: parts[key] for key in keys})
        rows = zip(*(parts[_OTHER + key] for key in keys), strict=True)
        alternatives = [_inference(names, dict(zip(keys, map(np.asarray, row), strict=True))) for row in rows]
        detail = str(of_kind("U", "detail", parts["detail"][()]))
        history = tuple(np.atleast_1d(as_reals("history", parts["history"])).tolist())
        return replace(result, detail=detail, history=history, alternatives=tuple(alternatives))
    except (ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold a sound inference: {error} Infer again.") from error


@dataclass(frozen=True)
class _Stored:
    """What was derived when the result was saved (see `result.Derived`)."""

    kept_covariance: FloatArray | None
    kept_log_partition: float | None

    def covariance(self) -> FloatArray | None:
        return self.kept_covariance

    def log_partition(self) -> float | None:
        return self.kept_log_partition

    def susceptibilities(self) -> Susceptibilities | None:
        return None


def _solution(found: Inference) -> dict[str, NDArray[Any]]:
    """The arrays of one solution; nan stands for what there is not."""
    nothing = np.full(found.n, np.nan)
    covariance = found.covariance if found.converged else None
    log_partition = found.log_partition if found.converged else None
    return {
        "method": np.array(found.method),
        "status": np.array(found.status.name),
        "mean": found.mean,
        "variance": found.variance,
        "expected_error": np.array(found.expected_error),
        "covariance": np.full((found.n, found.n), np.nan) if covariance is None else covariance,
        "log_partition": np.array(np.nan if log_partition is None else log_partition),
        "l": nothing if found.l is None else found.l,
        "r": nothing if found.r is None else found.r,
    }


def _inference(names: tuple[str, ...], parts: Mapping[str, NDArray[Any]]) -> Inference:
    """One solution from the arrays of `_solution`, seen to fit together."""
    mean = as_floats("mean", parts["mean"])
    if mean.ndim != 1 or len(names) not in (0, mean.size):
        raise ValueError(f"mean: one per variable is needed; its shape is {mean.shape}, with {len(names)} names.")
    one, square = mean.shape, (mean.size, mean.size)
    status = str(of_kind("U", "status", parts["status"][()]))
    if status not in Status.__members__:
        raise ValueError(f"status: one of {', '.join(Status.__members__)} is needed, but status = {status!r}.")
    log_partition = _optional("log_partition", parts["log_partition"], ())
    return Inference(
        method=str(of_kind("U", "method", parts["method"][()])),
        names=names,
        status=Status[status],
        mean=mean,
        variance=_shaped("variance", as_floats("variance", parts["variance"]), one),
        expected_error=float(of_kind("f", "expected_error", parts["expected_error"][()])),
        derived=_Stored(
            _optional("covariance", parts["covariance"], square),
            None if log_partition is None else float(log_partition),
        ),
        l=_optional("l", parts["l"], one),
        r=_optional("r", parts["r"], one),
    )


def _optional(name: str, values: NDArray[Any], shape: tuple[int, ...]) -> FloatArray | None:
    """Finite numbers of this shape, or None for all nan."""
    _shaped(name, values, shape)
    return None if values.dtype.kind == "f" and np.isnan(values).all() else as_floats(name, values)


def _shaped(name: str, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if values.shape != shape:
        raise ValueError(f"{name}: shape {shape} is needed; its shape is {values.shape}.")
    return values


def _table(result: Inference) -> str:
    """The csv: numbers in as many digits as bring the same float back."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["variable", "mean", "standard_deviation", "method", "status", "expected_error"])
    verdict = [result.method, result.status.name, result.expected_error]
    for k, (mean, sd) in enumerate(zip(result.mean.tolist(), result.standard_deviation.tolist(), strict=True)):
        rows.writerow([result.label(k), mean, sd, *verdict])
    return text.getvalue()

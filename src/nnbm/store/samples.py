"""Draws as npz files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.archive import FilePath, read_archive, write_archive
from nnbm.arrays import FloatArray, as_floats
from nnbm.sampling.result import Samples
from nnbm.store.fields import counted, labels, of_kind

__all__ = ["load_samples", "save_samples"]

_KIND = "nnbm samples 1"
_INFO = "info "  # before the name of each array of a sampler's info


def save_samples(samples: Samples, path: FilePath) -> None:
    """Write the draws and how they came about to one npz file."""
    settings = {
        "names": np.array(samples.names, dtype=np.str_),
        "method": np.array(samples.method),
        "burn_in": np.array(samples.burn_in),
        "thin": np.array(samples.thin),
        "seconds": np.array(samples.seconds),
        "interrupted": np.array(samples.interrupted),
        "detail": np.array(samples.detail),
        "info": np.array(sorted(samples.info), dtype=np.str_),
    }
    told = {_INFO + name: value for name, value in samples.info.items()}
    write_archive(path, _KIND, {"draws": samples.draws, **settings, **told})


def load_samples(path: FilePath) -> Samples:
    """Read what `save_samples` wrote."""
    scalars = {"method", "burn_in", "thin", "seconds", "interrupted"}
    told = [str(name) for name in read_archive(path, _KIND, set(), {"info"}).get("info", np.array([])).ravel()]
    parts = read_archive(path, _KIND, {"draws", "names"} | scalars | {_INFO + name for name in told}, {"detail"})
    try:
        draws, names = as_floats("draws", parts["draws"]), labels(parts["names"])
        _require_shapes(draws, names)
        scalar = {name: parts[name][()] for name in scalars}  # an array stays an array, and is refused
        return Samples(
            draws=draws,
            names=names,
            method=str(of_kind("U", "method", scalar["method"])),
            burn_in=counted("burn_in", scalar["burn_in"], least=0),
            thin=counted("thin", scalar["thin"], least=1),
            seconds=float(as_floats("seconds", of_kind("f", "seconds", scalar["seconds"]))),
            interrupted=bool(of_kind("b", "interrupted", scalar["interrupted"])),
            info={name: _of_chains(draws, name, parts[_INFO + name]) for name in told},
            detail=str(of_kind("U", "detail", parts.get("detail", np.array(""))[()])),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold sound draws: {error} Sample again.") from error


def _of_chains(draws: FloatArray, name: str, values: NDArray[Any]) -> FloatArray:
    found = as_floats(name, values)
    if found.ndim == 0 or found.shape[0] != draws.shape[0]:
        raise ValueError(f"{name}: one row per chain is needed, but its shape is {found.shape}.")
    return found


def _require_shapes(draws: FloatArray, names: tuple[str, ...]) -> None:
    if draws.ndim != 3 or 0 in draws.shape:
        raise ValueError(f"draws: shape (chains, draws, n) is needed; its shape is {draws.shape}.")
    if len(names) not in (0, draws.shape[2]):
        raise ValueError(f"names: one per variable is needed, but there are {len(names)} for {draws.shape[2]}.")

"""Draws as npz files."""

from __future__ import annotations

import os

import numpy as np

from nnbm.archive import FilePath, read_archive, write_archive
from nnbm.arrays import FloatArray, as_floats
from nnbm.sampling.result import Samples
from nnbm.store.fields import counted, labels, of_kind

__all__ = ["load_samples", "save_samples"]

_KIND = "nnbm samples 1"


def save_samples(samples: Samples, path: FilePath) -> None:
    """Write the draws and how they came about to one npz file."""
    settings = {
        "names": np.array(samples.names, dtype=np.str_),
        "method": np.array(samples.method),
        "burn_in": np.array(samples.burn_in),
        "thin": np.array(samples.thin),
        "seconds": np.array(samples.seconds),
        "interrupted": np.array(samples.interrupted),
    }
    write_archive(path, _KIND, {"draws": samples.draws, **settings})


def load_samples(path: FilePath) -> Samples:
    """Read what `save_samples` wrote."""
    scalars = {"method", "burn_in", "thin", "seconds", "interrupted"}
    parts = read_archive(path, _KIND, {"draws", "names"} | scalars)
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
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold sound draws: {error} Sample again.") from error


def _require_shapes(draws: FloatArray, names: tuple[str, ...]) -> None:
    if draws.ndim != 3 or 0 in draws.shape:
        raise ValueError(f"draws: shape (chains, draws, n) is needed; its shape is {draws.shape}.")
    if len(names) not in (0, draws.shape[2]):
        raise ValueError(f"names: one per variable is needed, but there are {len(names)} for {draws.shape[2]}.")

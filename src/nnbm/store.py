"""Save and load models and draws: npz files without pickle, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nnbm.model import NNBM
from nnbm.sampling.result import Samples

__all__ = ["load_model", "load_samples", "save_model", "save_samples"]

_MODEL, _SAMPLES = "nnbm model 1", "nnbm samples 1"
_Path = str | os.PathLike[str]


def save_model(model: NNBM, path: _Path) -> None:
    """Write the model to one npz file.

    >>> import tempfile, nnbm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(nnbm.gallery.square_grid(3, 3), f"{folder}/grid.npz")
    ...     load_model(f"{folder}/grid.npz") == nnbm.gallery.square_grid(3, 3)
    True
    """
    parts: dict[str, Any] = {"bias": model.bias, "names": np.array(model.names, dtype=np.str_)}
    if isinstance(model.coupling, np.ndarray):
        parts["coupling"] = model.coupling
    else:
        w = model.coupling
        parts |= {"data": w.data, "indices": w.indices, "indptr": w.indptr}
    _write(path, _MODEL, parts)


def load_model(path: _Path) -> NNBM:
    """Read what `save_model` wrote; the model is checked like any other."""
    parts = _read(path, _MODEL)
    try:
        n = parts["bias"].size
        coupling = (
            parts["coupling"]
            if "coupling" in parts
            else sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(n, n))
        )
        return NNBM(parts["bias"], coupling, names=[str(name) for name in parts["names"]] or None)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold a sound model: {error}") from error


def save_samples(samples: Samples, path: _Path) -> None:
    """Write the draws and how they came about to one npz file."""
    settings = {
        "names": np.array(samples.names, dtype=np.str_),
        "method": np.array(samples.method),
        "burn_in": np.array(samples.burn_in),
        "thin": np.array(samples.thin),
        "seconds": np.array(samples.seconds),
        "interrupted": np.array(samples.interrupted),
    }
    _write(path, _SAMPLES, {"draws": samples.draws, **settings})


def load_samples(path: _Path) -> Samples:
    """Read what `save_samples` wrote."""
    parts = _read(path, _SAMPLES)
    try:
        return Samples(
            draws=parts["draws"],
            names=tuple(str(name) for name in parts["names"]),
            method=str(parts["method"]),
            burn_in=int(parts["burn_in"]),
            thin=int(parts["thin"]),
            seconds=float(parts["seconds"]),
            interrupted=bool(parts["interrupted"]),
        )
    except KeyError as error:
        raise ValueError(f"path: {os.fspath(path)} lacks its array {error}. Sample again.") from error


def _write(path: _Path, kind: str, parts: Mapping[str, Any]) -> None:
    """Write beside the target, force it to disk, then rename: a reader sees the old file or the new one."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path: the folder {target.parent} does not exist. Make it first.")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, format=np.array(kind), **parts)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read(path: _Path, kind: str) -> dict[str, NDArray[Any]]:
    """All arrays of a file that says it is of this kind."""
    try:
        with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            found = str(file["format"]) if "format" in file else None
            if found == kind:
                return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, ValueError, EOFError, AttributeError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} is not a sound npz file: {error}") from error
    raise ValueError(
        f"path: {os.fspath(path)} is not what is wanted: it should say {kind!r}, but says {found!r}. "
        "Was it written by nnbm, and is it a model where draws are meant (or the other way round)?"
    )

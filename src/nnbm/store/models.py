"""Models as npz files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse

from nnbm.archive import FilePath, read_archive, write_archive
from nnbm.model import NNBM
from nnbm.store.fields import ENDS, ends_of, labels, stored_ends

__all__ = ["load_model", "save_model"]

_KIND = "nnbm model 1"


def save_model(model: NNBM, path: FilePath) -> None:
    """Write the model to one npz file.

    >>> import tempfile, nnbm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(nnbm.gallery.square_grid(3, 3), f"{folder}/grid.npz")
    ...     load_model(f"{folder}/grid.npz") == nnbm.gallery.square_grid(3, 3)
    True
    """
    parts: dict[str, Any] = {"bias": model.bias, "names": np.array(model.names, dtype=np.str_)}
    parts |= ends_of(model.site, model.n)
    if isinstance(model.coupling, np.ndarray):
        parts["coupling"] = model.coupling
    else:
        w = model.coupling
        parts |= {"data": w.data, "indices": w.indices, "indptr": w.indptr}
    write_archive(path, _KIND, parts)


def load_model(path: FilePath) -> NNBM:
    """Read what `save_model` wrote; the model is checked like any other."""
    parts = read_archive(path, _KIND, {"bias", "names"}, {"coupling", "data", "indices", "indptr", *ENDS})
    try:
        n = parts["bias"].size
        coupling = (
            parts["coupling"]
            if "coupling" in parts
            else sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(n, n))
        )
        lower, upper = stored_ends(parts, n)
        return NNBM(parts["bias"], coupling, lower=lower, upper=upper, names=labels(parts["names"]) or None)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold a sound model: {error}") from error

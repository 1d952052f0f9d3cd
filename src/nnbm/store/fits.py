"""Fitted estimators as npz files."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from nnbm.archive import FilePath, read_archive, write_archive
from nnbm.arrays import FloatArray, as_floats, as_reals
from nnbm.learning.edges import EdgeSet, checked_edges
from nnbm.learning.parameters import Parameters
from nnbm.model import NNBM
from nnbm.store.fields import counted, labels, of_kind

__all__ = ["StoredFit", "load_fit", "save_fit"]

_KIND = "nnbm fit 1"


@dataclass(frozen=True, eq=False)
class StoredFit:
    """A fitted estimator as it lies in a file."""

    parameters: Parameters
    errors: Parameters | None
    names: tuple[str, ...]
    requested: str
    method: str
    ridge: float
    iterations: int
    all_pairs: bool
    report: str

    def model(self) -> NNBM:
        """The fitted model."""
        return self.parameters.model(self.names)


def save_fit(fit: StoredFit, path: FilePath) -> None:
    """Write a fitted estimator to one npz file."""
    e = fit.parameters.edges
    parts = {
        "i": e.i,
        "j": e.j,
        "parameters": fit.parameters.vector,
        "errors": np.empty(0) if fit.errors is None else fit.errors.vector,
        "names": np.array(fit.names, dtype=np.str_),
        "requested": np.array(fit.requested),
        "method": np.array(fit.method),
        "ridge": np.array(fit.ridge),
        "iterations": np.array(fit.iterations),
        "all_pairs": np.array(fit.all_pairs),
        "report": np.array(fit.report),
    }
    write_archive(path, _KIND, parts)


def load_fit(path: FilePath) -> StoredFit:
    """Read what `save_fit` wrote."""
    scalars = {"requested", "method", "ridge", "iterations", "all_pairs", "report"}
    parts = read_archive(path, _KIND, {"i", "j", "parameters", "errors", "names"} | scalars)
    try:
        vector, errors = as_floats("parameters", parts["parameters"]), as_reals("errors", parts["errors"])
        edges = checked_edges((parts["i"], parts["j"]), (vector.size - parts["i"].size) // 2)
        _require_parameters(edges, vector, errors)
        scalar = {name: parts[name][()] for name in scalars}
        return StoredFit(
            parameters=Parameters.from_vector(edges, vector),
            errors=Parameters.from_vector(edges, errors) if errors.size else None,
            names=labels(parts["names"]),
            requested=str(of_kind("U", "requested", scalar["requested"])),
            method=str(of_kind("U", "method", scalar["method"])),
            ridge=float(as_floats("ridge", of_kind("f", "ridge", scalar["ridge"]))),
            iterations=counted("iterations", scalar["iterations"], least=0),
            all_pairs=bool(of_kind("b", "all_pairs", scalar["all_pairs"])),
            report=str(of_kind("U", "report", scalar["report"])),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold a sound fit: {error} Fit again.") from error


def _require_parameters(edges: EdgeSet, vector: FloatArray, errors: FloatArray) -> None:
    if vector.shape != (edges.parameters,) or errors.shape not in ((0,), vector.shape):
        raise ValueError(
            f"parameters, errors: {edges.parameters} each are needed, but their shapes are {vector.shape} and "
            f"{errors.shape}."
        )

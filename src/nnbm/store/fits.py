"""Fitted estimators as npz files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.archive import FilePath, read_archive, write_archive
from nnbm.arrays import FloatArray, as_floats, as_reals
from nnbm.learning.edges import EdgeSet, checked_edges
from nnbm.learning.moments import Moments
from nnbm.learning.parameters import Parameters
from nnbm.model import NNBM
from nnbm.site import HALF_LINE, Site, site_between
from nnbm.store.fields import ENDS, counted, ends_of, labels, of_kind, stored_ends

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
    seed: int | None = 0
    moments: Moments | None = None
    site: Site = HALF_LINE

    def model(self) -> NNBM:
        """The fitted model."""
        return self.parameters.model(self.names, self.site)


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
        "seed": np.array(-1 if fit.seed is None else fit.seed),
        **ends_of(fit.site, e.n),
    }
    if fit.moments is not None:
        m = fit.moments
        parts |= {"total": np.array(m.total), "moments": np.concatenate([m.mean, m.variance, m.covariance])}
    write_archive(path, _KIND, parts)


def load_fit(path: FilePath) -> StoredFit:
    """Read what `save_fit` wrote."""
    scalars = {"requested", "method", "ridge", "iterations", "all_pairs", "report", "seed"}
    parts = read_archive(
        path, _KIND, {"i", "j", "parameters", "errors", "names"} | scalars, {"total", "moments", *ENDS}
    )
    try:
        vector, errors = as_floats("parameters", parts["parameters"]), as_reals("errors", parts["errors"])
        edges = checked_edges((parts["i"], parts["j"]), (vector.size - parts["i"].size) // 2)
        _require_parameters(edges, vector, errors)
        site = site_between(*stored_ends(parts, edges.n))
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
            seed=None if scalar["seed"] == -1 else counted("seed", scalar["seed"], least=0),
            moments=_moments(edges, site, parts) if "moments" in parts else None,
            site=site,
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold a sound fit: {error} Fit again.") from error


def _moments(edges: EdgeSet, site: Site, parts: Mapping[str, NDArray[Any]]) -> Moments:
    values, n = as_floats("moments", parts["moments"]), edges.n
    if values.shape != (edges.parameters,) or "total" not in parts:
        raise ValueError(f"moments: {edges.parameters} and their total are needed, but the shape is {values.shape}.")
    total = float(of_kind("f", "total", parts["total"][()]))
    return Moments(edges, total, values[:n], values[n : 2 * n], values[2 * n :], site)


def _require_parameters(edges: EdgeSet, vector: FloatArray, errors: FloatArray) -> None:
    if vector.shape != (edges.parameters,) or errors.shape not in ((0,), vector.shape):
        raise ValueError(
            f"parameters, errors: {edges.parameters} each are needed, but their shapes are {vector.shape} and "
            f"{errors.shape}."
        )

"""Save and load models, draws and inferences: npz files without pickle (or csv), written whole or not at all."""

from __future__ import annotations

import csv
import io
import math
import os
import secrets
import warnings
import zipfile
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nnbm.arrays import FloatArray, as_floats, as_reals, as_whole
from nnbm.inference.response import Susceptibilities
from nnbm.inference.result import Inference, Status
from nnbm.model import NNBM
from nnbm.sampling.result import Samples

__all__ = ["load_inference", "load_model", "load_samples", "save_inference", "save_model", "save_samples"]

_MODEL, _SAMPLES, _INFERENCE = "nnbm model 1", "nnbm samples 1", "nnbm inference 1"
_OTHER = "alternative_"  # prefix of the arrays that hold the alternatives, stacked
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
    parts = _read(path, _MODEL, {"bias", "names"}, {"coupling", "data", "indices", "indptr"})
    try:
        n = parts["bias"].size
        coupling = (
            parts["coupling"]
            if "coupling" in parts
            else sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(n, n))
        )
        return NNBM(parts["bias"], coupling, names=_labels(parts["names"]) or None)
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
    scalars = {"method", "burn_in", "thin", "seconds", "interrupted"}
    parts = _read(path, _SAMPLES, {"draws", "names"} | scalars)
    try:
        draws, names = as_floats("draws", parts["draws"]), _labels(parts["names"])
        _require_shapes(draws, names)
        scalar = {name: parts[name][()] for name in scalars}  # an array stays an array, and is refused
        return Samples(
            draws=draws,
            names=names,
            method=str(_of_kind("U", "method", scalar["method"])),
            burn_in=_counted("burn_in", scalar["burn_in"], least=0),
            thin=_counted("thin", scalar["thin"], least=1),
            seconds=float(as_floats("seconds", _of_kind("f", "seconds", scalar["seconds"]))),
            interrupted=bool(_of_kind("b", "interrupted", scalar["interrupted"])),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"path: {os.fspath(path)} does not hold sound draws: {error} Sample again.") from error


def save_inference(result: Inference, path: _Path) -> None:
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
        _write(path, _INFERENCE, parts | {"history": np.array(result.history, dtype=np.float64)})
    elif suffix == ".csv":
        _write_whole(path, lambda file: file.write(_table(result).encode()))
    else:
        raise ValueError(f"path: a name ending in .npz or .csv is needed, but path = {os.fspath(path)}. Rename it.")


def load_inference(path: _Path) -> Inference:
    """Read what `save_inference` wrote to an npz file."""
    keys = {"method", "status", "mean", "variance", "expected_error", "covariance", "log_partition", "l", "r"}
    parts = _read(path, _INFERENCE, {"names", "detail", "history"} | keys | {_OTHER + key for key in keys})
    try:
        names = _labels(parts["names"])
        result = _inference(names, {key: parts[key] for key in keys})
        rows = zip(*(parts[_OTHER + key] for key in keys), strict=True)
        alternatives = [_inference(names, dict(zip(keys, map(np.asarray, row), strict=True))) for row in rows]
        detail = str(_of_kind("U", "detail", parts["detail"][()]))
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
    status = str(_of_kind("U", "status", parts["status"][()]))
    if status not in Status.__members__:
        raise ValueError(f"status: one of {', '.join(Status.__members__)} is needed, but status = {status!r}.")
    log_partition = _optional("log_partition", parts["log_partition"], ())
    return Inference(
        method=str(_of_kind("U", "method", parts["method"][()])),
        names=names,
        status=Status[status],
        mean=mean,
        variance=_shaped("variance", as_floats("variance", parts["variance"]), one),
        expected_error=float(_of_kind("f", "expected_error", parts["expected_error"][()])),
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


def _require_shapes(draws: FloatArray, names: tuple[str, ...]) -> None:
    if draws.ndim != 3 or 0 in draws.shape:
        raise ValueError(f"draws: shape (chains, draws, n) is needed; its shape is {draws.shape}.")
    if len(names) not in (0, draws.shape[2]):
        raise ValueError(f"names: one per variable is needed, but there are {len(names)} for {draws.shape[2]}.")


def _labels(names: NDArray[Any]) -> tuple[str, ...]:
    if names.dtype.kind != "U" or names.ndim != 1:
        raise ValueError(f"names: a row of strings is needed; it is {names.dtype} of shape {names.shape}.")
    return tuple(str(name) for name in names)


def _of_kind(kind: str, name: str, value: Any) -> Any:
    if np.ndim(value) != 0 or np.asarray(value).dtype.kind != kind:
        raise ValueError(f"{name}: one value of NumPy's kind {kind!r} is needed, but {name} = {value!r}.")
    return value


def _counted(name: str, value: Any, least: int) -> int:
    number = as_whole(name, value)
    if number < least:
        raise ValueError(f"{name}: at least {least} is needed, but {name} = {number}.")
    return number


def _write(path: _Path, kind: str, parts: Mapping[str, Any]) -> None:
    """One npz file that says of which kind it is."""
    _write_whole(path, lambda file: np.savez(file, format=np.array(kind), **parts))


def _write_whole(path: _Path, write: Callable[[BinaryIO], object]) -> None:
    """Write beside the target, force it to disk, then rename: a reader sees the old file or the new one."""
    target = Path(path).resolve()  # through a link: what it points to is replaced, not the link
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path: the folder {target.parent} does not exist. Make it first.")
    part = target.with_name(f".nnbm-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:  # not tempfile: its files are for their owner's eyes only
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _read(path: _Path, kind: str, needed: Set[str], possible: Set[str] = frozenset()) -> dict[str, NDArray[Any]]:
    """The arrays of these names from a file that says it is of this kind."""
    with Path(path).open("rb") as raw:
        try:
            with zipfile.ZipFile(raw) as file:
                members = _members(file, os.fstat(raw.fileno()).st_size)
                found = str(_array(file, members["format"])) if "format" in members else None
                wanted = [name for name in members if name in needed | possible] if found == kind else []
                parts = {name: _array(file, members[name]) for name in wanted}
        except Exception as error:  # whatever zip, zlib or a header's parser says of broken bytes
            reason = str(error) or type(error).__name__
            raise ValueError(f"path: {os.fspath(path)} is not a sound npz file: {reason}") from error
    if found != kind:
        raise ValueError(
            f"path: {os.fspath(path)} is not what is wanted: it should say {kind!r}, but says {found!r}. "
            "Was it written by nnbm, and is it a model where draws are meant (or the other way round)?"
        )
    if not needed <= parts.keys():
        missing = ", ".join(sorted(needed - parts.keys()))
        raise ValueError(f"path: {os.fspath(path)} lacks its array {missing}. Write it again.")
    return parts


def _members(file: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Name -> member, once their declared sizes are seen to fit into the file: we write without compression."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in file.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed, which nnbm's files are not")
        members[member.filename.removesuffix(".npy")] = member
    if len(members) < len(file.infolist()) or sum(member.file_size for member in members.values()) > size:
        raise ValueError("its members overlap")
    return members


def _array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, allocated only after its header is seen to agree with the member's size; never a pickle."""
    with file.open(member) as stream, warnings.catch_warnings():
        warnings.simplefilter("error")  # a header that needs guessing is broken
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(stream)
        declared = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or min(shape, default=0) < 0 or stream.tell() + declared != member.file_size:
            raise ValueError(f"{member.filename} declares {declared} bytes of {dtype}, but does not hold them")
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)

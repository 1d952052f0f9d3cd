"""A folder of draws: what it says of itself (run.json), whose it is, and which files hold what.

run.json                 the arguments that made the draws
model.npz                the model
chain-0/000000.npy ...   blocks of draws (count, n), each written whole
chain-0/checkpoint.npz   the chain after its last note: what lies before it counts, what does not never counted
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.archive import write_whole
from nnbm.arrays import FloatArray
from nnbm.model import NNBM
from nnbm.sampling.protocol import Sampler
from nnbm.sampling.run import Schedule
from nnbm.store.fields import counted

__all__ = [
    "Manifest",
    "block_path",
    "chain_folder",
    "fingerprint",
    "fingerprint_of",
    "locked",
    "model_path",
    "options_of",
    "read_block",
    "read_manifest",
    "require_empty",
    "require_same",
    "versions",
    "write_manifest",
]

_FORMAT = "nnbm draws 1"
_MANIFEST, _LOCK = "run.json", "lock"
_TEXTS = ("model", "method", "options", "initial")
_COUNTS = {"n": 1, "chains": 1, "draws": 1, "burn_in": 0, "thin": 1, "block": 1}  # at least
_REPAIR = "Restore it, or draw again into a new folder."


@dataclass(frozen=True)
class Manifest:
    """The arguments of `sample_to` as a file can hold them.

    model, initial: fingerprints, "" where chains start dispersed. options: the sampler with its options. seed: what
    SeedSequence takes. block: draws a file.
    """

    model: str
    n: int
    chains: int
    draws: int
    burn_in: int
    thin: int
    block: int
    method: str
    options: str
    initial: str
    seed: dict[str, Any]
    names: tuple[str, ...]
    versions: dict[str, str]

    @property
    def schedule(self) -> Schedule:
        """How long each chain runs."""
        return Schedule(self.draws, self.burn_in, self.thin)


def model_path(folder: Path) -> Path:
    """Where the model lies."""
    return folder / "model.npz"


def chain_folder(folder: Path, chain: int) -> Path:
    """Where one chain's files lie."""
    return folder / f"chain-{chain}"


def block_path(chain: Path, block: int) -> Path:
    """One block of a chain's folder."""
    return chain / f"{block:06d}.npy"


def versions() -> dict[str, str]:
    """What bits depend on."""
    return {name: version(name) for name in ("nnbm", "numpy", "numba")}


def fingerprint(*arrays: NDArray[Any]) -> str:
    """The same for equal arrays of numbers of one kind only."""
    found = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        found.update(array.data.cast("B") if array.size else b"")
    return found.hexdigest()


def fingerprint_of(model: NNBM) -> str:
    """The same for equal models only; names count, too."""
    w = model.coupling
    parts = [w] if isinstance(w, np.ndarray) else [w.data, w.indices.astype(np.int64), w.indptr.astype(np.int64)]
    names = np.frombuffer("\n".join(model.names).encode(), np.uint8)
    return fingerprint(model.bias, model.lower, model.upper, names, *parts)


def options_of(sampler: Sampler) -> str:
    """The sampler with its options in one line, arrays by their fingerprint."""
    if not dataclasses.is_dataclass(sampler):
        raise TypeError(
            f"method: a sampler that is a dataclass is needed, or a later call cannot tell whether it has the same "
            f"options; method = {sampler!r}."
        )
    fields = ((field.name, getattr(sampler, field.name)) for field in dataclasses.fields(sampler))
    shown = (f"{name}={fingerprint(value) if isinstance(value, np.ndarray) else repr(value)}" for name, value in fields)
    return f"{type(sampler).__name__}({', '.join(shown)})"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Begin a folder, which holds nothing but perhaps what an earlier beginning left."""
    text = json.dumps({"format": _FORMAT} | dataclasses.asdict(manifest), indent=1)
    write_whole(folder / _MANIFEST, lambda file: file.write(text.encode()))


def read_manifest(folder: Path) -> Manifest | None:
    """What the folder says; None where it holds no draws yet."""
    path = folder / _MANIFEST
    if not path.exists():
        return None
    try:
        return _checked(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"folder: {path} is not sound: {error}. Take another folder.") from error


def _checked(found: Any) -> Manifest:
    if not isinstance(found, dict) or found.pop("format", None) != _FORMAT:
        raise ValueError(f"it does not say {_FORMAT!r}")
    for name, least in _COUNTS.items():
        found[name] = counted(name, found[name], least)
    found["names"] = tuple(found["names"])
    texts = [found[name] for name in _TEXTS] + list(found["names"])
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{', '.join(_TEXTS)} and names should be strings")
    if len(found["names"]) not in (0, found["n"]):
        raise ValueError(f"there are {len(found['names'])} names for {found['n']} variables")
    return Manifest(**found)


def require_same(folder: Path, there: Manifest, wanted: Manifest) -> None:
    """Refuse to go on with other arguments than those the folder was begun with; more draws are welcome."""
    names = [field.name for field in dataclasses.fields(Manifest) if field.name not in ("versions", "names")]
    pairs = {name: (getattr(there, name), getattr(wanted, name)) for name in names}
    pairs["nnbm's version"] = (there.versions.get("nnbm"), wanted.versions["nnbm"])
    other = [
        f"another {name}" if name in ("model", "initial") else f"{name} = {old}, not {new}"
        for name, (old, new) in pairs.items()
        if (new < old if name == "draws" else new != old)
    ]
    if other:
        raise ValueError(
            f"folder: the draws in {folder} were begun with {'; '.join(other)}. Give the same arguments to go on with "
            "them, or another folder."
        )


def require_empty(folder: Path) -> None:
    """Refuse to begin where something else lies."""
    mine = {_LOCK, model_path(folder).name}
    others = sorted(path.name for path in folder.iterdir() if path.name not in mine)
    if others:
        raise ValueError(
            f"folder: {folder} holds no draws, but {others[0]}{' and more' if len(others) > 1 else ''}. Take a new or "
            "an empty folder."
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder and keep other processes from writing to it; the system lets go when a process is killed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("ab") as file:
        try:
            import fcntl  # not on Windows: there nothing holds a second process back

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"folder: another process is writing to {folder}. Wait for it, or end it.") from None
        except (ImportError, OSError):  # nor on some network disks
            pass
        for part in folder.rglob(".nnbm-*.part"):
            part.unlink()  # of a process that was killed while it wrote
        yield


def read_block(path: Path, rows: int, n: int) -> FloatArray:
    """(rows, n) as a read-only view of the file, once it is seen to hold them: perhaps more, which do not count yet."""
    try:
        found = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError) as error:
        raise ValueError(f"folder: {path} is missing or not a sound npy file: {error}. {_REPAIR}") from error
    fits = found.ndim == 2 and found.shape[0] >= rows and found.shape[1] == n and found.dtype == np.float64
    if not fits or found.offset + found.nbytes != path.stat().st_size:
        raise ValueError(
            f"folder: {path} should hold {rows} x {n} numbers, but holds {found.dtype} of shape {found.shape} in "
            f"{path.stat().st_size} bytes. {_REPAIR}"
        )
    return found[:rows]

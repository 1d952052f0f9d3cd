"""One npz file of named arrays: never a pickle, written whole or not at all, and read with suspicion."""

from __future__ import annotations

import math
import os
import secrets
import warnings
import zipfile
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["FilePath", "read_archive", "write_archive", "write_whole"]

FilePath = str | os.PathLike[str]


def write_archive(path: FilePath, kind: str, parts: Mapping[str, Any]) -> None:
    """Write arrays under their names to a file that says it is of this kind."""
    write_whole(path, lambda file: np.savez(file, format=np.array(kind), **parts))


def write_whole(path: FilePath, write: Callable[[BinaryIO], object]) -> None:
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
        _sync_folder(target.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """The new name on disk, too, where the system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_archive(
    path: FilePath, kind: str, needed: Set[str], possible: Set[str] = frozenset()
) -> dict[str, NDArray[Any]]:
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

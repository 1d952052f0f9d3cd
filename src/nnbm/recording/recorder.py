"""One chain's draws on their way to disk, and the note from which a killed run goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnbm.archive import read_archive, write_archive, write_whole
from nnbm.arrays import FloatArray, as_floats, as_reals
from nnbm.recording.folder import Manifest, block_path, chain_folder, read_block
from nnbm.sampling.protocol import Chain
from nnbm.store.fields import counted

__all__ = ["Checkpoint", "Recorder", "read_checkpoint", "restore"]

_KIND = "nnbm chain 1"
_FILE = "checkpoint.npz"
_STATE, _INFO = "state ", "info "  # before the name of each array of a chain's state and info


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """One chain at rest: after `sweeps` sweeps and so many blocks, with draws (count, n) that fill none yet."""

    sweeps: int
    blocks: int
    draws: FloatArray
    seconds: float = 0.0
    state: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    info: Mapping[str, FloatArray] = field(default_factory=dict)

    def whole(self, manifest: Manifest) -> int:
        """Draws in whole blocks."""
        return min(self.blocks * manifest.block, manifest.schedule.recorded(self.sweeps))


class Recorder:
    """A sink that writes blocks, and after each of them, or `every` so many seconds, what the chain needs to go on.

    A block is written before the note that counts it, so nothing is counted that is not there; what a killed run wrote
    beyond its last note is written again, with the same bits. A last block that was cut short is filled up where more
    draws are wanted.
    """

    def __init__(
        self, chain: Chain, manifest: Manifest, folder: Path, number: int, begun: Checkpoint, every: float
    ) -> None:
        self._chain, self._draws, self._every = chain, manifest.draws, every
        self._folder = chain_folder(folder, number)
        self._folder.mkdir(exist_ok=True)
        self._buffer = np.empty((min(manifest.block, manifest.draws), manifest.n))
        self._blocks, self.sweeps, waiting = begun.blocks, begun.sweeps, begun.draws
        open_rows = begun.whole(manifest) % manifest.block
        if open_rows and begun.sweeps < manifest.schedule.sweeps:
            self._blocks -= 1
            waiting = read_block(block_path(self._folder, self._blocks), open_rows, manifest.n)
        self._filled = waiting.shape[0]
        self._buffer[: self._filled] = waiting
        self._written = manifest.schedule.recorded(begun.sweeps) - self._filled
        self._started = time.perf_counter() - begun.seconds
        self._noted = time.perf_counter()

    def rows(self, most: int) -> FloatArray:
        """What is left of the block."""
        return self._buffer[self._filled : self._filled + most]

    def keep(self, count: int) -> None:
        """They wait for the block to be full."""
        self._filled += count

    def pause(self, sweeps: int) -> None:
        """Write the block if it is full, and the note if it is time."""
        self.sweeps = sweeps
        full = self._filled == self._buffer.shape[0] or self._written + self._filled == self._draws
        if full and self._filled:
            rows = self._buffer[: self._filled]
            write_whole(
                block_path(self._folder, self._blocks),
                lambda file: np.lib.format.write_array(file, rows, allow_pickle=False),
            )
            self._written, self._blocks, self._filled = self._written + self._filled, self._blocks + 1, 0
        if full or time.perf_counter() - self._noted > self._every:
            self.note()

    def note(self) -> None:
        """All that is needed to go on from here, in one file; the chain must be at rest."""
        state, info = self._chain.state(), self._chain.info()
        parts = {
            "sweeps": np.array(self.sweeps),
            "blocks": np.array(self._blocks),
            "draws": self._buffer[: self._filled],
            "seconds": np.array(time.perf_counter() - self._started),
            "state": np.array(sorted(state), dtype=np.str_),
            "info": np.array(sorted(info), dtype=np.str_),
        }
        held = {_STATE + name: value for name, value in state.items()}
        told = {_INFO + name: np.asarray(value) for name, value in info.items()}
        write_archive(self._folder / _FILE, _KIND, parts | held | told)
        self._noted = time.perf_counter()


def read_checkpoint(folder: Path, manifest: Manifest, number: int) -> Checkpoint:
    """The chain's last note, seen to agree with the manifest; of a chain without one, its beginning."""
    path = chain_folder(folder, number) / _FILE
    if not path.exists():
        return Checkpoint(0, 0, np.empty((0, manifest.n)))
    names = {"sweeps", "blocks", "draws", "seconds"}
    lists = read_archive(path, _KIND, {"state", "info"})
    held, told = ([str(name) for name in lists[kind].ravel()] for kind in ("state", "info"))
    parts = read_archive(path, _KIND, names | {_STATE + name for name in held} | {_INFO + name for name in told})
    try:
        found = Checkpoint(
            counted("sweeps", parts["sweeps"][()], 0),
            counted("blocks", parts["blocks"][()], 0),
            as_floats("draws", parts["draws"]),
            float(as_floats("seconds", parts["seconds"])),
            {name: parts[_STATE + name] for name in held},
            {name: as_reals(name, parts[_INFO + name]) for name in told},  # a rate may not be known yet,
        )
        _require_agreement(found, manifest)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"folder: {path} is not sound: {error} Restore it, or draw again into a new folder."
        ) from error
    return found


def _require_agreement(found: Checkpoint, manifest: Manifest) -> None:
    schedule, (waiting, *others) = manifest.schedule, found.draws.shape
    recorded = found.whole(manifest) + waiting
    if others != [manifest.n] or found.sweeps > schedule.sweeps or recorded != schedule.recorded(found.sweeps):
        raise ValueError(
            f"{found.sweeps} sweeps, {found.blocks} blocks and {found.draws.shape} draws do not fit run.json."
        )


def restore(chain: Chain, state: Mapping[str, NDArray[Any]]) -> None:
    """Set a fresh chain to a noted state, once that is seen to be of such a chain."""
    fresh = chain.state()
    for name in fresh.keys() | state.keys():
        kinds = [(part[name].dtype, part[name].shape) if name in part else None for part in (state, fresh)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"folder: the checkpoint's {name!r} is {kinds[0]}, but a chain of this method has {kinds[1]}. Draw "
                "again into a new folder."
            )
    chain.restore(state)

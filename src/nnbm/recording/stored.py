"""open_samples(folder): draws on disk, read block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from nnbm.arrays import FloatArray, IntArray, as_whole
from nnbm.model import NNBM
from nnbm.recording.folder import (
    Manifest,
    block_path,
    chain_folder,
    fingerprint_of,
    model_path,
    read_block,
    read_manifest,
)
from nnbm.recording.recorder import Checkpoint, read_checkpoint
from nnbm.sampling.accumulate import Accumulator, Pattern
from nnbm.sampling.moments import SampledMoments, summarised
from nnbm.sampling.result import Samples
from nnbm.sampling.run import Schedule
from nnbm.sampling.settings import require_memory
from nnbm.store.models import load_model

__all__ = ["StoredSamples", "open_samples"]


@dataclass(frozen=True, eq=False, repr=False)
class StoredSamples:
    """Draws in a folder: as many per chain as every chain has in whole blocks, none of them in memory.

    folder: where. draws: per chain, `asked` once the run is `complete`. The others are as in `Samples`.
    """

    folder: Path
    manifest: Manifest
    draws: int
    seconds: float
    info: Mapping[str, FloatArray]
    complete: bool

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.manifest.n

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self.manifest.chains

    @property
    def asked(self) -> int:
        """Draws per chain that the run is to have in the end."""
        return self.manifest.draws

    @property
    def burn_in(self) -> int:
        """Unrecorded sweeps before the first draw."""
        return self.manifest.burn_in

    @property
    def thin(self) -> int:
        """Sweeps between draws."""
        return self.manifest.thin

    @property
    def method(self) -> str:
        """The sampler's name."""
        return self.manifest.method

    @property
    def names(self) -> tuple[str, ...]:
        """(n,) or empty."""
        return self.manifest.names

    @cached_property
    def model(self) -> NNBM:
        """The model whose draws these are."""
        path = model_path(self.folder)
        found = load_model(path)
        if fingerprint_of(found) != self.manifest.model:
            raise ValueError(f"folder: {path} is not the model that run.json speaks of. Restore it.")
        return found

    def blocks(self) -> Iterator[tuple[int, int, FloatArray]]:
        """(chain, place of the first draw, draws (count, n)) of every block; the draws are views of the file.

        >>> import tempfile, nnbm
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stored = nnbm.sample_to(folder, nnbm.gallery.square_grid(3, 3), 1000, chains=2, seed=0, block=400)
        ...     [(chain, first, rows.shape) for chain, first, rows in stored.blocks()][:3]
        [(0, 0, (400, 9)), (0, 400, (400, 9)), (0, 800, (200, 9))]
        """
        size = self.manifest.block
        for chain in range(self.chains):
            for first in range(0, self.draws, size):
                path = block_path(chain_folder(self.folder, chain), first // size)
                yield chain, first, read_block(path, min(size, self.draws - first), self.n)

    @cached_property
    def moments(self) -> SampledMoments:
        """Moments, errors and R-hat of all draws in one pass, at the memory of a few draws."""
        if self.draws == 0:
            raise ValueError(f"folder: {self.folder} has no whole block of every chain yet. Go on sampling.")
        pattern = Pattern(self.model.coupling)
        sums = [Accumulator(pattern, self.draws) for _ in range(self.chains)]
        for chain, _, block in self.blocks():
            taken = 0
            while taken < block.shape[0]:
                rows = sums[chain].rows(block.shape[0] - taken)
                rows[:] = block[taken : taken + rows.shape[0]]
                taken += rows.shape[0]
                sums[chain].keep(rows.shape[0])
        found = summarised(
            sums,
            pattern,
            self.manifest.schedule,
            names=self.names,
            method=self.method,
            seconds=self.seconds,
            interrupted=not self.complete,
            info=self.info,
        )
        if not np.isfinite(found.variance).all():
            raise ValueError(f"folder: some draws in {self.folder} are not finite: a file is damaged. Restore it.")
        return found

    def load(self, variables: Sequence[int | str] | None = None, *, every: int = 1) -> Samples:
        """Draws in memory: of these variables (places or names; None: all), the last of `every` so many.

        They are those of `sample` with `thin` times `every`, the same burn-in and seed.
        """
        apart = as_whole("every", every)
        if not 1 <= apart <= self.draws:
            raise ValueError(f"every: 1 to {self.draws}, the draws per chain, is meant, but every = {apart}.")
        places = self._places(variables)
        count = self.draws // apart
        require_memory(
            self.chains * count * places.size,
            f"every, variables: {self.chains} chains x {count} draws x {places.size} variables",
            "Load fewer (variables=..., every=...), or take `moments`.",
        )
        draws = np.empty((self.chains, count, places.size))
        for chain, first, block in self.blocks():
            start = -(first + 1) % apart  # draws apart - 1, 2 apart - 1, ... of the chain
            rows = block[start::apart]
            at = (first + start) // apart
            draws[chain, at : at + rows.shape[0]] = rows if variables is None else rows[:, places]
        return Samples(
            draws=draws,
            names=tuple(self.names[k] for k in places) if self.names else (),
            method=self.method,
            burn_in=self.burn_in,
            thin=self.thin * apart,
            seconds=self.seconds,
            interrupted=not self.complete,
            info=self.info,
            detail="" if variables is None else f"variables {places.tolist()} of {self.n}",
        )

    def _places(self, variables: Sequence[int | str] | None) -> IntArray:
        if variables is None:
            return np.arange(self.n)
        known = {name: k for k, name in enumerate(self.names)}
        places = [known.get(each, -1) if isinstance(each, str) else as_whole("variables", each) for each in variables]
        for each, place in zip(variables, places, strict=True):
            if not 0 <= place < self.n:
                raise ValueError(
                    f"variables: names of the model or places from 0 to {self.n - 1} are meant, but one is {each!r}."
                )
        return np.array(places, dtype=np.int64)

    def __repr__(self) -> str:
        missing = "" if self.complete else f" of {self.asked}"
        return (
            f"StoredSamples({self.chains} chains x {self.draws}{missing} draws x {self.n} variables, {self.method}, "
            f"in {self.folder})"
        )


def open_samples(folder: str | os.PathLike[str]) -> StoredSamples:
    """The draws that `sample_to` wrote to a folder, or has written so far; nothing is loaded yet."""
    path = Path(folder)
    manifest = read_manifest(path)
    if manifest is None:
        raise ValueError(f"folder: {path} holds no draws (no run.json). Was it made by nnbm.sample_to?")
    return opened(path, manifest, [read_checkpoint(path, manifest, k) for k in range(manifest.chains)])


def opened(path: Path, manifest: Manifest, notes: Sequence[Checkpoint]) -> StoredSamples:
    """The same, once the notes are read; every block that counts is looked at."""
    schedule: Schedule = manifest.schedule
    told = set.intersection(*(set(note.info) for note in notes))
    found = StoredSamples(
        folder=path,
        manifest=manifest,
        draws=min(note.whole(manifest) for note in notes),
        seconds=max(note.seconds for note in notes),
        info={name: np.array([note.info[name] for note in notes]) for name in sorted(told)},
        complete=all(note.sweeps == schedule.sweeps for note in notes),
    )
    for _ in found.blocks():
        pass
    return found

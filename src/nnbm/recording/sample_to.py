"""sample_to(folder, model): draws written to disk as they come; the same call goes on after any end."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import as_whole
from nnbm.model import NNBM
from nnbm.recording.folder import (
    Manifest,
    fingerprint,
    fingerprint_of,
    locked,
    model_path,
    options_of,
    read_manifest,
    require_empty,
    require_same,
    versions,
    write_manifest,
)
from nnbm.recording.recorder import Checkpoint, Recorder, read_checkpoint, restore
from nnbm.recording.stored import StoredSamples, open_samples
from nnbm.sampling.protocol import Sampler
from nnbm.sampling.run import drive
from nnbm.sampling.sample import prepared_chains, sampler_of
from nnbm.sampling.sample_moments import warn_if_unreliable
from nnbm.sampling.settings import Settings, require_memory
from nnbm.sampling.starts import checked_starts
from nnbm.store.models import save_model
from nnbm.stream import Seed, sequence

__all__ = ["sample_to"]

_BLOCK_BYTES = 2**25


def sample_to(
    folder: str | os.PathLike[str],
    model: NNBM,
    draws: int = 1000,
    *,
    chains: int = 4,
    method: str | Sampler = "auto",
    seed: Seed = None,
    burn_in: int | None = None,
    thin: int = 1,
    initial: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    block: int | None = None,
    checkpoint_every: float = 60.0,
) -> StoredSamples:
    """Draw as `sample` does, the same draws for the same seed, into a folder: what is in memory is one block a chain.

    block: draws of a chain in one file; None makes files of up to 32 MiB. checkpoint_every: seconds after which a chain
    notes where it is, burn-in included. After Ctrl-C, a crash or a kill, the same call goes on from there, and the
    draws are, bit for bit, those of a run that nobody stopped (on one kind of machine, with one version of nnbm). A
    finished folder is opened as it is, or goes on if more draws are asked for. One of other arguments is refused, but
    for `threads`, `progress` and `checkpoint_every`; None stands for what the folder has.

    Warns (UnreliableWarning) as `sample_moments` does. Ctrl-C raises KeyboardInterrupt once all chains are noted.

    >>> import tempfile
    >>> from nnbm import gallery
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stored = sample_to(folder, gallery.square_grid(3, 3), draws=1000, chains=2, seed=0)
    ...     stored.draws, stored.moments.mean.shape, stored.load(every=10).draws.shape
    (1000, (9,), (2, 100, 9))
    """
    sampler, path = sampler_of(method, model).sampler, Path(folder)
    Settings.checked(draws, chains, burn_in, thin, threads)  # before a folder is made
    with locked(path):
        there = read_manifest(path)
        unrecorded = there.burn_in if burn_in is None and there is not None else burn_in
        chosen = Settings.checked(draws, chains, unrecorded, thin, threads)
        manifest = _begun(path, there, model, chosen, sampler, seed, initial, block)
        notes = [read_checkpoint(path, manifest, k) for k in range(chosen.chains)]
        if any(note.sweeps < chosen.schedule.sweeps for note in notes):
            _go_on(path, model, chosen, sampler, initial, manifest, notes, progress, checkpoint_every)
    stored = open_samples(path)
    warn_if_unreliable(stored.moments, chosen.schedule.draws, stacklevel=2)
    return stored


def _begun(
    path: Path,
    there: Manifest | None,
    model: NNBM,
    chosen: Settings,
    sampler: Sampler,
    seed: Seed,
    initial: ArrayLike | None,
    block: int | None,
) -> Manifest:
    """What the folder says of itself from now on, which is what is asked for and does not contradict what is there."""
    schedule = chosen.schedule
    size = _block(block, model.n, schedule.draws) if block is not None or there is None else there.block
    seeds = sequence(seed)
    wanted = Manifest(
        model=fingerprint_of(model),
        n=model.n,
        chains=chosen.chains,
        draws=schedule.draws,
        burn_in=schedule.burn_in,
        thin=schedule.thin,
        block=size,
        method=sampler.name,
        options=options_of(sampler),
        initial="" if initial is None else fingerprint(checked_starts(model, chosen.chains, initial)),
        seed=there.seed if there is not None and seed is None else _plain(seeds),
        names=model.names,
        versions=versions(),
    )
    if there is not None:
        require_same(path, there, wanted)
        wanted = dataclasses.replace(there, draws=wanted.draws)
    else:
        require_empty(path)
        save_model(model, model_path(path))
    if wanted != there:
        write_manifest(path, wanted)
    return wanted


def _go_on(
    path: Path,
    model: NNBM,
    chosen: Settings,
    sampler: Sampler,
    initial: ArrayLike | None,
    manifest: Manifest,
    notes: Sequence[Checkpoint],
    progress: bool | None,
    every: float,
) -> None:
    """From the notes to the end, or to Ctrl-C."""
    require_memory(
        chosen.chains * model.n * (min(manifest.block, manifest.draws) + 2),
        f"block: {chosen.chains} chains' blocks of {manifest.block} x {model.n} numbers",
        "Make blocks smaller (block=...) in a new folder.",
    )
    seeds = np.random.SeedSequence(**manifest.seed)
    prepared = prepared_chains(model, sampler, chosen, seeds, initial)
    for chain, note in zip(prepared, notes, strict=True):
        if note.state:
            restore(chain, note.state)
    recorders = [
        Recorder(chain, manifest, path, k, note, every)
        for k, (chain, note) in enumerate(zip(prepared, notes, strict=True))
    ]
    interrupted = drive(
        prepared,
        chosen.schedule,
        recorders,
        threads=chosen.threads,
        progress=progress,
        label=f"{sampler.name}, {chosen.chains} chains of {model.n} variables to {path}",
        names=model.names,
        done=[note.sweeps for note in notes],
    )
    if interrupted:
        _stop(path, manifest, recorders)


def _stop(path: Path, manifest: Manifest, recorders: Sequence[Recorder]) -> None:
    for recorder in recorders:
        recorder.note()
    done = sum(recorder.sweeps for recorder in recorders) / (manifest.chains * manifest.schedule.sweeps)
    stopped, stored = KeyboardInterrupt(), open_samples(path)
    stopped.add_note(
        f"{done:.1%} is done and noted, {stored.draws} of {manifest.draws} draws per chain are in whole blocks in "
        f"{path}: the same call goes on from there."
    )
    raise stopped


def _block(block: int | None, n: int, draws: int) -> int:
    """Draws a file."""
    if block is None:
        return max(1, min(draws, _BLOCK_BYTES // (8 * n)))
    size = as_whole("block", block)
    if size < 1:
        raise ValueError(f"block: at least 1 is needed, but block = {size}.")
    return size


def _plain(seeds: np.random.SeedSequence) -> dict[str, object]:
    """What makes this SeedSequence again, as JSON can hold it."""
    entropy = seeds.entropy
    words = entropy if entropy is None or isinstance(entropy, int) else [int(word) for word in entropy]
    return {"entropy": words, "spawn_key": [int(k) for k in seeds.spawn_key], "pool_size": int(seeds.pool_size)}

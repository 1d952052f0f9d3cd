"""Draws that do not stay in memory: summed up as they come, and written to disk."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.rows import Row
from nnbm import NNBM, Gibbs, gallery
from nnbm.sampling.accumulate import Accumulator, Pattern
from nnbm.sampling.run import Schedule, drive, run_chains

MEMORY_SCRIPT = """
import pathlib, re, sys, warnings
import numpy as np, nnbm
from nnbm import gallery

def status(key):
    return int(re.search(key + r":\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

def run(model, draws):
    return nnbm.sample_moments(model, draws, chains=2, seed=0, burn_in=1)

warnings.simplefilter("ignore", nnbm.UnreliableWarning)
run(gallery.square_grid(30, 30, coupling=0.2), 10)  # imports and compilation are not counted
before = status("VmRSS")
model = gallery.square_grid(1000, 1000, coupling=0.2)
w, n = model.coupling, model.n
ends = model.lower.nbytes + model.upper.nbytes
held = model.bias.nbytes + ends + w.data.nbytes + w.indices.nbytes + w.indptr.nbytes
numbers = 2 * (9 * n + (w.nnz - n) // 2) + 4 * n + w.nnz  # state, row, sums and edges of each chain; the result
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak of building the model is not sampling's
run(model, int(sys.argv[1]))
print(status("VmHWM") - before, held + 8 * numbers)
"""


def rows() -> Iterator[Row]:
    """One row per claim of how-to-choose."""
    few, needed = _peak(10)
    many, _ = _peak(40)
    yield Row(
        "peak memory of sample_moments, 1000x1000 grid, over model + sums + moments", many / needed, "x",
        f"2 chains: {needed / 2**20:.0f} MiB are needed", "<=", 1.2,
    )  # fmt: skip
    yield Row(
        "the same of 40 draws over that of 10", many / few, "x", f"{many / 2**20:.0f} MiB; 40 draws are 610", "<=", 1.02
    )
    for name, model, draws, thin in (
        ("36 dense", gallery.orientation_tuning(36), 10_000, 5),
        ("1000x1000 grid", gallery.square_grid(1000, 1000, coupling=0.2), 4, 5),
    ):
        kept, summed = _seconds(_kept(model, draws, thin), _summed(model, draws, thin))
        yield Row(
            f"rate of sample_moments over sample, {name}, thin = {thin}", kept / summed, "x",
            f"{summed / (draws * thin * model.n) * 1e9:.0f} ns a site update", ">=", 0.9,
        )  # fmt: skip
    yield _streaming_row()


def _peak(draws: int) -> tuple[float, float]:
    command = [sys.executable, "-c", MEMORY_SCRIPT, str(draws)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (our own script)
    peak, needed = map(float, done.stdout.split())
    return peak, needed


def _kept(model: NNBM, draws: int, thin: int) -> Callable[[], object]:
    chain = Gibbs().chains(model, np.ones((1, model.n)), 0, 1)
    return lambda: run_chains(chain, Schedule(draws, 0, thin), model.n, threads=1, progress=False, label="")


def _summed(model: NNBM, draws: int, thin: int) -> Callable[[], object]:
    chain, pattern = Gibbs().chains(model, np.ones((1, model.n)), 0, 1), Pattern(model.coupling)
    schedule = Schedule(draws, 0, thin)
    return lambda: drive(chain, schedule, [Accumulator(pattern, draws)], threads=1, progress=False, label="")


def _seconds(*tasks: Callable[[], object], repeats: int = 5) -> list[float]:
    """The least processor seconds of each, alternating: threads of other programs do not count."""
    best = [float("inf")] * len(tasks)
    for _ in range(1 + repeats):  # the first compiles
        for k, task in enumerate(tasks):
            started = time.process_time()
            task()
            best[k] = min(best[k], time.process_time() - started)
    return best


def _streaming_row() -> Row:
    """Wall time, since it is the disk that may be slow; the same draws in memory beside it."""
    import nnbm

    model = gallery.square_grid(300, 300, coupling=0.2)
    options: dict[str, Any] = {"draws": 60, "chains": 2, "thin": 5, "burn_in": 1, "seed": 0, "threads": 1}
    best = [float("inf")] * 2
    for _ in range(4):
        started = time.perf_counter()
        nnbm.sample(model, progress=False, **options)
        best[0] = min(best[0], time.perf_counter() - started)
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            nnbm.sample_to(folder, model, block=20, progress=False, **options)
            best[1] = min(best[1], time.perf_counter() - started)
    size = 8 * 2 * 60 * model.n
    return Row(
        "rate of sample_to over sample, 300x300 grid, thin = 5", best[0] / best[1], "x",
        f"{size / best[1] / 2**20:.0f} MiB/s to disk; both judge their draws",
    )  # fmt: skip

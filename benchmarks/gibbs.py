"""Gibbs: cost of a site update, its independence of size, memory, and scaling over cores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.one_variable import COUNT, truncnorm_draws
from benchmarks.rows import Row, best_seconds
from nnbm import NNBM, Gibbs, gallery
from nnbm.sampling.run import Schedule, run_chains

MEMORY_SCRIPT = """
import pathlib, re, warnings
import numpy as np, nnbm
from nnbm import gallery

def status(key):
    return int(re.search(key + r":\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

warnings.simplefilter("ignore", nnbm.UnreliableWarning)
nnbm.sample(gallery.square_grid(30, 30, coupling=0.2), 20, chains=2, seed=0)  # imports and compilation are not counted
before = status("VmRSS")
model = gallery.square_grid(1000, 1000, coupling=0.2)
w = model.coupling
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak of building the model is not sampling's
samples = nnbm.sample(model, 10, chains=2, seed=0, burn_in=1)
needed = 3 * model.bias.nbytes + w.data.nbytes + w.indices.nbytes + w.indptr.nbytes + samples.draws.nbytes
print((status("VmHWM") - before) / needed, needed)
"""


def sweeps(model: NNBM, count: int, method: Gibbs | None = None, threads: int = 1) -> Callable[[], object]:
    """A task that makes `count` sweeps of one chain."""
    starts = np.random.default_rng(0).exponential(size=(1, model.n))
    chain = (method or Gibbs()).chains(model, starts, 0, threads)[0]
    out = np.empty((1, model.n))
    return lambda: chain.run(count, out)


def chains(model: NNBM, count: int, threads: int) -> Callable[[], object]:
    """A task that runs `count` chains on `threads` threads."""
    schedule = Schedule(draws=20, burn_in=0, thin=10_000)

    def task() -> object:
        starts = np.ones((count, model.n))
        made = Gibbs().chains(model, starts, 0, threads)
        return run_chains(made, schedule, model.n, threads=threads, progress=False, label="")

    return task


def rows() -> Iterator[Row]:
    """One row per claim of the README."""
    z = np.random.default_rng(1).uniform(-5, 5, COUNT)
    dense, grid6 = gallery.orientation_tuning(36), gallery.square_grid(6, 6)
    many = 3000
    plain = Gibbs(cycle=("draw",))
    ours, sparse6, cycle, scipy = best_seconds(
        sweeps(dense, many, plain), sweeps(grid6, many, plain), sweeps(dense, many), truncnorm_draws(z)
    )
    update, update6, peer = ours / (36 * many), sparse6 / (36 * many), scipy / COUNT
    yield Row(
        "drawing a site, n = 36 dense, time over one scipy truncnorm draw", update / peer, "x",
        f"{update * 1e9:.0f} ns against {peer * 1e9:.0f} ns; a site of the default cycle {cycle / 36 / many * 1e9:.0f}",
        "<=", 0.2,
    )  # fmt: skip
    yield Row(
        "drawing a site, 6x6 grid sparse, time over one scipy truncnorm draw", update6 / peer, "x",
        f"{update6 * 1e9:.0f} ns against {peer * 1e9:.0f} ns",
    )  # fmt: skip
    yield from _size_rows()
    yield _memory_row()
    one, two = best_seconds(chains(dense, 1, 1), chains(dense, 2, 2), repeats=5)
    yield Row("two chains on two cores, throughput over one on one", 2 * one / two, "x", "n = 36 dense", ">=", 1.8)


def _size_rows() -> Iterator[Row]:
    small, large = gallery.square_grid(300, 300, coupling=0.2), gallery.square_grid(1000, 1000, coupling=0.2)
    chromatic = Gibbs(order="chromatic")
    few, much, color, threaded = best_seconds(
        sweeps(small, 10),
        sweeps(large, 1),
        sweeps(large, 1, chromatic),
        sweeps(large, 1, chromatic, threads=2),
    )
    rate_small, rate_large = small.n * 10 / few, large.n / much
    yield Row(
        "update rate of a 1000x1000 grid over a 300x300 grid", rate_large / rate_small, "x",
        f"{rate_large / 1e6:.1f} M against {rate_small / 1e6:.1f} M updates/s, w = 0.2", ">=", 0.9,
    )  # fmt: skip
    yield Row(
        "one chromatic chain on two threads over one sequential chain, 1000x1000", much / threaded, "x",
        f"one thread: {much / color:.2f}x",
    )  # fmt: skip


def _memory_row() -> Row:
    done = subprocess.run([sys.executable, "-c", MEMORY_SCRIPT], capture_output=True, text=True, check=True)  # noqa: S603 (our own script)
    ratio, needed = map(float, done.stdout.split())
    return Row(
        "peak memory of sampling a 1000x1000 grid over model + draws", ratio, "x",
        f"2 chains x 10 draws: {needed / 2**20:.0f} MiB needed", "<=", 1.2,
    )  # fmt: skip

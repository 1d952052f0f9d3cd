"""Draws on disk: the draws of `sample`, whatever ends a run and whenever, and nothing that is broken read as sound."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import nnbm
from nnbm import HMC, NNBM, Fields, Gibbs, Tempering, open_samples, sample, sample_to
from nnbm.recording import folder as layout
from nnbm.recording import recorder

GRID = nnbm.gallery.square_grid(3, 3)
DENSE = nnbm.gallery.orientation_tuning(8)
NAMED = NNBM(GRID.bias, GRID.coupling, names=[f"α{k}" for k in range(9)])
SAMPLERS = {
    "sparse": (GRID, Gibbs(order="sequential")),
    "dense": (DENSE, Gibbs()),
    "chromatic": (GRID, Gibbs(order="chromatic")),
    "dense chromatic": (DENSE, Gibbs(order="chromatic")),
    "fields": (GRID, Fields()),
    "tempering": (nnbm.gallery.two_modes(), Tempering(ladder=(0.0, 0.5, 1.0))),
    "hmc": (nnbm.gallery.square_grid(3, 3, coupling=0.2), HMC()),
}
FEW_DRAWS = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
pytestmark = FEW_DRAWS


def same(stored, model, draws, **options):
    """Whether the folder holds just what an uninterrupted run in memory draws."""
    return stored.complete and np.array_equal(stored.load().draws, sample(model, draws, **options).draws)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_draws_are_those_of_sample(tmp_path, name):
    model, method = SAMPLERS[name]
    options = {"chains": 3, "seed": 4, "thin": 2, "method": method}
    stored = sample_to(tmp_path / "new" / "folder", model, 300, block=70, **options)
    assert same(stored, model, 300, **options)
    assert (stored.draws, stored.asked, stored.chains, stored.n) == (300, 300, 3, model.n)
    assert stored.model == model
    sizes = [rows.shape[0] for chain, _, rows in open_samples(tmp_path / "new" / "folder").blocks() if chain == 1]
    assert sizes == [70, 70, 70, 70, 20]
    assert not list(tmp_path.rglob("*.part"))


class Crash(BaseException):
    """The process ends here."""


def crash_at(monkeypatch, count, after):
    """Let the count-th write fail, before anything or after the file is in place."""
    whole, calls, gate = layout.write_whole, iter(range(10**9)), threading.Lock()

    def write_whole(path, write):
        with gate:
            k = next(calls)
        if k > count or (k == count and not after):
            raise Crash
        whole(path, write)
        if k == count:
            raise Crash

    for module in (layout, recorder):
        monkeypatch.setattr(module, "write_whole", write_whole)
    monkeypatch.setattr("nnbm.archive.write_whole", write_whole)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_whichever_write_is_the_last_the_same_call_goes_on(tmp_path, monkeypatch, name, after):
    """Blocks of 4 draws, a note after every slice: a crash at each of the writes in turn, then one run to the end."""
    model, method = SAMPLERS[name]
    options = {"chains": 2, "seed": 1, "thin": 3, "method": method, "burn_in": 20}
    crashes = 0
    for count in range(60):
        with monkeypatch.context() as patch:
            crash_at(patch, count % 9, after)
            try:
                stored = sample_to(tmp_path, model, 22, block=4, checkpoint_every=0.0, **options)
            except Crash:
                crashes += 1
                if (tmp_path / "run.json").exists():
                    read = open_samples(tmp_path)  # never anything but whole blocks of the right draws
                    expected = sample(model, 22, **options).draws[:, : read.draws]
                    found = [rows for _, _, rows in read.blocks()]
                    assert np.array_equal(np.concatenate([*found, np.empty((0, model.n))]), np.concatenate(expected))
                continue
        break
    else:
        stored = sample_to(tmp_path, model, 22, block=4, **options)
    assert crashes > 3
    assert same(stored, model, 22, **options)


KILLED = """
import sys, warnings, nnbm
warnings.simplefilter("ignore")
grid = nnbm.gallery.square_grid(30, 30, coupling=0.2)
nnbm.sample_to(sys.argv[1], grid, 60, chains=2, seed=7, thin=300, burn_in=6000, block=10, threads=1,
               checkpoint_every=0.2)
"""


def killed(folder: Path, when) -> int:
    """A process of its own, ended by SIGKILL as soon as `when` says so; its exit code."""
    with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)]) as process:  # noqa: S603 (our own script)
        while process.poll() is None:
            if when():
                process.kill()
            time.sleep(0.01)
    return process.returncode


def test_killed_by_sigkill_in_burn_in_and_between_draws(tmp_path):
    def sweeps():
        notes = list(tmp_path.glob("chain-*/checkpoint.npz"))
        manifest = layout.read_manifest(tmp_path) if notes else None
        return [recorder.read_checkpoint(tmp_path, manifest, k).sweeps for k in (0, 1)] if notes else [0, 0]

    assert killed(tmp_path, lambda: max(sweeps()) > 0) == -signal.SIGKILL
    begun = sweeps()
    assert 0 < max(begun) < 6000 + 60 * 300
    assert killed(tmp_path, lambda: max(sweeps()) > 6000 + 25 * 300) == -signal.SIGKILL
    assert max(sweeps()) > max(begun)  # it went on, not anew
    assert open_samples(tmp_path).draws in range(0, 60, 10)
    grid, options = nnbm.gallery.square_grid(30, 30, coupling=0.2), {"chains": 2, "thin": 300, "burn_in": 6000}
    stored = sample_to(tmp_path, grid, 60, block=10, **options)
    assert same(stored, grid, 60, seed=7, **options)
    assert not list(tmp_path.rglob("*.part"))


def test_ctrl_c_notes_every_chain_and_says_how_to_go_on(tmp_path):
    grid = nnbm.gallery.square_grid(20, 20, coupling=0.2)
    options = {"chains": 3, "seed": 5, "thin": 100, "burn_in": 1000, "method": "gibbs"}
    sample(grid, 10, **options)  # compile first
    threading.Timer(0.4, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        sample_to(tmp_path, grid, 1000, block=64, **options)
    assert "of 1000 draws per chain are in whole blocks" in caught.value.__notes__[0]
    read = open_samples(tmp_path)
    assert not read.complete
    assert "of 1000 draws" in repr(read)
    if read.draws:
        assert read.moments.interrupted
        assert read.moments.counts == (read.draws,) * 3
    assert same(sample_to(tmp_path, grid, 1000, **options), grid, 1000, **options)


def test_more_draws_may_be_asked_for_later(tmp_path):
    options = {"chains": 2, "seed": 3, "thin": 2}
    for draws in (50, 50, 53, 200):  # a block that was cut short is filled up
        stored = sample_to(tmp_path, GRID, draws, block=20, **options)
        assert same(stored, GRID, draws, burn_in=50, **options)
    with pytest.raises(ValueError, match="draws = 200, not 100"):
        sample_to(tmp_path, GRID, 100, **options)


def test_a_seed_of_none_is_kept(tmp_path):
    first = sample_to(tmp_path, GRID, 100, chains=2).load().draws
    assert np.array_equal(sample_to(tmp_path, GRID, 150, chains=2).load().draws[:, :100], first)
    other = sample_to(tmp_path / "other", GRID, 100, chains=2).load().draws
    assert not np.array_equal(other, first)


@pytest.mark.parametrize("seed", [3, np.random.SeedSequence([1, 2], spawn_key=(5,)), "generator"])
def test_every_kind_of_seed_comes_back(tmp_path, seed):
    def again():
        return np.random.default_rng(8) if seed == "generator" else seed

    sample_to(tmp_path, GRID, 40, chains=2, seed=again())
    stored = sample_to(tmp_path, GRID, 90, chains=2, seed=again())
    assert same(stored, GRID, 90, chains=2, seed=again(), burn_in=20)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 2}, "seed = {'entropy': 1"),
        ({"thin": 3}, "thin = 2, not 3"),
        ({"chains": 3}, "chains = 2, not 3"),
        ({"burn_in": 7}, "burn_in = 50, not 7"),
        ({"block": 11}, "block = 50, not 11"),
        ({"initial": np.ones(9)}, "another initial"),
        (
            {"method": Gibbs(order="chromatic")},
            r"options = Gibbs\(order=None, cycle=.*\), not Gibbs\(order='chromatic', cycle=",
        ),
        ({"model": NNBM(GRID.bias + 1e-9, GRID.coupling)}, "another model"),
        ({"model": NAMED}, "another model"),
        ({"model": NNBM(GRID.bias, GRID.coupling, upper=9.0)}, "another model"),
    ],
)
def test_other_arguments_are_refused_by_name(tmp_path, changed, message):
    arguments = {"model": GRID, "draws": 50, "chains": 2, "seed": 1, "thin": 2}
    sample_to(tmp_path, **arguments)
    with pytest.raises(ValueError, match=rf"were begun with .*{message}.*Give the same arguments"):
        sample_to(tmp_path, **(arguments | changed))
    sample_to(tmp_path, **(arguments | {"threads": 1, "checkpoint_every": 1.0}))


def test_another_version_is_refused(tmp_path, monkeypatch):
    sample_to(tmp_path, GRID, 20, chains=2, seed=1)
    monkeypatch.setattr("nnbm.recording.sample_to.versions", lambda: {"nnbm": "9.9"})
    with pytest.raises(ValueError, match=r"nnbm's version = .*, not 9\.9"):
        sample_to(tmp_path, GRID, 20, chains=2, seed=1)


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    pytest.importorskip("fcntl")
    with layout.locked(tmp_path), pytest.raises(ValueError, match="another process is writing"):
        sample_to(tmp_path, GRID, 20)
    sample_to(tmp_path, GRID, 20, seed=0)


def test_what_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match=r"holds no draws, but thesis.tex"):
        sample_to(tmp_path, GRID, 20)
    with pytest.raises(ValueError, match=r"holds no draws \(no run.json\)"):
        open_samples(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "x"


def test_what_a_wrong_call_asks_for_makes_no_folder(tmp_path):
    for wrong in ({"draws": 0}, {"method": "metropolis"}, {"thin": 0}):
        with pytest.raises(ValueError, match=r"draws: |method: |thin: "):
            sample_to(tmp_path / "none", GRID, **wrong)
    with pytest.raises(ValueError, match="block: at least 1"):
        sample_to(tmp_path / "other", GRID, block=0)
    assert not (tmp_path / "none").exists()


def test_loading_a_part(tmp_path):
    stored = sample_to(tmp_path, NAMED, 100, chains=2, seed=1, block=30)
    part = stored.load(["α7", 2], every=7)
    whole = sample(NAMED, 14, chains=2, seed=1, thin=7, burn_in=50)
    assert np.array_equal(part.draws, whole.draws[:, :, [7, 2]])
    assert (part.names, part.thin, part.burn_in) == (("α7", "α2"), 7, 50)
    assert stored.load(every=7).names == NAMED.names
    for wrong, message in (({"every": 0}, "every: 1 to 100"), ({"variables": ["β"]}, "one is 'β'"), ({"variables": [9]}, "one is 9")):  # fmt: skip  # noqa: E501
        with pytest.raises(ValueError, match=message):
            stored.load(**wrong)


def test_moments_in_one_pass(tmp_path):
    stored = sample_to(tmp_path, NAMED, 500, chains=2, seed=1, block=30)
    direct = nnbm.sample_moments(NAMED, 500, chains=2, seed=1)
    for name in ("mean", "variance", "mean_error"):
        assert np.array_equal(getattr(stored.moments, name), getattr(direct, name))
    assert (stored.moments.covariance != direct.covariance).nnz == 0
    assert stored.moments.names == NAMED.names


def test_unreliable_draws_are_never_silent(tmp_path):
    model = NNBM([40.0, 40.0], [[1.0, 3.0], [3.0, 1.0]], names=["left", "right"])
    starts = np.array([[40.0, 0.0], [0.0, 40.0]])
    with pytest.warns(nnbm.UnreliableWarning, match=r"R-hat exceeds 1.01 for (left|right)") as caught:
        sample_to(tmp_path, model, 200, chains=2, method="gibbs", initial=starts, seed=0)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample_to(tmp_path / "well", GRID, 4000, seed=0)


def break_file(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(data[:-8])
    elif how == "longer":
        path.write_bytes(data + b"12345678")
    elif how == "noise":
        path.write_bytes(os.urandom(len(data)))
    elif how == "other shape":
        np.save(path, np.zeros((30, 8)))
    elif how == "other numbers":
        np.save(path, np.zeros((30, 9), np.float32))
    elif how == "pickle":
        np.save(path, np.array([{}] * 270).reshape(30, 9), allow_pickle=True)


@pytest.mark.parametrize("how", ["gone", "cut", "longer", "noise", "other shape", "other numbers", "pickle"])
def test_a_broken_block_is_refused_by_name(tmp_path, how):
    sample_to(tmp_path, GRID, 100, chains=2, seed=1, block=30)
    break_file(tmp_path / "chain-1" / "000002.npy", how)
    with pytest.raises(ValueError, match=r"chain-1.000002.npy (is missing|should hold 30 x 9).*Restore it"):
        open_samples(tmp_path)
    with pytest.raises(ValueError, match=r"000002.npy"):
        sample_to(tmp_path, GRID, 100, chains=2, seed=1, block=30)


def test_damaged_numbers_are_seen_in_the_moments(tmp_path):
    stored = sample_to(tmp_path, GRID, 100, chains=2, seed=1, block=30)
    rows = np.load(tmp_path / "chain-0" / "000001.npy")
    rows[3, 4] = np.nan
    np.save(tmp_path / "chain-0" / "000001.npy", rows)
    with pytest.raises(ValueError, match="not finite"):
        _ = open_samples(tmp_path).moments
    assert np.isfinite(stored.moments.mean).all()  # of before


@pytest.mark.parametrize("how", ["cut", "noise"])
def test_a_broken_note_is_refused_by_name(tmp_path, how):
    sample_to(tmp_path, GRID, 100, chains=2, seed=1, block=30)
    break_file(tmp_path / "chain-0" / "checkpoint.npz", how)
    with pytest.raises(ValueError, match=r"checkpoint.npz"):
        open_samples(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("draws", 90), ("n", 8), ("block", 31), ("chains", "2"), ("thin", 0), ("format", "zarr"), ("names", ["a"]),
        ("model", 3), ("method", None), ("extra", 1),
    ],
)  # fmt: skip
def test_a_broken_manifest_is_refused(tmp_path, key, value):
    sample_to(tmp_path, GRID, 100, chains=2, seed=1, block=30)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ValueError, match="folder: "):
        open_samples(tmp_path)
    path.write_text("{")
    with pytest.raises(ValueError, match="is not sound"):
        open_samples(tmp_path)


def test_another_model_in_the_folder_is_seen(tmp_path):
    stored = sample_to(tmp_path, GRID, 100, chains=2, seed=1)
    nnbm.save_model(NAMED, tmp_path / "model.npz")
    assert stored.moments.n == 9  # read before
    with pytest.raises(ValueError, match=r"is not the model that run.json speaks of"):
        _ = open_samples(tmp_path).model


class Tuned:
    """A chain that scales what Gibbs draws by a number that it tunes, and tells a rate once it knows one."""

    def __init__(self, inner):
        self.inner, self.scale, self.kept = inner, 1.0, 0

    def run(self, sweeps, draws):
        self.inner.run(sweeps, draws)
        self.kept += draws.shape[0]
        for row in draws:
            self.scale *= 1.0 + 1e-3 * np.sin(row[0])
            row[:] = self.scale * row

    def state(self):
        return {**self.inner.state(), "scale": np.array(self.scale), "kept": np.array(self.kept)}

    def restore(self, state):
        self.inner.restore({name: value for name, value in state.items() if name not in ("scale", "kept")})
        self.scale, self.kept = float(state["scale"]), int(state["kept"])

    def info(self):
        return {"scale": self.scale, "rate": np.nan if self.kept < 40 else 0.5}


@dataclasses.dataclass(frozen=True)
class Tuning:
    pilot: np.ndarray
    name = "tuning"

    def chains(self, model, starts, seed, threads):
        return [Tuned(chain) for chain in Gibbs().chains(model, starts, seed, threads)]


def test_a_sampler_of_ones_own_is_resumed_with_its_numbers_and_info(tmp_path, monkeypatch):
    method = Tuning(np.arange(9.0))
    options = {"chains": 2, "seed": 1, "thin": 1, "burn_in": 0, "method": method}
    for count in range(4, 20):  # how many slices, and so notes, there are is a matter of time
        with monkeypatch.context() as patch:
            crash_at(patch, count, after=True)
            with pytest.raises(Crash):
                sample_to(tmp_path, GRID, 90, block=10, checkpoint_every=0.0, **options)
        begun = open_samples(tmp_path)
        if begun.draws > 0:
            break
    assert 0 < begun.draws < 90
    stored = sample_to(tmp_path, GRID, 90, block=10, **options)
    whole = sample(GRID, 90, **options)
    assert np.array_equal(stored.load().draws, whole.draws)
    assert {name: value.tolist() for name, value in stored.info.items()} == {
        name: value.tolist() for name, value in whole.info.items()
    }
    with pytest.raises(ValueError, match=r"options = Tuning\(pilot=.*\), not Tuning\(pilot="):
        sample_to(tmp_path, GRID, 90, block=10, **(options | {"method": Tuning(np.ones(9))}))


class Lopsided:
    """A chain whose state is not what was noted."""

    def state(self):
        return {"x": np.zeros(3)}


def test_a_state_of_another_kind_is_refused():
    for state in ({"x": np.zeros(4)}, {"x": np.zeros(3, int)}, {"x": np.zeros(3), "v": np.zeros(3)}, {}):
        with pytest.raises(ValueError, match="the checkpoint's '"):
            recorder.restore(Lopsided(), state)


def test_options_tell_samplers_apart():
    assert layout.options_of(Gibbs(order="chromatic", cycle=("draw",))) == "Gibbs(order='chromatic', cycle=('draw',))"
    with pytest.raises(TypeError, match="a sampler that is a dataclass is needed"):
        layout.options_of(Lopsided())

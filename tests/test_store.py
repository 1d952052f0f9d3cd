"""Files: what was saved comes back, what is broken is refused, nothing half written is left."""

import csv
import dataclasses
import os
import stat
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nnbm
from nnbm.store import load_inference, load_model, load_samples, save_inference, save_model, save_samples

MODELS = {
    "sparse": nnbm.gallery.square_grid(4, 5),
    "dense": nnbm.gallery.orientation_tuning(6),
    "named": nnbm.NNBM([0.1, 0.2], np.eye(2), names=["α", "<b>"]),
    "diagonal": nnbm.gallery.random_graph(5, degree=0.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_come_back(tmp_path, name):
    path = tmp_path / "model.npz"
    save_model(MODELS[name], path)
    assert load_model(path) == MODELS[name]
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_samples_come_back(tmp_path):
    s = nnbm.sample(MODELS["named"], 300, seed=0)
    save_samples(s, tmp_path / "s.npz")
    back = load_samples(str(tmp_path / "s.npz"))
    assert (back.draws == s.draws).all()
    for field in ("names", "method", "burn_in", "thin", "seconds", "interrupted", "detail", "info"):
        assert getattr(back, field) == getattr(s, field)


def test_what_a_sampler_tells_comes_back(tmp_path):
    plain = nnbm.sample(MODELS["named"], 300, chains=2, seed=0)
    told = dataclasses.replace(
        plain, info={"acceptance": np.array([0.5, 0.6]), "swap rates": np.ones((2, 3))}, detail="why"
    )
    save_samples(told, tmp_path / "s.npz")
    back = load_samples(tmp_path / "s.npz")
    assert back.detail == "why"
    assert back.info.keys() == told.info.keys()
    assert all((back.info[name] == value).all() for name, value in told.info.items())


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    save_model(MODELS["dense"], path)

    def full_disk(*args, **arrays):
        args[0].write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_model(MODELS["sparse"], path)
    monkeypatch.undo()
    assert load_model(path) == MODELS["dense"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def write(path: Path, **arrays) -> Path:
    np.savez(path, **arrays)
    return path


def test_broken_files_are_refused_with_a_reason(tmp_path):
    good = tmp_path / "good.npz"
    save_model(MODELS["sparse"], good)
    cut = tmp_path / "cut.npz"
    cut.write_bytes(good.read_bytes()[:300])
    text = tmp_path / "text.npz"
    text.write_text("bias,coupling\n")
    empty = tmp_path / "empty.npz"
    empty.write_bytes(b"")
    array = tmp_path / "array.npz"
    with array.open("wb") as file:
        np.save(file, np.ones(3))
    for path in (cut, text, empty, array):
        with pytest.raises(ValueError, match="is not a sound npz file"):
            load_model(path)
    foreign = write(tmp_path / "foreign.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="should say 'nnbm model 1', but says None"):
        load_model(foreign)
    s = nnbm.sample(MODELS["named"], 300, seed=0)
    save_samples(s, tmp_path / "s.npz")
    with pytest.raises(ValueError, match="says 'nnbm samples 1'"):
        load_model(tmp_path / "s.npz")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nowhere.npz")
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        save_model(MODELS["dense"], tmp_path / "no" / "m.npz")


def test_unsound_contents_are_refused(tmp_path):
    kind = np.array("nnbm model 1")
    names = np.array([], dtype=np.str_)
    parts = {"format": kind, "names": names, "bias": np.zeros(2)}
    for bad, reason in [
        ({"coupling": -np.eye(2)}, "must be positive"),
        ({"coupling": np.eye(3)}, "same n variables"),
        ({}, "data"),
        ({"data": np.ones(2), "indices": np.array([0, 9]), "indptr": np.array([0, 1, 2])}, "sound model"),
    ]:
        with pytest.raises(ValueError, match=reason):
            load_model(write(tmp_path / "bad.npz", **parts, **bad))


def test_pickles_are_never_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path(tmp_path / "exploded").touch, ())

    path = write(tmp_path / "bomb.npz", format=np.array("nnbm model 1"), bias=np.array([Bomb()], dtype=object))
    with pytest.raises(ValueError, match="not a sound npz file"):
        load_model(path)
    assert not (tmp_path / "exploded").exists()
    assert zipfile.is_zipfile(path)


def corruptions(good: bytes, count: int, seed: int):
    """Deterministic damage: bytes changed anywhere, and more often in headers; cuts; insertions; fields blown up."""
    rng = np.random.default_rng(seed)
    heads = [k for k in range(len(good) - 4) if good[k : k + 2] == b"PK" or good[k : k + 6] == b"\x93NUMPY"]
    for k in range(count):
        data = bytearray(good)
        at = int(rng.choice(heads)) + int(rng.integers(0, 90)) if k % 4 else int(rng.integers(len(data)))
        at = min(at, len(data) - 9)
        if k % 5 == 0:
            data = data[:at]
        elif k % 5 == 1:
            data[at : at + int(rng.integers(1, 9))] = b"\xff" * 8
        elif k % 5 == 2:
            data[at] ^= 1 << int(rng.integers(8))
        elif k % 5 == 3:
            data[at] = int(rng.choice(list(b"09(){}',: \n\x00<|OUf")))
        else:
            data[at:at] = rng.bytes(int(rng.integers(1, 40)))
        yield bytes(data)


@pytest.mark.parametrize("what", ["sparse", "dense", "named", "samples", "inference"])
def test_damaged_files_are_value_errors_and_take_no_memory(tmp_path, what):
    path, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    if what == "inference":
        save_inference(INFERENCES["several modes"], path)
        load = load_inference
    elif what == "samples":
        save_samples(nnbm.sample(MODELS["named"], 300, seed=0), path)
        load = load_samples
    else:
        save_model(MODELS[what], path)
        load = load_model
    refused = 0
    tracemalloc.start()
    for data in corruptions(path.read_bytes(), 250, seed=1):
        bad.write_bytes(data)
        try:
            load(bad)
        except ValueError as error:
            assert str(bad) in str(error)  # noqa: PT017 (some damage is harmless)
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > 100
    assert peak < 20e6


def with_member(path: Path, name: str, content: bytes, compression=zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for key, value in {"format": np.array("nnbm model 1"), "names": np.array([], dtype=np.str_)}.items():
            with file.open(f"{key}.npy", "w") as member:
                np.lib.format.write_array(member, value)
        file.writestr(f"{name}.npy", content, compression)
    return path


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-1,)", "(99999999999999999999999,)", "(2, 10**9)"])
def test_a_header_that_promises_too_much_is_refused_before_memory_is_taken(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(16)
    with pytest.raises(ValueError, match="is not a sound npz file"):
        load_model(with_member(tmp_path / "m.npz", "bias", content))


def test_a_zip_bomb_is_refused(tmp_path):
    path = with_member(tmp_path / "m.npz", "bias", bytes(10**8), zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"bias\.npy is compressed"):
        load_model(path)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


def test_indices_outside_the_matrix_are_refused_not_followed(tmp_path):
    """The diagonal is intact, so that nothing but the indices can be wrong."""
    w = MODELS["sparse"].coupling
    indices = w.indices.copy()
    indices[1] = 10**9
    assert w.diagonal()[0] == w.data[0]
    parts = {"format": np.array("nnbm model 1"), "names": np.array([], dtype=np.str_), "bias": np.zeros(20)}
    path = write(tmp_path / "m.npz", **parts, data=w.data, indices=indices, indptr=w.indptr)
    with pytest.raises(ValueError, match=r"m\.npz does not hold a sound model: coupling: this csr matrix is broken"):
        load_model(path)


GOOD_DRAWS = {
    "format": np.array("nnbm samples 1"),
    "draws": np.ones((2, 5, 3)),
    "names": np.array(["a", "b", "c"]),
    "method": np.array("gibbs"),
    "burn_in": np.array(3),
    "thin": np.array(1),
    "seconds": np.array(0.5),
    "interrupted": np.array(False),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": np.ones((5, 3))}, r"draws: shape \(chains, draws, n\) is needed; its shape is \(5, 3\)"),
        ({"draws": np.ones((2, 0, 3))}, r"its shape is \(2, 0, 3\)"),
        ({"draws": np.ones((2, 5, 3)) * 1j}, "draws: real numbers are needed, but its dtype is complex128"),
        ({"draws": np.full((2, 5, 3), np.nan)}, r"draws: every value must be finite, but draws\[0, 0, 0\] = nan"),
        ({"names": np.array(["a", "b"])}, "there are 2 for 3"),
        ({"names": np.array([1.0, 2.0, 3.0])}, "names: a row of strings is needed"),
        ({"thin": np.array(2.5)}, "thin: a whole number is needed"),
        ({"thin": np.array(0)}, "thin: at least 1 is needed"),
        ({"burn_in": np.array([3])}, "burn_in: a whole number is needed"),
        ({"seconds": np.array(np.nan)}, "seconds: every value must be finite"),
        ({"seconds": np.array("soon")}, "seconds: one value of NumPy's kind 'f'"),
        ({"method": np.array(["gibbs"])}, "method: one value"),
        ({"interrupted": np.array([False, True])}, "interrupted: one value"),
        ({"detail": np.array(1.0)}, "detail: one value"),
        ({"info": np.array(["a"]), "info a": np.ones(3)}, "a: one row per chain is needed"),
    ],
)
def test_unsound_draws_are_refused(tmp_path, change, message):
    assert load_samples(write(tmp_path / "good.npz", **GOOD_DRAWS)).draws.shape == (2, 5, 3)
    with pytest.raises(ValueError, match=rf"bad\.npz does not hold sound draws: .*{message}"):
        load_samples(write(tmp_path / "bad.npz", **GOOD_DRAWS | change))


def test_a_missing_array_is_named(tmp_path):
    parts = {key: value for key, value in GOOD_DRAWS.items() if key != "thin"}
    with pytest.raises(ValueError, match=r"bad\.npz lacks its array thin"):
        load_samples(write(tmp_path / "bad.npz", **parts))


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o007, 0o660), (0o077, 0o600)])
def test_files_get_the_mode_that_the_umask_leaves(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        save_model(MODELS["dense"], tmp_path / "m.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m.npz").stat().st_mode) == mode


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_saving_through_a_link_replaces_its_target(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "m.npz", tmp_path / "link.npz"
    link.symlink_to(target)
    for model in (MODELS["dense"], MODELS["named"]):  # the first time the link leads nowhere yet
        save_model(model, link)
        assert link.is_symlink()
        assert load_model(target) == model
        assert [path.name for path in target.parent.iterdir()] == ["m.npz"]


with warnings.catch_warnings():
    warnings.simplefilter("ignore", nnbm.UnreliableWarning)
    INFERENCES = {
        "converged": nnbm.infer(nnbm.NNBM([0.1, 0.2], [[1.0, 0.3], [0.3, 1.0]], names=["a,b", '"']), "isusp"),
        "no covariance": nnbm.infer(MODELS["sparse"], "tap"),
        "exact": nnbm.infer(MODELS["named"], "exact"),
        "several modes": nnbm.infer(nnbm.gallery.two_modes(bias=(6.0, 7.0)), "naive"),
        "partial": nnbm.infer(nnbm.gallery.two_modes(bias=(6.0, 7.0)), "isusp", throw=False),
    }


def assert_same(back, r):
    for field in ("method", "names", "status", "expected_error", "iterations", "history", "detail"):
        assert getattr(back, field) == getattr(r, field), field
    for field in ("mean", "variance", "l", "r"):
        np.testing.assert_array_equal(getattr(back, field), getattr(r, field))
    if r.converged:
        np.testing.assert_array_equal(back.covariance, r.covariance)
        assert back.log_partition == r.log_partition
    else:
        assert back.covariance is None
        assert back.log_partition is None


@pytest.mark.parametrize("name", INFERENCES)
def test_inferences_come_back(tmp_path, name):
    r = INFERENCES[name]
    save_inference(r, tmp_path / "r.npz")
    back = load_inference(tmp_path / "r.npz")
    assert_same(back, r)
    assert len(back.alternatives) == len(r.alternatives) == {"several modes": 1, "partial": 2}.get(name, 0)
    for other, original in zip(back.alternatives, r.alternatives, strict=True):
        assert_same(dataclasses.replace(other, history=original.history, detail=original.detail), original)
    with pytest.raises(ValueError, match="has none here"):
        _ = back.susceptibilities
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]


@pytest.mark.parametrize("name", INFERENCES)
def test_a_csv_holds_the_numbers_and_the_verdict(tmp_path, name):
    r = INFERENCES[name]
    save_inference(r, tmp_path / "r.CSV")
    with (tmp_path / "r.CSV").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["variable"] for row in rows] == [r.label(k) for k in range(r.n)]
    assert [float(row["mean"]) for row in rows] == r.mean.tolist()
    assert [float(row["standard_deviation"]) for row in rows] == r.standard_deviation.tolist()
    assert {(row["method"], row["status"]) for row in rows} == {(r.method, r.status.name)}
    assert {float(row["expected_error"]) for row in rows} == {r.expected_error}


def test_an_inference_is_written_whole_under_a_sound_name(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"a name ending in \.npz or \.csv is needed, but path = .*r\.txt"):
        save_inference(INFERENCES["exact"], tmp_path / "r.txt")
    path = tmp_path / "r.csv"
    save_inference(INFERENCES["exact"], path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        save_inference(INFERENCES["converged"], path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": np.array("FINE")}, "status: one of CONVERGED, .* but status = 'FINE'"),
        ({"mean": np.ones((2, 1))}, r"mean: one per variable is needed; its shape is \(2, 1\)"),
        ({"mean": np.array([1.0, np.nan])}, r"mean\[1\] = nan"),
        ({"variance": np.ones(3)}, r"variance: shape \(2,\) is needed; its shape is \(3,\)"),
        ({"covariance": np.array([[1.0, np.nan], [0.0, 1.0]])}, r"covariance\[0, 1\] = nan"),
        ({"expected_error": np.array("small")}, "expected_error: one value of NumPy's kind 'f'"),
        ({"names": np.array(["a"])}, "with 1 names"),
        ({"alternative_mean": np.ones((1, 2))}, "zip"),
    ],
)
def test_unsound_inferences_are_refused(tmp_path, change, message):
    save_inference(INFERENCES["converged"], tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        parts = dict(file)
    with pytest.raises(ValueError, match=rf"bad\.npz does not hold a sound inference: .*{message}"):
        load_inference(write(tmp_path / "bad.npz", **parts | change))

"""Files: what was saved comes back, what is broken is refused, nothing half written is left."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import nnbm
from nnbm.store import load_model, load_samples, save_model, save_samples

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
    for field in ("names", "method", "burn_in", "thin", "seconds", "interrupted"):
        assert getattr(back, field) == getattr(s, field)


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

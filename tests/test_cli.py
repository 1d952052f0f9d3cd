"""The command line as a user meets it: a process, its output, its files and its exit code."""

import subprocess
import sys

import numpy as np
import pytest

import nnbm
from nnbm.store import load_model, load_samples, save_model


def run(*arguments, cwd=None):
    command = [sys.executable, "-m", "nnbm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=300)  # noqa: S603


def test_demo_prints_a_table_and_writes_what_is_asked(tmp_path):
    done = run("demo", "--n", 12, "--draws", 2000, "--save-model", "ring.npz", "--output", "draws.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("12 variables", "R-hat", "ESS", "largest R-hat", "figure: orientation_tuning.png"):
        assert word in done.stdout
    assert (tmp_path / "orientation_tuning.png").stat().st_size > 20_000
    assert load_model(tmp_path / "ring.npz") == nnbm.gallery.orientation_tuning(12)
    assert load_samples(tmp_path / "draws.npz").draws.shape == (4, 2000, 12)
    assert done.stderr == ""  # no bar in a pipe


def test_sample_a_saved_model(tmp_path):
    save_model(nnbm.NNBM([1.0, 0.0], np.eye(2), names=["[red]", "<script>"]), tmp_path / "m.npz")
    done = run("sample", "m.npz", "--figure", "f.svg", "--seed", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[red]" in done.stdout
    assert "<script>" in done.stdout
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")


def test_an_unreliable_result_is_exit_code_1(tmp_path):
    save_model(nnbm.gallery.two_modes(competition=3.0, bias=(15.0, 15.0)), tmp_path / "m.npz")
    done = run("sample", "m.npz", "--draws", 100, cwd=tmp_path)
    assert done.returncode == 1
    assert "R-hat exceeds 1.01" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "nowhere.npz"], "nowhere.npz"),
        (["demo", "--draws", "0"], "draws"),
        (["demo", "--epsilon", "12"], "x'Wx"),
        (["demo", "--draws", "2000", "--figure", "no/such/folder.png"], "folder"),
        (["paint"], "paint"),
    ],
)
def test_wrong_use_is_exit_code_2_and_one_reason(tmp_path, arguments, message):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_examples_and_version():
    for words in (["--help"], ["demo", "--help"], ["sample", "--help"]):
        done = run(*words)
        assert done.returncode == 0
        assert "Usage" in done.stdout
        if len(words) == 2:
            assert "Example" in done.stdout
    assert run("--version").stdout.startswith("nnbm 0.")

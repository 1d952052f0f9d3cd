"""The command line as a user meets it: a process, its output, its files and its exit code."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import nnbm
from nnbm import cli
from nnbm.inference.infer import METHODS
from nnbm.store import load_inference, load_model, load_samples, save_model


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


def test_sample_several_modes_by_tempering(tmp_path):
    save_model(nnbm.gallery.two_modes(competition=6.0, bias=(6.0, 6.15)), tmp_path / "m.npz")
    done = run("sample", "m.npz", "--method", "tempering", "--output", "d.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = load_samples(tmp_path / "d.npz")
    assert drawn.method == "tempering"
    assert drawn.info["swap_rates"].shape[0] == 4


def test_sample_a_saved_model(tmp_path):
    save_model(nnbm.NNBM([1.0, 0.0], np.eye(2), names=["[red]", "<script>"]), tmp_path / "m.npz")
    done = run("sample", "m.npz", "--figure", "f.svg", "--seed", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[red]" in done.stdout
    assert "<script>" in done.stdout
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")


def test_an_unreliable_result_is_exit_code_1(tmp_path):
    save_model(nnbm.gallery.two_modes(competition=3.0, bias=(15.0, 15.0)), tmp_path / "m.npz")
    done = run("sample", "m.npz", "--draws", 100, "--method", "gibbs", cwd=tmp_path)
    assert done.returncode == 1
    assert "R-hat exceeds 1.01" in " ".join(done.stderr.split())


def test_sample_to_a_folder_which_goes_on(tmp_path):
    grid = nnbm.gallery.square_grid(3, 3, coupling=0.3)
    save_model(grid, tmp_path / "grid.npz")
    for draws in (1500, 3000):
        done = run("sample", "grid.npz", "--draws", draws, "--thin", 3, "--seed", 2, "--to", "draws", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"4 chains x {draws} draws" in done.stdout
        assert "draws: draws" in done.stdout
        assert "ESS mean" in done.stdout
    expected = nnbm.sample(grid, 3000, thin=3, seed=2, burn_in=2250)
    assert (nnbm.open_samples(tmp_path / "draws").load().draws == expected.draws).all()
    wrong = run("sample", "grid.npz", "--draws", 3000, "--to", "draws", "--figure", "f.png", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "to: --figure and --output need all draws in memory" in wrong.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal there")
def test_ctrl_c_says_how_to_go_on(tmp_path):
    save_model(nnbm.gallery.square_grid(30, 30, coupling=0.2), tmp_path / "grid.npz")
    command = [
        sys.executable,
        "-m",
        "nnbm",
        "sample",
        "grid.npz",
        "--draws",
        "100000",
        "--thin",
        "100",
        "--to",
        "draws",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        while process.poll() is None and not (tmp_path / "draws" / "chain-3").exists():
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "the same call goes on from there" in said
    assert "Traceback" not in said
    assert not nnbm.open_samples(tmp_path / "draws").complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "nowhere.npz"], "nowhere.npz"),
        (["demo", "--draws", "0"], "draws"),
        (["demo", "--epsilon", "12"], "x'Wx"),
        (["demo", "--draws", "2000", "--figure", "no/such/folder.png"], "folder"),
        (["infer", "nowhere.npz"], "nowhere.npz"),
        (["infer", "grid.npz", "--method", "bp"], "method = 'bp'"),
        (["infer", "grid.npz", "--method", "exact"], "without cycles"),
        (["infer", "grid.npz", "--output", "table.txt"], "ending in .npz or .csv"),
        (["infer", "grid.npz", "--output", "no/such/folder.csv"], "folder"),
        (["paint"], "paint"),
        (["reproduce", "--experiment", "moon"], "experiment: one of all, paper"),
        (["reproduce", "--trials", "0"], "trials"),
        (["reproduce", "--quick", "--trials", "7"], "--quick means five"),
    ],
)
def test_wrong_use_is_exit_code_2_and_one_reason(tmp_path, arguments, message):
    save_model(nnbm.gallery.square_grid(3, 3, coupling=0.3), tmp_path / "grid.npz")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_fit_learns_a_table_and_leaves_what_is_asked(tmp_path):
    truth = nnbm.gallery.square_grid(2, 2, coupling=0.5, seed=1)
    rows = nnbm.sample(truth, draws=2000, chains=4, seed=2, progress=False).flat
    lines = ["plot,[red],ash,elm,fir", *(f"p{k},{','.join(map(repr, map(float, row)))}" for k, row in enumerate(rows))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    words = ("fit", "t.csv", "--columns", "[red],ash,elm,fir")
    done = run(*words, "--output", "fit.npz", "--save-model", "m.npz", "--figure", "f.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[red] – ash" in done.stdout
    assert "pseudolikelihood" in done.stdout
    est = nnbm.NonnegativeBoltzmann.load(tmp_path / "fit.npz")
    assert est.model_ == load_model(tmp_path / "m.npz")
    assert est.model_.names == ("[red]", "ash", "elm", "fir")
    assert (tmp_path / "f.png").stat().st_size > 10_000
    wrong = run("fit", "t.csv", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "row 1 of 'plot'" in wrong.stderr


def test_a_table_between_other_ends(tmp_path):
    truth = nnbm.NNBM([1.0, -0.5], [[2.0, 0.8], [0.8, -1.0]], lower=-1.0, upper=1.0, names=["a", "b"])
    rows = nnbm.sample(truth, draws=2000, chains=4, seed=2, progress=False).flat
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="a,b", comments="")
    ends = ("--lower", -1, "--upper", 1)
    done = run("fit", "t.csv", *ends, "--output", "fit.npz", "--save-model", "m.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    est, model = nnbm.NonnegativeBoltzmann.load(tmp_path / "fit.npz"), load_model(tmp_path / "m.npz")
    assert est.model_ == model
    assert (model.lower.tolist(), model.upper.tolist()) == ([-1.0, -1.0], [1.0, 1.0])
    assert np.abs((est.coupling_ - truth.coupling) / est.standard_errors_.coupling).max() < 4.5
    told = run("infer", "m.npz", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "bounded" in told.stdout
    drawn = run("sample", "m.npz", "--draws", 500, "--output", "s.npz", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert np.abs(load_samples(tmp_path / "s.npz").draws).max() <= 1.0
    for words in (("--upper", 0.5), (*ends[:2], "--upper", -2), ("--lower", "nan")):
        wrong = run("fit", "t.csv", *words, cwd=tmp_path)
        assert wrong.returncode == 2
        assert "Traceback" not in wrong.stderr


def test_a_biased_fit_is_exit_code_1(tmp_path):
    strong = nnbm.gallery.square_grid(4, 4, coupling=1.0, seed=1)
    np.save(tmp_path / "t.npy", nnbm.sample(strong, draws=3000, chains=4, thin=5, seed=2, progress=False).flat)
    done = run("fit", "t.npy", "--method", "isusp", cwd=tmp_path)
    assert done.returncode == 1
    assert "may be off" in " ".join(done.stderr.split())
    assert re.search(r"x\d+ – x\d+", done.stdout)


def test_reproduce_prints_the_papers_table_and_goes_on_where_it_stood(tmp_path):
    words = ("reproduce", "--experiment", "grid", "--trials", 1, "--workers", 1, "--folder", "out")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("I-SusP", "pseudo-likelihood", ".153/.060", "floor", "report: out/report.html"):
        assert word in done.stdout
    assert done.stderr == ""
    assert "<title>" in (tmp_path / "out" / "report.html").read_text()
    again = run(*words, cwd=tmp_path)
    assert "finished before, in out: 1 trials" in again.stdout


def test_help_tells_the_defaults():
    said = run("reproduce", "--help").stdout
    assert "one per core" in said
    assert "50; 10 if hard" in said


def test_help_has_examples_and_version():
    for words in (["--help"], *([command, "--help"] for command in ("demo", "sample", "fit", "reproduce", "infer"))):
        done = run(*words)
        assert done.returncode == 0
        assert "Usage" in done.stdout
        if len(words) == 2:
            assert "Example" in done.stdout
    told = run("infer", "--help").stdout
    assert all(method in told for method in METHODS)
    assert run("--version").stdout.startswith("nnbm 0.")


def test_infer_prints_a_table_and_writes_what_is_asked(tmp_path):
    model = nnbm.gallery.square_grid(4, 4, coupling=0.5)
    save_model(model, tmp_path / "m.npz")
    done = run("infer", "m.npz", "--method", "isusp", "--output", "r.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    r = nnbm.infer(model, "isusp")
    for word in (
        "16 variables, isusp",
        "x[11]",
        "4 more",
        "strongest correlations",
        "status: converged",
        "result: r.npz",
    ):
        assert word in done.stdout
    assert f"{r.mean[3]:.4g}" in done.stdout
    assert f"ln Z {r.log_partition:.6g}, expected error {r.expected_error:.1g} sd" in done.stdout
    np.testing.assert_allclose(load_inference(tmp_path / "r.npz").mean, r.mean, rtol=1e-12)
    assert run("infer", "m.npz", "--output", "r.csv", cwd=tmp_path).returncode == 0
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 17


@pytest.mark.parametrize(
    ("model", "method", "words"),
    [
        (nnbm.gallery.orientation_tuning(12, epsilon=3.0), "isusp", "isusp: no stable solution"),
        (nnbm.gallery.square_grid(6, 6, coupling=1.2), "isusp", "isusp: converged, but this approximation is not"),
        (nnbm.gallery.two_modes(bias=(6.0, 7.0)), "naive", "naive: converged to one of several stable solutions"),
    ],
)
def test_an_unreliable_inference_is_shown_with_exit_code_1(tmp_path, model, method, words):
    save_model(model, tmp_path / "m.npz")
    done = run("infer", "m.npz", "--method", method, "--output", "r.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert f"warning: {words}" in " ".join(done.stderr.split())
    assert "x[0]" in done.stdout
    assert ",CONVERGED," not in (tmp_path / "r.csv").read_text()


@pytest.mark.parametrize("error", [RuntimeError("no agreement"), OverflowError("a chain ran away")])
def test_a_method_that_gives_up_is_one_line_and_exit_code_1(monkeypatch, capsys, error):
    def give_up():
        raise error

    monkeypatch.setattr(cli, "app", give_up)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err == f"nnbm: {error}\n"

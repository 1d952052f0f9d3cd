import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nnbm.study.run import names_of, run_trials
from nnbm.study.trial import Task, load_outcome


def test_names_stand_for_groups():
    assert names_of("grid") == ("grid",)
    assert len(names_of("hard")) == 4
    assert set(names_of("paper")) < set(names_of("all"))
    with pytest.raises(ValueError, match="experiment: one of all, paper, hard, grid"):
        names_of("square")


def test_finished_trials_are_not_run_again_and_damaged_ones_are(tmp_path):
    first = run_trials(["grid"], tmp_path, trials=1, workers=1)
    assert first.reused == 0
    more = run_trials(["grid"], tmp_path, trials=2, workers=1)
    assert more.reused == 1
    np.testing.assert_array_equal(more.outcomes["grid"][0].learned, first.outcomes["grid"][0].learned)
    file = tmp_path / Task("grid", 1).file_name
    file.write_bytes(file.read_bytes()[:-500])
    again = run_trials(["grid"], tmp_path, trials=2, workers=1)
    assert again.reused == 1
    np.testing.assert_array_equal(again.outcomes["grid"][1].learned, more.outcomes["grid"][1].learned)
    assert run_trials(["grid"], tmp_path, trials=1, workers=1, fresh=True).reused == 0


def test_workers_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="workers: at least 1"):
        run_trials(["grid"], tmp_path, trials=1, workers=0)


@pytest.mark.slow
def test_a_killed_run_loses_at_most_what_was_unfinished(tmp_path):
    command = [sys.executable, "-m", "nnbm", "reproduce", "--experiment", "grid", "--trials", "4", "--workers", "1"]
    run = subprocess.Popen([*command, "--folder", str(tmp_path)], start_new_session=True)  # noqa: S603
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("grid-*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    there = sorted(tmp_path.glob("grid-*.npz"))
    assert 1 <= len(there) < 4
    for k in range(len(there)):
        load_outcome(Task("grid", k), there[k])  # whole
    again = [*command, "--folder", str(tmp_path)]
    done = subprocess.run(again, check=True, capture_output=True, text=True)  # noqa: S603
    assert f"{len(there)} trials (--fresh" in " ".join(done.stdout.split())
    assert (tmp_path / "report.html").exists()

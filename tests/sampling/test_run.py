"""The loop over chains: slices, Ctrl-C, and a chain that fails."""

import signal
import threading
import time

import numpy as np
import pytest

import nnbm
from nnbm.sampling.run import Schedule, run_chains


class Counter:
    """A chain whose k-th sweep yields k; each takes `seconds`."""

    def __init__(self, seconds=0.0):
        self.seconds, self.at, self.calls = seconds, 0, []

    def run(self, sweeps, draws):
        self.calls.append((sweeps, draws.shape[0]))
        for k in range(draws.shape[0]):
            self.at += sweeps
            time.sleep(self.seconds * sweeps)
            draws[k] = self.at


def test_burn_in_thinning_and_slices_leave_no_gap():
    chains = [Counter(), Counter(1e-4)]
    draws, interrupted = run_chains(
        chains, Schedule(draws=500, burn_in=37, thin=3), 2, threads=2, progress=False, label=""
    )
    assert not interrupted
    assert (draws == (37 + 3 * np.arange(1, 501))[None, :, None]).all()
    assert len(chains[0].calls) < 40  # slices grow, or a fast chain would pay for its bookkeeping


def test_no_burn_in():
    draws, _ = run_chains([Counter()], Schedule(5, 0, 1), 1, threads=1, progress=False, label="")
    assert draws[0, :, 0].tolist() == [1, 2, 3, 4, 5]


def test_ctrl_c_keeps_what_every_chain_has():
    chains = [Counter(1e-3), Counter(2e-3)]
    timer = threading.Timer(0.6, signal.raise_signal, [signal.SIGINT])
    timer.start()
    draws, interrupted = run_chains(chains, Schedule(100_000, 10, 1), 3, threads=2, progress=False, label="")
    assert interrupted
    assert 10 < draws.shape[1] < 2000
    assert (draws == (10 + np.arange(1, draws.shape[1] + 1))[None, :, None]).all()


def test_ctrl_c_before_the_first_draw_is_just_ctrl_c():
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        run_chains([Counter(1e-3)], Schedule(10, 10**6, 1), 1, threads=1, progress=False, label="")


@pytest.mark.filterwarnings("ignore:R-hat exceeds")  # few draws of many variables
def test_sample_says_that_it_was_interrupted():
    model = nnbm.gallery.square_grid(30, 30, coupling=0.1)
    nnbm.sample(model, 2000, chains=2, thin=5, method="gibbs", seed=0)  # compile first
    threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.warns(nnbm.UnreliableWarning, match=r"Interrupted: \d+ of 50000 draws per chain are kept"):
        s = nnbm.sample(model, 50_000, chains=2, thin=50, method="gibbs", seed=0, burn_in=100)
    assert s.interrupted
    assert "interrupted" in repr(s)
    assert np.isfinite(s.draws).all()
    assert s.draws.shape[1] > 8


class Broken:
    def run(self, sweeps, draws):
        raise ArithmeticError("the chain broke")


def test_a_failing_chain_stops_the_others_and_tells():
    slow = Counter(1e-3)
    with pytest.raises(ArithmeticError, match="the chain broke"):
        run_chains([slow, Broken()], Schedule(10**6, 0, 1), 1, threads=2, progress=False, label="")
    assert slow.at < 10_000


def test_the_bar_counts_every_sweep(capsys):
    run_chains([Counter(1e-4)] * 2, Schedule(200, 100, 2), 1, threads=1, progress=True, label="counting")
    shown = capsys.readouterr().err
    assert "counting" in shown
    assert "100%" in shown
    assert "sweeps/s" in shown


def test_no_bar_where_nobody_watches(capsys):
    nnbm.sample(nnbm.gallery.square_grid(2, 2, coupling=0.1), 2000, seed=0)
    assert capsys.readouterr().err == ""

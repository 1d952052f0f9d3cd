"""ln Z by annealing against exact answers, orthant probabilities and long runs; its error bar against its spread."""

import threading
import time
import warnings

import numpy as np
import pytest
from scipy import stats

import nnbm
from nnbm import NNBM, LogPartition, UnreliableWarning, gallery, log_partition
from nnbm.sampling import partition
from nnbm.sampling.path import path_about
from targets import box_models, copies, integrate, small_models

MODELS, BOXES = small_models(), box_models()


@pytest.mark.parametrize("name", MODELS)
def test_against_exact_integration(name):
    model, upper = MODELS[name]
    found = log_partition(model, error=0.005, seed=1)
    assert found.error <= 0.005
    assert abs(found.value - integrate(model, upper).log_partition) < 5 * found.error + 1e-9


@pytest.mark.parametrize("name", BOXES)
def test_between_other_ends(name):
    model, low, high = BOXES[name]
    found = log_partition(model, error=0.005, seed=1)
    assert abs(found.value - integrate(model, high, lower=low).log_partition) < 5 * found.error + 1e-9


def test_a_slightly_wrong_model_is_found_out():
    model, upper = MODELS["triple, not positive definite"]
    wrong = NNBM(model.bias + 0.05, model.coupling)
    found = log_partition(wrong, error=0.002, seed=1)
    assert abs(found.value - integrate(model, upper).log_partition) > 5 * found.error


def test_against_exact_trees():
    rng = np.random.default_rng(2)
    w = np.diag(rng.uniform(0.5, 2.0, 12))
    for i in range(1, 12):
        j = rng.integers(i)
        w[i, j] = w[j, i] = rng.uniform(-0.3, 1.5)
    model = NNBM(rng.uniform(-1.0, 2.0, 12), w)
    found = log_partition(model, error=0.005, seed=3)
    assert abs(found.value - nnbm.infer(model, "exact").log_partition) < 5 * found.error


def test_against_orthant_probabilities():
    rng = np.random.default_rng(4)
    a = rng.normal(size=(8, 5))
    w, b = a.T @ a / 4.0, rng.normal(size=5)
    covariance = np.linalg.inv(w)
    mean = covariance @ b
    inside = stats.multivariate_normal(-mean, covariance, abseps=1e-9, releps=1e-7, maxpts=10**7, seed=0)
    whole = 2.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(w)[1] + 0.5 * b @ mean
    found = log_partition(NNBM(b, w), error=0.004, seed=5)
    assert abs(found.value - (whole + np.log(inside.cdf(np.zeros(5))))) < 5 * found.error


def test_independent_variables_need_no_luck():
    model = NNBM([0.3, -1.0, 2.0], np.diag([1.0, 2.0, 0.5]))
    found = log_partition(model, seed=0)
    exact = model.site.moments(model.bias, model.diagonal).log_partition.sum()
    assert found.value == pytest.approx(exact, abs=1e-12)
    assert found.error < 1e-12
    assert found.reliable


def test_modes_of_unequal_weight_are_all_counted():
    model = gallery.two_modes(competition=6.0, bias=(6.0, 6.15))
    found = log_partition(model, error=0.005, seed=0)
    assert abs(found.value - integrate(model, 14.0, nodes=400).log_partition) < 5 * found.error


def test_a_mode_left_out_is_missed(monkeypatch):
    """The control: about one mode alone, runs do not find the other, and ln Z falls short of it."""
    model = gallery.two_modes(competition=6.0, bias=(6.0, 6.15))  # a quarter of the mass is in the first
    alone = path_about(model, np.array([[6.0, 0.0]]), np.ones(1))
    monkeypatch.setattr(partition, "path_of", lambda *_: alone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWarning)
        found = log_partition(model, error=0.005, seed=0)
    assert found.value < integrate(model, 14.0, nodes=400).log_partition - 0.2


def test_the_error_bar_covers():
    """Of 40 estimates those within one and two errors are as many as errors mean; a bar half as long would fail."""
    model, upper = MODELS["triple, not positive definite"]
    exact = integrate(model, upper).log_partition
    found = [log_partition(model, error=0.02, seed=seed) for seed in range(40)]
    z = np.array([(each.value - exact) / each.error for each in found])
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.35  # chi-square of 40: 5 in 10,000 beyond
    assert abs(z.mean()) < 3.5 / np.sqrt(40)


def test_weights_are_unbiased_however_few_the_steps(monkeypatch):
    monkeypatch.setattr(partition, "_planned", lambda path, n, _: partition._Plan(path, np.array([0.0, 0.3, 1.0]), n))
    model, upper = MODELS["triple, mixed signs"]
    found = log_partition(model, error=0.005, seed=6)
    assert found.ladder.size == 3
    assert abs(found.value - integrate(model, upper).log_partition) < 5 * found.error


def test_scale_and_parts():
    model = gallery.square_grid(3, 3, coupling=1.5, bias=(2.0, 3.0))
    one, scaled = log_partition(model, seed=1), log_partition(NNBM(model.bias / 4.0, model.coupling / 16.0), seed=1)
    assert scaled.value == pytest.approx(one.value + 9 * np.log(4.0), abs=1e-6)
    twice = log_partition(copies(model, 2), seed=2)
    assert abs(twice.value - 2 * one.value) < 5 * np.hypot(twice.error, 2 * one.error)


def test_seeds_and_threads():
    model = gallery.square_grid(3, 3)
    one, two, other = (log_partition(model, seed=s, threads=t) for s, t in ((0, 1), (0, 3), (1, 1)))
    assert (one.log_weights == two.log_weights).all()
    assert one.value == two.value
    assert one.value != other.value


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # infer's, at 0.0002 of which a run of a million agrees
        (gallery.orientation_tuning(36), 80.545),
        (gallery.square_grid(6, 6), -7.9159),
    ],
    ids=["orientation", "grid"],
)
def test_the_papers_models(model, expected):
    found = [log_partition(model, seed=seed) for seed in range(8)]
    values = np.array([each.value for each in found])
    assert values.std(ddof=1) < 0.03  # of errors 0.02
    assert abs(values.mean() - expected) < 0.02
    assert all(each.error <= 0.02 and each.reliable for each in found)


def test_what_it_says():
    found = log_partition(gallery.square_grid(3, 3), seed=0)
    assert float(found) == found.value
    assert repr(found).startswith("LogPartition(")
    assert f"{found.runs} runs of {found.ladder.size - 1} steps" in repr(found)
    assert 100 < found.effective_runs <= found.runs
    assert (found.ladder[0], found.ladder[-1]) == (0.0, 1.0)


def test_heavy_weights_warn(monkeypatch):
    monkeypatch.setattr(partition, "_planned", lambda path, n, _: partition._Plan(path, np.array([0.0, 1.0]), n))
    monkeypatch.setattr(partition, "_MOST_RUNS", 2048)
    model = gallery.square_grid(10, 10, coupling=2.0, bias=(1.0, 2.0))
    with pytest.warns(UnreliableWarning, match="not to be relied on"):
        found = log_partition(model, seed=0)
    assert not found.reliable


@pytest.mark.parametrize("error", [0.0, -1.0, np.nan, np.inf, "small", [0.1, 0.2]])
def test_a_bad_error_is_named(error):
    with pytest.raises((ValueError, TypeError), match="error"):
        log_partition(gallery.square_grid(2, 2), error=error)


def test_threads_are_checked():
    with pytest.raises(ValueError, match="threads: at least 1"):
        log_partition(gallery.square_grid(2, 2), threads=0)


def test_interruption_keeps_what_is_done(monkeypatch):
    done = []

    def interrupt(futures):
        while not done:
            time.sleep(0.01)
        raise KeyboardInterrupt

    plain = partition._Plan.log_weights

    def slowly(self, runs, row):
        found = plain(self, runs, row)
        done.append(threading.get_ident())
        return found

    monkeypatch.setattr(partition, "_wait", interrupt)
    monkeypatch.setattr(partition._Plan, "log_weights", slowly)
    with pytest.warns(UnreliableWarning, match="Interrupted after"):
        found = log_partition(gallery.square_grid(3, 3), seed=0, threads=1)
    assert found.interrupted
    assert found.runs > 0


@pytest.mark.parametrize("k", [0.3, 0.9])
def test_the_tail_is_measured_on_the_heavy_side(k):
    u = np.random.default_rng(0).uniform(size=20_000)
    found = LogPartition(-k * np.log(u), np.array([0.0, 1.0]), 1, 0.0)  # w = u^-k has Pareto's k
    assert abs(found.tail - k) < 0.15
    assert found.reliable == (k < 0.7)


def test_a_lone_weight_is_no_estimate():
    heavy = LogPartition(np.append(np.zeros(500), 20.0), np.array([0.0, 1.0]), 1, 0.0)
    assert heavy.effective_runs < 2
    assert not heavy.reliable

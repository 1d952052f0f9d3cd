from dataclasses import replace

import numpy as np
import pytest

from nnbm.study import trial
from nnbm.study.experiments import ESTIMATORS, EXPERIMENTS
from nnbm.study.trial import Task, load_outcome, perform, save_outcome


@pytest.fixture(scope="module")
def outcome():
    return perform(Task("grid", 3))


def test_a_trial_learns_the_grid_with_every_estimator(outcome):
    errors = dict(zip(ESTIMATORS, outcome.errors, strict=True))
    assert outcome.failures == ("",) * len(ESTIMATORS)
    # the paper's order, and the floor below the consistent ones: e_b of one trial scatters by a fifth
    assert errors["Downs"][0] > errors["SusP"][0] > errors["I-SusP"][0] > 0.6 * outcome.floor[0]
    assert 0.6 < errors["likelihood"][0] / outcome.floor[0] < 1.6
    assert outcome.rhat < 1.01


def test_climbing_ends_where_the_direct_inverse_does(outcome):
    learned = dict(zip(ESTIMATORS, outcome.learned, strict=True))
    np.testing.assert_allclose(learned["SusP, climbed"], learned["SusP"], atol=1e-5)
    np.testing.assert_allclose(learned["I-SusP, climbed"], learned["I-SusP"], atol=1e-5)


def test_errors_are_the_papers(outcome):
    n, k = 36, list(ESTIMATORS).index("EP")
    e_b = np.abs(outcome.learned[k, :n] - outcome.truth[:n]).mean()
    e_w = np.abs(outcome.learned[k, n:] - outcome.truth[n:]).sum() / (n + 60)
    np.testing.assert_allclose(outcome.errors[k], (e_b, e_w))


def test_the_same_task_gives_the_same_outcome(outcome):
    again = perform(Task("grid", 3))
    np.testing.assert_array_equal(again.learned, outcome.learned)
    np.testing.assert_array_equal(again.floor, outcome.floor)


def test_outcomes_come_back_from_their_file(outcome, tmp_path):
    save_outcome(Task("grid", 3), outcome, tmp_path / "a.npz")
    back = load_outcome(Task("grid", 3), tmp_path / "a.npz")
    np.testing.assert_array_equal(back.learned, outcome.learned)
    assert back.failures == outcome.failures
    assert back.rhat == outcome.rhat


def test_an_outcome_of_another_task_or_settings_is_refused(outcome, tmp_path, monkeypatch):
    save_outcome(Task("grid", 3), outcome, tmp_path / "a.npz")
    with pytest.raises(ValueError, match="other settings"):
        load_outcome(Task("grid", 4), tmp_path / "a.npz")
    monkeypatch.setitem(trial.EXPERIMENTS, "grid", replace(EXPERIMENTS["grid"], rows=5000))
    with pytest.raises(ValueError, match="other settings"):
        load_outcome(Task("grid", 3), tmp_path / "a.npz")


def test_estimators_that_cannot_say_so_and_the_others_go_on():
    hard = perform(Task("grid-3", 0))
    errors = dict(zip(ESTIMATORS, hard.errors, strict=True))
    failures = dict(zip(ESTIMATORS, hard.failures, strict=True))
    for name in ("SusP", "I-SusP", "EP"):
        assert np.isnan(errors[name]).all()
        assert "<x²> < 2 <x>²" in failures[name]
    assert errors["pseudo-likelihood"][0] < 1.8 * hard.floor[0]
    proper = dict(zip(ESTIMATORS, hard.proper, strict=True))
    assert proper["likelihood"]
    assert not proper["EP"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "trials", "bars"),
    [
        ("grid", 20, {"score matching": 1.08, "pseudo-likelihood": 1.08, "likelihood": 1.04}),
        ("orientation", 20, {"score matching": 1.08, "pseudo-likelihood": 1.08, "likelihood": 1.04}),
        ("grid-3", 10, {"pseudo-likelihood": 1.10, "likelihood": 1.10}),
        ("orientation-3", 10, {"pseudo-likelihood": 1.10, "likelihood": 1.10}),
    ],
)
def test_consistent_estimators_come_near_the_floor(name, trials, bars):
    """Each trial's errors over its own floor; the mean may exceed the bar by two standard errors of its own."""
    outcomes = [perform(Task(name, seed)) for seed in range(100, 100 + trials)]
    for estimator, bar in bars.items():
        k = list(ESTIMATORS).index(estimator)
        ratio = np.array([outcome.errors[k] / outcome.floor for outcome in outcomes])
        mean, error = ratio.mean(axis=0), ratio.std(axis=0, ddof=1) / np.sqrt(trials)
        assert (mean - 2.0 * error < bar).all(), (estimator, mean, error)
        assert (mean + 3.0 * error > 1.0).all(), (estimator, mean, error)

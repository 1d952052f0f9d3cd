import re

import numpy as np
import pytest
from rich.console import Console

from nnbm.study.experiments import ESTIMATORS, EXPERIMENTS
from nnbm.study.report import summary_table, write_report
from nnbm.study.summary import summarise
from nnbm.study.trial import Outcome

N, EDGES = 4, (np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]))


def made(seed, *, spread=0.1, failing=()):
    """An outcome in which every estimator errs by `spread`, and some fail."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.5, 1.0, 2 * N + 4)
    learned = truth + spread * rng.normal(size=(len(ESTIMATORS), truth.size))
    failures = tuple("no <site> for 'a'" if name in failing else "" for name in ESTIMATORS)
    learned[[bool(failure) for failure in failures]] = np.nan
    seconds = np.full(len(ESTIMATORS), 0.002)
    proper = np.array([not failure and name != "Downs" for name, failure in zip(ESTIMATORS, failures, strict=True)])
    return Outcome(*EDGES, truth, learned, failures, proper, seconds, np.array([0.08, 0.08]), 1.002)


@pytest.fixture(scope="module")
def outcomes():
    return [made(seed, failing=("EP",) if seed == 1 else ()) for seed in range(6)]


def test_means_and_standard_errors_are_over_solved_trials(outcomes):
    summary = summarise("grid", outcomes)
    ep = list(ESTIMATORS).index("EP")
    errors = np.array([outcome.errors[ep] for k, outcome in enumerate(outcomes) if k != 1])
    assert summary.rows[ep].solved == 5
    np.testing.assert_allclose(summary.rows[ep].mean, errors.mean(axis=0))
    np.testing.assert_allclose(summary.rows[ep].error, errors.std(axis=0, ddof=1) / np.sqrt(5))
    assert summary.floor == pytest.approx((0.08, 0.08))


def test_failures_are_told(outcomes):
    assert any(
        "No parameters by EP in 1 of 6 trials: no <site>" in said for said in summarise("grid", outcomes).remarks
    )


def test_fits_without_a_norm_are_told(outcomes):
    assert any(
        "Downs: in 6 of 6 trials the learned density has no norm" in said
        for said in summarise("grid", outcomes).remarks
    )


def test_what_is_below_the_floor_is_explained_and_nothing_else_is():
    shrunk = [made(seed, spread=0.01) for seed in range(4)]
    assert any("Below the floor" in said and "bias" in said for said in summarise("grid-2", shrunk).remarks)
    assert not any(
        "below the floor" in said for said in summarise("grid-2", [made(s, spread=0.2) for s in range(4)]).remarks
    )


def test_the_table_fits_a_terminal_and_shows_the_paper(outcomes):
    console = Console(width=80, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(summary_table(summarise("orientation", outcomes)))
    text = capture.get()
    assert "…" not in text
    assert "10.772/.700" in text
    assert "largest R-hat 1.002" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_report_is_one_page_that_needs_nothing_else(outcomes, tmp_path):
    path = write_report({"grid": outcomes, "orientation": outcomes}, tmp_path, "nnbm reproduce --quick <b>")
    html = path.read_text()
    assert "nnbm reproduce --quick &lt;b&gt;" in html
    assert "no &lt;site&gt;" in html
    assert not re.search(r"(src|href)=.(?!data:)", html)
    assert "<script" not in html
    assert html.count("<img") == 5
    assert {file.name for file in tmp_path.iterdir()} >= {"grid-errors.png", "orientation-ring.png", "report.html"}


def test_every_experiment_names_a_model_and_known_estimators():
    for experiment in EXPERIMENTS.values():
        assert experiment.model(0).n == 36
        assert set(experiment.paper) <= set(ESTIMATORS)

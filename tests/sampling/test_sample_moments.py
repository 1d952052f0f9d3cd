"""Moments on the fly: the very moments of the draws, errors that are right, and memory that does not grow."""

import signal
import threading
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import nnbm
from nnbm import NNBM, sample, sample_moments
from nnbm.sampling.accumulate import Accumulator, Pattern
from nnbm.sampling.diagnostics import suspects
from nnbm.sampling.moments import SampledMoments, summarised
from nnbm.sampling.run import Schedule
from targets import integrate, small_models

FEW_DRAWS = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
RING = nnbm.gallery.orientation_tuning(12)
BOX = NNBM([0.1, 0.2, 0.0], [[0.0, 0.3, 0.0], [0.3, 0.0, 0.0], [0.0, 0.0, 1.0]], upper=2.0)  # zeros on the diagonal
MODELS = {
    "dense": RING,
    "grid": nnbm.gallery.square_grid(4, 5),
    "graph": nnbm.gallery.random_graph(30, degree=5.0, seed=3),
    "box": NNBM(BOX.bias, sparse.csr_array(BOX.coupling), upper=2.0),
    "single": NNBM([0.3], [[1.0]]),
}


def summed(rows: np.ndarray, model: NNBM | None = None) -> SampledMoments:
    """Of given draws (chains, draws, n), handed over in pieces."""
    chains, draws, n = rows.shape
    pattern = Pattern(sparse.eye_array(n, format="csr") if model is None else model.coupling)
    sums = [Accumulator(pattern, draws) for _ in range(chains)]
    for one, chain in zip(sums, rows, strict=True):
        taken = 0
        while taken < draws:
            place = one.rows(min(1 + taken % 7, draws - taken))
            place[:] = chain[taken : taken + place.shape[0]]
            taken += place.shape[0]
            one.keep(place.shape[0])
    how = {"names": (), "method": "given", "seconds": 0.0, "interrupted": False, "info": {}}
    return summarised(sums, pattern, Schedule(draws, 0, 1), **how)


def autoregressive(chains: int, draws: int, n: int, rho: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(chains, draws, n))
    for k in range(1, draws):
        x[:, k] = rho * x[:, k - 1] + np.sqrt(1 - rho**2) * x[:, k]
    return x


@FEW_DRAWS
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("draws", [1, 2, 3, 7, 8, 50, 501])
def test_they_are_the_moments_of_the_draws(name, draws):
    model = MODELS[name]
    s, m = (verb(model, draws, chains=3, seed=1, thin=2) for verb in (sample, sample_moments))
    np.testing.assert_allclose(m.mean, s.mean, rtol=1e-13)
    np.testing.assert_allclose(m.variance, s.variance, rtol=1e-11, atol=1e-25)
    np.testing.assert_allclose(m.second_moment, np.square(s.flat).mean(axis=0), rtol=1e-12)
    assert (m.counts, m.thin, m.burn_in, m.interrupted) == ((draws,) * 3, 2, draws, False)
    if sparse.issparse(model.coupling):
        pattern = (model.coupling.toarray() != 0) | np.eye(model.n, dtype=bool)
        assert m.covariance.nnz == pattern.sum()
        np.testing.assert_allclose(m.covariance.toarray(), np.where(pattern, s.covariance, 0.0), rtol=1e-9, atol=1e-13)
    else:
        np.testing.assert_allclose(m.covariance, s.covariance, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", small_models())
def test_moments_against_exact_integration(name):
    model, upper = small_models()[name]
    m, exact = sample_moments(model, 4000, thin=20, seed=5), integrate(model, upper)
    assert (np.abs(m.mean - exact.mean) < 5 * m.mean_error).all()
    assert (np.abs(m.covariance - exact.covariance) < 0.06 * np.sqrt(np.outer(*[np.diag(exact.covariance)] * 2))).all()


def test_nothing_cancels_far_from_zero():
    """Sums of squares would have no digit left at a mean of 1e9 standard deviations."""
    away = 1e9 + np.random.default_rng(0).normal(size=(2, 400, 5)).round(5)
    expected = (away - 1e9).reshape(-1, 5).var(axis=0)
    np.testing.assert_allclose(summed(away).variance, expected, rtol=1e-6)
    naive = np.square(away).mean(axis=(0, 1)) - np.square(away.mean(axis=(0, 1)))
    assert (np.abs(naive / expected - 1) > 1).any()


@pytest.mark.parametrize(("rho", "draws"), [(0.0, 1000), (0.6, 1000), (0.9, 4000), (-0.5, 1000)])
@pytest.mark.parametrize("chains", [1, 4])
def test_the_error_of_an_autoregression(rho, draws, chains):
    """Of 400 variables; the truth is exact. Between -5 and +15%: where batches are short the error leans upwards."""
    m = summed(autoregressive(chains, draws, 400, rho))
    expected = np.sqrt((1 + rho) / (1 - rho) / (chains * draws))
    assert 0.95 < np.sqrt(np.square(m.mean_error).mean()) / expected < 1.15
    assert 0.85 < (m.mean / m.mean_error).std() < 1.1
    naive = np.sqrt(m.variance / (chains * draws))  # negative control: as if draws were independent
    if rho != 0:
        assert not 0.85 < (m.mean / naive).std() < 1.1
    np.testing.assert_allclose(m.ess(), m.variance / m.mean_error**2)


def test_rhat_is_the_plain_one_of_halves():
    x = autoregressive(3, 1000, 50, 0.5)
    x[1, :, 7] += 0.3
    halves = np.concatenate([x[:, :500], x[:, 500:]])
    within, between = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1).var(axis=0, ddof=1)
    np.testing.assert_allclose(summed(x).rhat(), np.sqrt(499 / 500 + between / within), rtol=1e-12)
    assert summed(x).rhat().argmax() == suspects(x, 1)[0] == 7
    still = autoregressive(1, 4000, 50, 0.0)
    drifting = still + np.linspace(0, 1, 4000)[:, None]  # a single chain disagrees with itself
    assert summed(drifting).rhat().min() > 1.01 > summed(still).rhat().max()


def test_chains_that_disagree_are_named_and_their_spread_is_in_the_error():
    model = NNBM([40.0, 40.0], [[1.0, 3.0], [3.0, 1.0]], names=["left", "right"])
    starts = np.array([[40.0, 0.0], [0.0, 40.0]])
    with pytest.warns(nnbm.UnreliableWarning, match=r"R-hat exceeds 1.01 for (left|right) \(\d+\.\d+\)") as caught:
        m = sample_moments(model, 200, chains=2, method="gibbs", initial=starts, seed=0)
    assert caught[0].filename == __file__
    assert (m.mean_error > 15).all()  # half of a distance of 40
    assert m.label(1) == "right"


def test_variables_that_never_vary_say_nothing():
    x = autoregressive(2, 100, 2, 0.0)
    x[:, :, 1] = 3.0
    m = summed(x)
    assert np.isnan(m.rhat()).tolist() == [False, True]
    assert (m.mean[1], m.variance[1], m.mean_error[1]) == (3.0, 0.0, 0.0)


@FEW_DRAWS
@pytest.mark.parametrize("name", ["dense", "grid"])
def test_neither_threads_nor_slices_matter(name, monkeypatch):
    runs = [sample_moments(MODELS[name], 300, chains=5, seed=2, threads=t) for t in (1, 3)]
    monkeypatch.setattr("nnbm.sampling.accumulate._BUFFER", 1)  # one draw at a time
    runs.append(sample_moments(MODELS[name], 300, chains=5, seed=2, threads=2))
    for each in runs[1:]:
        assert (each.mean == runs[0].mean).all()
        assert (each.variance == runs[0].variance).all()
        assert (each.mean_error == runs[0].mean_error).all()


def test_permuted_and_unconnected_variables():
    """Summing knows nothing but the pattern: variables in another order have their moments in that order."""
    x = autoregressive(2, 300, 20, 0.3)
    order = np.random.default_rng(1).permutation(20)
    graph = nnbm.gallery.random_graph(20, degree=4.0, seed=1)
    plain, turned = summed(x, graph), summed(x[:, :, order], NNBM(graph.bias[order], graph.coupling[order][:, order]))
    np.testing.assert_allclose(
        turned.covariance.toarray(), plain.covariance.toarray()[np.ix_(order, order)], rtol=1e-12
    )
    np.testing.assert_allclose(turned.mean_error, plain.mean_error[order], rtol=1e-12)


@FEW_DRAWS
def test_memory_does_not_grow_with_the_draws():
    model = nnbm.gallery.square_grid(30, 30, coupling=0.2)
    sample_moments(model, 10, chains=2, method="gibbs", seed=0)
    peaks = []
    for draws in (100, 3000):  # kept, 3000 draws would take 43 MB
        tracemalloc.start()
        sample_moments(model, draws, chains=2, method="gibbs", seed=0, burn_in=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2e6 < 5e6


@pytest.mark.filterwarnings("ignore:R-hat exceeds")
def test_ctrl_c_keeps_what_was_summed_up():
    model = nnbm.gallery.square_grid(30, 30, coupling=0.1)
    sample_moments(model, 2000, chains=2, thin=5, method="gibbs", seed=0)  # compile first
    threading.Timer(0.8, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.warns(nnbm.UnreliableWarning, match=r"Interrupted: \d+ of 50000 draws per chain are in the moments"):
        m = sample_moments(model, 50_000, chains=2, thin=50, method="gibbs", seed=0, burn_in=100)
    assert m.interrupted
    assert "interrupted" in repr(m)
    kept = sample(model, max(m.counts), chains=2, thin=50, method="gibbs", seed=0, burn_in=100).draws
    rows = np.concatenate([chain[:count] for chain, count in zip(kept, m.counts, strict=True)])
    np.testing.assert_allclose(m.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(m.variance, rows.var(axis=0), rtol=1e-10)
    assert np.isfinite(m.rhat()).all()


@pytest.mark.parametrize("cut", [8, 9, 100, 777])
def test_a_run_cut_short_has_the_moments_of_its_draws(cut):
    """The batches were laid out for 1000 draws; chains are then compared as wholes."""
    x = autoregressive(3, cut, 6, 0.2)
    pattern = Pattern(np.eye(6))
    sums = [Accumulator(pattern, 1000) for _ in x]
    for one, chain in zip(sums, x, strict=True):
        one.rows(cut)[:] = chain
        one.keep(cut)
    how = {"names": (), "method": "given", "seconds": 0.0, "interrupted": True, "info": {}}
    m = summarised(sums, pattern, Schedule(1000, 0, 1), **how)
    np.testing.assert_allclose(m.covariance, np.cov(x.reshape(-1, 6), rowvar=False, bias=True), rtol=1e-10, atol=1e-14)
    between, within = x.mean(axis=1).var(axis=0, ddof=1), x.var(axis=1, ddof=1).mean(axis=0)
    np.testing.assert_allclose(m.rhat(), np.sqrt((cut - 1) / cut + between / within), rtol=1e-12)
    assert (m.mean_error > 0).all()


def test_too_few_draws_are_never_silent():
    with pytest.warns(nnbm.UnreliableWarning, match="2 draws per chain are too few"):
        m = sample_moments(RING, 2, seed=0)
    assert np.isnan([m.rhat(), m.mean_error, m.ess()]).all()


def test_what_cannot_fit_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("nnbm.sampling.settings.available_bytes", lambda: 5_000)
    with pytest.raises(MemoryError, match="chains: 4 chains' sums over 20 variables and 31 pairs"):
        sample_moments(MODELS["grid"], 10)

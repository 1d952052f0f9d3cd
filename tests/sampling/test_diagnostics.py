"""ESS, R-hat and Monte-Carlo errors on draws whose answers are known."""

import numpy as np
import pytest

from nnbm.sampling import diagnostics


def autoregressive(chains, draws, n, rho, seed=0):
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws, n))
    x[:, 0] = rng.normal(size=(chains, n))
    for k in range(1, draws):
        x[:, k] = rho * x[:, k - 1] + np.sqrt(1 - rho**2) * rng.normal(size=(chains, n))
    return x


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_ess_of_an_autoregression(rho):
    x = autoregressive(4, 20_000, 6, rho)
    expected = 80_000 * (1 - rho) / (1 + rho)
    assert np.abs(diagnostics.ess(x) / expected - 1).max() < 0.15
    assert np.abs(diagnostics.mean_error(x) * np.sqrt(expected) - 1).max() < 0.15
    assert diagnostics.rhat(x).max() < 1.01


def test_a_chain_elsewhere_is_seen_in_few_and_in_many_variables():
    x = autoregressive(4, 500, 1200, 0.0)
    x[2, :, 700] += 1.0
    places, values = diagnostics.unmixed(x, 1.01)
    assert places[0] == 700
    assert values[0] > 1.05
    places, _ = diagnostics.unmixed(x[:, :, 650:750], 1.01)
    assert places[0] == 50
    assert 700 not in diagnostics.unmixed(np.delete(x, 2, axis=0), 1.05)[0]


def test_a_single_chain_is_compared_with_itself():
    x = autoregressive(1, 1000, 2, 0.0)
    x[0, :, 1] += np.linspace(0, 3, 1000)
    still, moving = diagnostics.rhat(x)
    assert still < 1.01 < moving


def test_too_few_draws_are_not_judged():
    with pytest.raises(ValueError, match="at least 8 per chain"):
        diagnostics.rhat(np.zeros((4, 7, 1)))


def autoregressions(rho, draws=8000, seed=0):
    """(4, draws, n) of unit variance, rho (n,)."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(4, draws, len(rho)))
    for k in range(1, draws):
        values[:, k] = rho * values[:, k - 1] + np.sqrt(1.0 - rho**2) * values[:, k]
    return values


def test_the_slowest_functional_is_found():
    rho = np.array([0.2, 0.9, 0.4, 0.0])
    mixing = np.random.default_rng(1).normal(size=(4, 4)) * np.array([1.0, 10.0, 0.1, 1.0])
    mixed = autoregressions(rho) @ mixing
    found = mixing @ diagnostics.slowest_functional(mixed)  # in terms of the autoregressions
    assert np.abs(found[1]) > 20.0 * np.abs(np.delete(found, 1)).max()


def test_the_least_is_named():
    """x is drawn anew each time, but its spread lasts: only the mean of x² shows it."""
    spread = np.exp(autoregressions(np.array([0.98, 0.0])))
    draws = np.random.default_rng(2).normal(size=spread.shape) * spread
    least = diagnostics.least_ess(draws)
    assert (least.what, least.site) == ("x²", 0)
    assert least.value == min(least.each.values()) < 0.2 * diagnostics.ess(draws, "mean").min()
    assert set(least.each) == {"x", "x²", "slowest combination"}


def test_the_least_of_draws_that_never_vary_is_unknown():
    least = diagnostics.least_ess(np.ones((2, 100, 3)))
    assert np.isnan(least.value)
    assert least.each == {}

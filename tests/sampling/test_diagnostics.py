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

"""sample(): its defaults, its warnings, its errors, and what Samples offers."""

import re
import warnings

import numpy as np
import pytest

import nnbm
from nnbm import NNBM, sample

GRID = nnbm.gallery.square_grid(3, 3)


def test_defaults_are_quiet_and_complete():
    s = sample(GRID, seed=0)
    assert s.draws.shape == (4, 1000, 9)
    assert (s.draws > 0).all()
    assert (s.method, s.burn_in, s.thin, s.interrupted) == ("gibbs", 500, 1, False)
    assert s.seconds > 0
    assert repr(s).startswith("Samples(4 chains x 1000 draws x 9 variables, gibbs")


def test_seeds():
    a, b, c = (sample(GRID, 500, seed=k).draws for k in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()
    assert len(np.unique(a[:, 0, 0])) == 4  # chains differ
    generator = np.random.default_rng(0)
    assert (sample(GRID, 500, seed=generator).draws != sample(GRID, 500, seed=generator).draws).any()


def test_summaries_are_numpy():
    s = sample(GRID, 500, seed=1)
    flat = s.draws.reshape(-1, 9)
    assert (s.flat == flat).all()
    np.testing.assert_allclose(s.mean, flat.mean(axis=0))
    np.testing.assert_allclose(s.variance, flat.var(axis=0))
    np.testing.assert_allclose(s.covariance, np.cov(flat, rowvar=False, bias=True))
    assert s.ess().shape == s.ess("tail").shape == s.rhat().shape == s.mean_error.shape == (9,)


def test_stuck_chains_are_named():
    """Two modes apart: chains that start in different ones never agree, and that is never silent."""
    model = NNBM([40.0, 40.0], [[1.0, 3.0], [3.0, 1.0]], names=["left", "right"])
    starts = np.array([[40.0, 0.0], [0.0, 40.0]])
    with pytest.warns(nnbm.UnreliableWarning, match=r"R-hat exceeds 1.01 for (left|right) \(\d\.\d+\)"):
        sample(model, 200, chains=2, method="gibbs", initial=starts, seed=0)


@pytest.mark.parametrize("seed", range(5))
def test_starts_are_dispersed_over_modes(seed):
    """Without any hint about them, chains land in both modes of a competitive pair, so R-hat can speak."""
    with pytest.warns(nnbm.UnreliableWarning, match="R-hat exceeds"):
        s = sample(nnbm.gallery.two_modes(bias=(15.0, 15.0)), 100, method="gibbs", seed=seed)
    winner = s.draws[:, -1].argmax(axis=1)
    assert set(winner.tolist()) == {0, 1}


def test_too_few_draws_are_never_silent():
    with pytest.warns(nnbm.UnreliableWarning, match="2 draws per chain are too few"):
        sample(GRID, 2, seed=0)


def test_well_mixed_chains_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(GRID, 4000, chains=1, seed=0)


def test_initial_is_where_chains_start():
    start = np.full((2, 9), 1e3)
    with pytest.warns(nnbm.UnreliableWarning):
        far = sample(GRID, 2, chains=2, initial=start, burn_in=0, seed=0)
    assert far.draws[0, 0, 0] < 1.0  # its neighbours were at 1000: pressed to the wall
    assert (start == 1e3).all()
    with pytest.warns(nnbm.UnreliableWarning):
        sample(GRID, 2, chains=2, initial=start[0], burn_in=0, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws: at least 1 is needed, but draws = 0"),
        ({"chains": 0}, "chains: at least 1"),
        ({"thin": 0}, "thin: at least 1"),
        ({"burn_in": -1}, "burn_in: at least 0"),
        ({"threads": 0}, "threads: at least 1"),
        (
            {"method": "metropolis"},
            r"method: one of \['auto', .*'tempering'\] is meant, but method = 'metropolis'",
        ),
        ({"initial": np.ones(8)}, r"initial: shape \(9,\) or \(4, 9\) is needed; its shape is \(8,\)"),
        ({"initial": -np.ones(9)}, r"initial: the model lives on x >= 0, but initial\[0\] = -1.0"),
        ({"seed": -3}, "seed: a whole number >= 0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        sample(GRID, **options)


def test_more_draws_than_memory_are_refused_at_once():
    with pytest.raises(MemoryError, match=re.escape("Keep fewer draws, further apart (draws=..., thin=...).")):
        sample(GRID, 10**12, seed=0)


def test_names_are_kept_and_arviz_gets_them():
    model = NNBM(GRID.bias, GRID.coupling, names=[f"gene {k}" for k in range(9)])
    s = sample(model, 2000, chains=2, thin=5, seed=0)
    tree = s.to_arviz()
    assert tree["posterior"]["x"].shape == (2, 2000, 9)
    assert list(tree["posterior"]["variable"].values) == list(model.names)
    assert s.label(3) == "gene 3"
    unnamed = sample(GRID, 2000, chains=2, thin=5, seed=0)
    assert unnamed.label(3) == "x[3]"
    assert (unnamed.to_arviz()["posterior"]["x"].values == s.draws).all()

"""Which sampler a model is given: by what is wrong with the others, reproducibly, and with a reason."""

import numpy as np
import pytest

import nnbm
from nnbm import NNBM, Gibbs, gallery, sample
from nnbm.sampling import choice
from nnbm.sampling.choice import choose
from targets import box_models

GRID = gallery.square_grid(6, 6)
SHIFTED = NNBM(GRID.bias + 4.0, GRID.coupling)  # two checkerboards, one of them in 0.2% of all draws


@pytest.mark.parametrize("model", [GRID, gallery.orientation_tuning(36), gallery.random_graph(40)])
def test_gibbs_where_nothing_creeps(model):
    chosen = choose(model)
    assert chosen.sampler == Gibbs()
    assert chosen.reason.startswith("gibbs: in a pilot no autocorrelation was longer than ")


def test_tempering_where_another_mode_would_be_missed():
    chosen = choose(SHIFTED)
    assert chosen.sampler.name == "tempering"
    assert "fields" in chosen.reason


def test_who_has_not_been_to_a_mode_misses_it():
    here, both, hardly = (choice._Run(1.0, 1.0, np.array(visits)) for visits in ([90, 0], [80, 10], [88, 2]))
    assert here.misses(both)
    assert not both.misses(here)
    assert not hardly.misses(both)
    assert not here.misses(hardly)  # too few to be sure of


def test_draws_are_counted_by_the_nearest_mode():
    modes = np.array([[4.0, 0.0], [0.0, 4.0]])
    draws = np.array([[[3.0, 1.0], [4.5, 0.0], [0.2, 5.0]], [[0.0, 3.0], [2.0, 0.1], [9.0, 2.0]]])
    assert choice._visits(draws, modes).tolist() == [4, 2]
    assert choice._visits(draws, np.empty((0, 2))).size == 0


def test_fields_where_a_bump_creeps():
    chosen = choose(gallery.orientation_tuning(25, beta=50.0, epsilon=4.0))
    assert chosen.sampler.name == "fields"
    assert "gibbs" in chosen.reason


def test_large_models_are_left_to_gibbs():
    chosen = choose(gallery.square_grid(80, 80, coupling=0.2))
    assert (chosen.sampler, chosen.reason) == (Gibbs(), "gibbs: of more than 5000 variables no pilot is made")


@pytest.mark.parametrize("name", box_models())
def test_any_ends(name):
    model, _, _ = box_models()[name]
    assert choose(model).sampler.name in ("gibbs", "tempering", "fields")


def test_it_is_the_default_and_says_why():
    s = sample(GRID, 500, seed=3)
    assert s.method == "gibbs"
    assert s.detail == choose(GRID).reason
    assert (s.draws == sample(GRID, 500, method="gibbs", seed=3).draws).all()
    m = nnbm.sample_moments(GRID, 500, seed=3)
    assert (m.method, m.detail) == ("gibbs", s.detail)
    assert sample(GRID, 500, method="gibbs", seed=3).detail == ""


def test_slow_batches_are_counted():
    """Autoregressions: draws per effective one are (1 + rho) / (1 - rho), as far as batches see."""
    rng = np.random.default_rng(0)
    values = np.zeros((4, 20_000, 2))
    for k in range(1, values.shape[1]):
        values[:, k] = np.array([0.5, 0.9]) * values[:, k - 1] + rng.normal(size=(4, 2))
    assert choice._draws_per_effective_one(values[:, :, :1]) == pytest.approx(3.0, rel=0.6)
    assert choice._draws_per_effective_one(values) == pytest.approx(19.0, rel=0.6)

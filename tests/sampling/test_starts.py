"""Where chains start: in every mode that is found, apart, and as before where there is one mode only."""

import numpy as np
import pytest

import nnbm
from nnbm import gallery
from nnbm.sampling.mean_field_modes import climbed, log_mass
from nnbm.sampling.starts import crowd_of_starts, dispersed_starts
from nnbm.stream import sequence

SHIFTED = gallery.square_grid(6, 6, bias=(3.6, 4.4))
SIGNS = 2 * (np.indices((6, 6)).sum(axis=0).ravel() % 2) - 1


@pytest.mark.parametrize("seed", range(8))
def test_both_checkerboards_have_a_chain(seed):
    starts = dispersed_starts(SHIFTED, 2, sequence(seed))
    assert sorted(np.sign(starts @ SIGNS)) == [-1.0, 1.0]


def test_one_mode_leaves_the_crowd_as_it_is():
    model = gallery.square_grid(6, 6)
    assert (dispersed_starts(model, 4, sequence(1)) == crowd_of_starts(model, 4, sequence(1))).all()


def test_modes_are_solutions_of_naive_mean_field_best_first():
    modes = climbed(SHIFTED, crowd_of_starts(SHIFTED, 16, sequence(0)))
    assert len(modes) == 2
    for mode in modes:
        field = SHIFTED.bias - SHIFTED.coupling @ mode + SHIFTED.diagonal * mode
        np.testing.assert_allclose(SHIFTED.site.moments(field, SHIFTED.diagonal).mean, mode, atol=1e-5)
    mass = log_mass(SHIFTED, modes)
    assert mass[0] > mass[1]
    with pytest.warns(nnbm.UnreliableWarning):
        known = nnbm.infer(SHIFTED, "naive")
    np.testing.assert_allclose(mass, [known.log_partition, known.alternatives[0].log_partition], atol=1e-6)


def test_modes_between_other_ends():
    model = nnbm.NNBM([0.0, 0.1], [[0.0, -4.0], [-4.0, 0.0]], lower=-1.0, upper=1.0)
    modes = climbed(model, np.array([[0.9, 0.9], [-0.9, -0.9], [0.8, 0.7]]))
    assert len(modes) == 2
    assert modes[0].min() > 0.5
    assert modes[1].max() < -0.5


def test_climbs_out_of_the_floats_are_left_out():
    assert climbed(gallery.two_modes(), np.full((1, 2), np.nan)).shape == (0, 2)


def test_few_chains_take_the_best_modes():
    one = dispersed_starts(SHIFTED, 1, sequence(3))
    assert one.shape == (1, 36)
    four = dispersed_starts(SHIFTED, 4, sequence(3))
    assert len(np.unique(four, axis=0)) == 4

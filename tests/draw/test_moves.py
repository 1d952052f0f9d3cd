"""Moves within the law of one variable: it does not move, they undo themselves, they lead far, controls that fail."""

import math

import numpy as np
import pytest
from scipy import special, stats

from nnbm.draw import DRAW, FLIP, SHIFT, moved, moved_excess, truncated_normal
from nnbm.kernels import kernel
from nnbm.stream import load, store, streams

WALLS = [-40.0, -5.0, -3.2, -3.1, -1.0, 0.0, 0.7, 2.0, 2.29, 2.31, 30.0]
# l, r, lower, upper: every combination of ends, walls near, far and far to one side, r of any sign
BOXES = [
    (0.3, 1.0, -0.5, 1.2),
    (2.0, 4.0, 0.0, 3.0),
    (-1.0, 0.5, -math.inf, 0.4),
    (5.0, 2.0, -math.inf, math.inf),
    (1.0, 1.0, 0.0, math.inf),
    (0.2, 1.0, 0.199, 0.201),
    (-9.0, 1.0, 0.0, 2.0),
    (9.0, 1.0, 0.0, 2.0),
    (0.5, -3.0, -1.0, 1.0),
    (0.0, 0.0, 1.0, 2.0),
]
COUNT = 200_000
KS_LIMIT = 2.75  # P(sqrt(N) D > 2.75) = 5.4e-7


@kernel()
def all_excesses(move, over, wall, row):
    stream = load(row)
    for k in range(over.size):
        over[k], stream = moved_excess(move, over[k], wall, stream)
    store(stream, row)


@kernel()
def all_moved(move, x, l, r, lower, upper, row):
    stream = load(row)
    for k in range(x.size):
        x[k], stream = moved(move, x[k], l, r, lower, upper, stream)
    store(stream, row)


def excesses(wall, count=COUNT, seed=0):
    return truncated_normal(-wall, 1.0, count, seed=seed)


def after(move, over, wall, seed=1):
    out = over.copy()
    all_excesses(move, out, wall, streams(seed, 1)[0])
    return out


def ks(probabilities):
    p = np.sort(probabilities)
    rank = np.arange(p.size)
    return math.sqrt(p.size) * max((p - rank / p.size).max(), ((rank + 1) / p.size - p).max())


def below(over, wall):
    """P(X - wall <= over) for a standard normal X beyond the wall."""
    if wall <= 0:
        return 1.0 - special.ndtr(-wall - over) / special.ndtr(-wall)
    tail = np.exp(-over * (wall + over / 2)) * special.erfcx((wall + over) / math.sqrt(2))
    return 1.0 - tail / special.erfcx(wall / math.sqrt(2))


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("move", [DRAW, FLIP, SHIFT])
def test_the_law_does_not_move(move, wall):
    assert ks(below(after(move, excesses(wall), wall), wall)) < KS_LIMIT


@pytest.mark.parametrize("wall", [-3.1, -1.0, 0.0, 2.0])
@pytest.mark.parametrize("move", [FLIP, SHIFT])
def test_a_wall_out_of_place_is_seen(move, wall):
    """Negative control: draws of one wall, moved as if it lay 0.05 further, lose their law."""
    assert ks(below(after(move, excesses(wall), wall + 0.05), wall)) > KS_LIMIT


@pytest.mark.parametrize(("l", "r", "lower", "upper"), BOXES)
@pytest.mark.parametrize("move", [DRAW, FLIP, SHIFT])
def test_the_law_between_ends_does_not_move(move, l, r, lower, upper):
    x = truncated_normal(l, r, COUNT, lower=lower, upper=upper, seed=2)
    fresh = truncated_normal(l, r, COUNT, lower=lower, upper=upper, seed=3)
    all_moved(move, x, l, r, lower, upper, streams(4, 1)[0])
    assert ((lower <= x) & (x <= upper)).all()
    assert stats.ks_2samp(x, fresh).statistic * math.sqrt(COUNT / 2) < KS_LIMIT


@pytest.mark.parametrize("wall", [-40.0, -2.0, 0.0, 1.0, 2.2])
@pytest.mark.parametrize("move", [FLIP, SHIFT])
def test_moves_undo_themselves(move, wall):
    over = excesses(wall, 20_000)
    there = after(move, over, wall)
    back = after(move, there, wall, seed=2)
    gone = (there != over) & (back != there)
    assert gone.mean() > 0.85
    np.testing.assert_allclose(back[gone], over[gone], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("wall", [-40.0, -2.0, 0.0, 1.0])
def test_a_flip_leads_to_the_other_side_and_a_shift_half_way_round(wall):
    over = excesses(wall, 20_000)
    p, flipped, shifted = (below(x, wall) for x in (over, after(FLIP, over, wall), after(SHIFT, over, wall)))
    assert np.corrcoef(p, flipped)[0, 1] < -0.94
    distance = np.abs(shifted - p)
    assert np.mean(np.abs(distance - 0.5) < 0.02) > 0.97


def test_what_is_not_finite_is_not_lost():
    row = streams(0, 1)[0]
    for move in (FLIP, SHIFT):
        for over, wall in ((0.5, np.nan), (0.5, np.inf), (np.nan, np.nan)):
            out = np.array([over])
            all_excesses(move, out, wall, row)
            assert np.isnan(out[0])
        out = np.array([0.5])
        all_excesses(move, out, -np.inf, row)
        assert out[0] == np.inf
        out = np.array([0.5])
        all_moved(move, out, np.nan, 1.0, -1.0, 2.0, row)
        assert np.isnan(out[0])

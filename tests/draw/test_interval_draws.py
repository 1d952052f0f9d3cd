"""Exact draws on an interval: Kolmogorov-Smirnov in every regime of the proposals, ends, and how often they accept."""

import math

import numpy as np
import pytest

from nnbm.draw import interval_draw, truncated_normal
from nnbm.draw.interval import chord_mass, exponential_below
from nnbm.kernels import kernel
from nnbm.site import interval_statistics
from nnbm.stream import load, store, streams

KS_LIMIT = 2.75  # P(sqrt(N) D > 2.75) = 5.4e-7; with some 50 tests a false alarm is a 3e-5 event
# l and r on the unit interval: both sides of every switch, seen from the lower and from the upper end
LAWS = {
    "uniform": (0.0, 0.0),
    "exponential": (-3.0, 0.0),
    "exponential at the upper end": (40.0, 0.0),
    "short, peak between": (0.9, 2.0),
    "short, steep": (-5.0, 2.2),
    "short, upper end": (6.0, 2.2),
    "half line, hardly": (0.0, 2.3),
    "half line, peak in the middle": (1.2, 2.4),
    "half line, both walls": (10.0, 20.0),
    "half line, upper end": (30.0, 25.0),
    "half line, far wall out of sight": (-30.0, 50.0),
    "half line, narrow": (2e5, 4e5),
    "half line, deep behind the wall": (-1e4, 1.0),
    "r < 0, nearly flat": (0.0, -1.0),
    "r < 0, falling": (-30.0, -20.0),
    "r < 0, no slope at the upper end": (-20.0, -20.0),
    "r < 0, both ends alike": (-10.0, -20.0),
    "r < 0, the upper end more": (-45.0, -100.0),
    "r < 0, two thin spikes": (-500.3, -1000.0),
    "r < 0, one of two": (-700.0, -1000.0),
    "r < 0, almost two points": (-5e5, -1e6),
}


@kernel()
def log_partitions(l, r, widths, out):
    for k in range(widths.size):
        out[k] = interval_statistics(l, r, widths[k]).log_partition


@kernel()
def exponentials(rate, row, out):
    stream = load(row)
    for k in range(out.size):
        out[k], stream = exponential_below(rate, 2.0, stream)
    store(stream, row)


@kernel()
def one_draw(l, r, width, row):
    return interval_draw(l, r, width, load(row))[0]


def ks(x: np.ndarray, l: float, r: float) -> float:
    """P(X <= x) is Z1 of [0, x] over that of [0, 1]."""
    ordered, p = np.sort(x), np.empty(x.size)
    log_partitions(l, r, ordered, p)
    p = np.exp(p - interval_statistics(l, r, 1.0).log_partition)
    rank = np.arange(p.size)
    return math.sqrt(p.size) * max((p - rank / p.size).max(), ((rank + 1) / p.size - p).max())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [1, 2])
def test_kolmogorov_smirnov(law, seed):
    l, r = LAWS[law]
    assert ks(truncated_normal(l, r, 200_000, upper=1.0, seed=seed), l, r) < KS_LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_kolmogorov_smirnov_at_five_million(law):
    l, r = LAWS[law]
    assert ks(truncated_normal(l, r, 5_000_000, upper=1.0, seed=3), l, r) < KS_LIMIT


@pytest.mark.parametrize("law", ["uniform", "half line, both walls", "r < 0, both ends alike", "r < 0, falling"])
def test_the_test_would_see_a_wrong_law(law):
    """Negative control: l off by a tenth and 3% of its size is caught at this size."""
    l, r = LAWS[law]
    assert ks(truncated_normal(l + 0.1 + 0.03 * abs(l), r, 200_000, upper=1.0, seed=1), l, r) > KS_LIMIT


@pytest.mark.parametrize("rate", [-800.0, -3.0, -1e-9, 0.0, 5e-324, 1e-9, 3.0, 800.0])
def test_exponentials_below(rate):
    """Both signs of the rate, and rates so small or large that nothing but one end or no slope is left."""

    x = np.empty(200_000)
    exponentials(rate, streams(1, 1)[0], x)
    assert (x >= 0).all()
    assert (x <= 2.0).all()
    assert ks(x / 2.0, -2.0 * rate, 0.0) < KS_LIMIT


def test_thin_spikes_keep_their_digits_at_the_lower_end():
    """A distance from there is never a difference, whichever end holds more."""
    for l in (-5e7 - 1.0, -5e7 + 1.0):
        x = truncated_normal(l, -1e8, 100_000, upper=1.0, seed=0)
        low = x[x < 0.5]
        assert (low > 0).all()
        assert np.unique(low).size == low.size
        assert (x <= 1.0).all()


def test_no_proposal_is_refused_more_often_than_every_other_time():
    """Acceptance is Z1 over the proposal's mass."""
    for short, z in [(1.5, 0.75), (1.5, 0.0), (1.5, -1.0), (0.5, 0.25), (1.0, -3.0)]:
        kept = interval_statistics(z, 1.0, short).log_partition
        rate, top = max(-z, 1e-12), 0.5 * max(z, 0.0) ** 2
        assert math.exp(kept - top) > 0.7 * (-math.expm1(-rate * short) / rate)  # below _SHORT
        assert kept > math.log(0.7) + interval_statistics(z, 1.0, 1e3).log_partition or short < 1.5  # above it
    worst = 1.0
    for bend in 10.0 ** np.linspace(-3, 6, 40):
        for near in bend * np.concatenate([np.linspace(0.5, 3.0, 40), 0.5 + 10.0 ** np.linspace(-7, 0, 20)]):
            chords = (near - 0.25 * bend, 0.0), (0.75 * bend - near, 0.5 * bend - near)
            proposed = sum(chord_mass(rate, 0.5, log_size) for rate, log_size in chords)
            worst = min(worst, math.exp(interval_statistics(-near, -bend, 1.0).log_partition) / proposed)
    assert worst == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("l", "r"), [(np.nan, 1.0), (np.inf, 1.0), (-np.inf, -1.0), (0.0, np.nan), (0.0, -np.inf), (1e308, -1.0)]
)
def test_numbers_that_are_none_come_back_as_none(l, r):
    assert np.isnan(one_draw(l, r, 10.0, streams(0, 1)[0]))

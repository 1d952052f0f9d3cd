"""One variable: draws and statistics against scipy.stats.truncnorm and SciPy's special functions; intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special, stats

from benchmarks.rows import Row, best_seconds
from nnbm.arrays import FloatArray
from nnbm.draw import truncated_normal
from nnbm.site import HALF_LINE, Box

COUNT = 100_000


def truncnorm_draws(z: FloatArray, width: float = np.inf) -> Callable[[], object]:
    """A task that draws one variable per z with SciPy, vectorised."""
    rng = np.random.default_rng(0)
    return lambda: stats.truncnorm.rvs(-z, width - z, random_state=rng)


def textbook_moments(z: FloatArray) -> FloatArray:
    """Ln Z1, mean and variance from erfcx, NumPy (EQ 2's textbook form: no digits left for z << 0)."""
    tail = special.erfcx(-z * np.sqrt(0.5))
    h = np.sqrt(2 / np.pi) / tail
    return np.stack([np.log(tail), z + h, 1 - z * h - h * h])


def rows() -> Iterator[Row]:
    """Draws per element of mixed truncations, and site statistics."""
    z = np.random.default_rng(1).uniform(-5, 5, COUNT)
    ours, scipy = best_seconds(lambda: truncated_normal(z, 1.0, seed=1), truncnorm_draws(z))
    yield Row(
        "exact draw, speed-up over scipy.stats.truncnorm", scipy / ours, "x",
        f"{ours / COUNT * 1e9:.0f} ns against {scipy / COUNT * 1e9:.0f} ns a draw, z ~ U(-5, 5)", ">=", 10.0,
    )  # fmt: skip
    ours, textbook = best_seconds(lambda: HALF_LINE.moments(z, 1.0), lambda: textbook_moments(z))
    yield Row(
        "ln Z1 and six cumulants, time over textbook ln Z1, m, s", ours / textbook, "x",
        f"{ours / COUNT * 1e9:.0f} ns against {textbook / COUNT * 1e9:.0f} ns a site",
    )  # fmt: skip
    moments = HALF_LINE.moments(z, 1.0)
    ours, _ = best_seconds(
        lambda: HALF_LINE.from_mean_variance(moments.mean, moments.variance), lambda: textbook_moments(z)
    )
    yield Row(
        "moment inversion (m, s) -> (l, r), time over textbook ln Z1, m, s", ours / textbook, "x",
        f"{ours / COUNT * 1e9:.0f} ns a site",
    )  # fmt: skip
    yield from interval_rows(z)


def interval_rows(z: FloatArray) -> Iterator[Row]:
    """The same on an interval three units wide, where both walls are felt; and with the mass at both ends."""
    box = Box(0.0, 3.0)
    ours, scipy = best_seconds(lambda: truncated_normal(z, 1.0, upper=3.0, seed=1), truncnorm_draws(z, 3.0), repeats=3)
    yield Row(
        "exact draw on an interval, speed-up over scipy.stats.truncnorm", scipy / ours, "x",
        f"{ours / COUNT * 1e9:.0f} ns against {scipy / COUNT * 1e9:.0f} ns a draw, width 3, z ~ U(-5, 5)", ">=", 5.0,
    )  # fmt: skip
    both_ends = z - 45.0
    ours, spikes, draws = best_seconds(
        lambda: box.moments(z, 1.0), lambda: box.moments(both_ends, -30.0),
        lambda: truncated_normal(both_ends, -30.0, upper=3.0, seed=1),
    )  # fmt: skip
    yield Row(
        "ln Z1 and six cumulants on an interval", ours / COUNT * 1e6, "us",
        f"width 3, z ~ U(-5, 5); with the mass at both ends (r = -30) {spikes / COUNT * 1e6:.2f} us", "<=", 0.5,
    )  # fmt: skip
    yield Row("exact draw with the mass at both ends", draws / COUNT * 1e9, "ns", "width 3, r = -30")
    moments = box.moments(z, 1.0)
    [ours] = best_seconds(lambda: box.from_mean_variance(moments.mean, moments.variance))
    yield Row("moment inversion on an interval", ours / COUNT * 1e6, "us", "width 3, z ~ U(-5, 5)")

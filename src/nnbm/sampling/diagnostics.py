"""Effective sample size, R-hat and Monte-Carlo errors of draws (chains, draws, n), by arviz-stats.

A variable whose draws never vary, or are not all finite, has none of them: NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from nnbm.arrays import FloatArray, IntArray

__all__ = [
    "FEWEST_DRAWS",
    "MOST_SUSPECTS",
    "RHAT_LIMIT",
    "EssKind",
    "LeastEss",
    "ess",
    "least_ess",
    "mean_error",
    "rhat",
    "slowest_functional",
    "suspects",
    "unmixed",
]

EssKind = Literal["bulk", "tail", "mean"]

FEWEST_DRAWS = 8  # draws per chain below which no diagnostic means anything
RHAT_LIMIT = 1.01  # above it chains have not agreed (Vehtari et al. 2021)
MOST_SUSPECTS = 500  # up to this many variables every one gets the rank-normalised R-hat
_BLOCK = 4096
_LAG = 10  # draws, over which the slowest linear functional is looked for
_MOST_COMBINED = 300  # variables that may be in it


def rhat(draws: FloatArray) -> FloatArray:
    """(n,) rank-normalised split R-hat (Vehtari et al. 2021); a single chain is compared with itself in halves."""
    from arviz_stats.base import array_stats  # half a second of import, needed only here

    return _by_blocks(draws, lambda part: array_stats.rhat(_at_least_two(part), chain_axis=0, draw_axis=1))


def ess(draws: FloatArray, kind: EssKind = "bulk") -> FloatArray:
    """(n,) effective sample size of all chains together."""
    from arviz_stats.base import array_stats

    tail = {"prob": (0.05, 0.95)} if kind == "tail" else {}
    return _by_blocks(draws, lambda part: array_stats.ess(part, chain_axis=0, draw_axis=1, method=kind, **tail))


def mean_error(draws: FloatArray) -> FloatArray:
    """(n,) Monte-Carlo standard error of the mean."""
    from arviz_stats.base import array_stats

    unit = _by_blocks(draws, lambda part: array_stats.mcse(part, chain_axis=0, draw_axis=1, method="mean"))
    return unit * _largest(draws)


@dataclass(frozen=True)
class LeastEss:
    """The smallest effective number of draws, `value`, and whose it is.

    what: "x" or "x²" of the variable `site`, or the "slowest combination". each: the smallest of every kind.
    """

    value: float
    what: str
    site: int | None
    each: dict[str, float]


def least_ess(draws: FloatArray) -> LeastEss:
    """Of the means of x, of x², and of the linear functional that moves slowest (`slowest_functional`).

    Ranks are the same for x and x², so bulk ESS would not see that spreads mix worse than means.
    """
    kinds = {"x": ess(draws, "mean"), "x²": ess(draws**2, "mean")}
    if 1 < draws.shape[2] <= _MOST_COMBINED:
        kinds["slowest combination"] = ess((draws @ slowest_functional(draws))[:, :, None], "mean")
    known = {what: found for what, found in kinds.items() if np.isfinite(found).any()}
    if not known:
        return LeastEss(np.nan, "x", None, {})
    each = {what: float(np.nanmin(found)) for what, found in known.items()}
    what = min(each, key=lambda kind: each[kind])
    site = None if what == "slowest combination" else int(np.nanargmin(known[what]))
    return LeastEss(each[what], what, site, each)


def slowest_functional(draws: FloatArray) -> FloatArray:
    """(n,) the weights a of the a.x of largest autocorrelation some draws apart, in units where each sd is 1 before.

    Of more than a few hundred variables it is the one variable that has it.
    """
    lag = max(1, min(_LAG, draws.shape[1] // 20))
    apart = draws - draws.mean(axis=(0, 1))
    sd = apart.std(axis=(0, 1))
    unit = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
    scaled = apart * unit
    early, late = (part.reshape(-1, sd.size) for part in (scaled[:, :-lag], scaled[:, lag:]))
    if sd.size > _MOST_COMBINED:
        weights = np.zeros(sd.size)
        worst = int(np.argmax(np.einsum("ki,ki->i", early, late)))
        weights[worst] = unit[worst]
        return weights
    lagged = early.T @ late / early.shape[0]
    flat = scaled.reshape(-1, sd.size)
    covariance = flat.T @ flat / flat.shape[0] + 1e-6 * np.eye(sd.size)  # variables that never vary, or follow others
    return np.asarray(unit * linalg.eigh(0.5 * (lagged + lagged.T), covariance)[1][:, -1])


def unmixed(draws: FloatArray, threshold: float = RHAT_LIMIT) -> tuple[IntArray, FloatArray]:
    """The variables whose R-hat is not at most `threshold`, worst first (NaN before all), and their R-hat.

    Of more than `MOST_SUSPECTS` variables only so many are examined, see `suspects`.
    """
    places = suspects(draws, MOST_SUSPECTS)
    found = rhat(draws[:, :, places])
    order = np.argsort(found)[::-1]
    order = order[~(found[order] <= threshold)]
    return places[order], found[order]


def suspects(draws: FloatArray, count: int) -> IntArray:
    """The variables (all, or `count`) of highest plain split R-hat, which costs one pass, in order of their labels."""
    n = draws.shape[2]
    if n <= count:
        return np.arange(n)
    return np.sort(np.argpartition(_plain_rhat(_enough(draws)), n - count)[n - count :])


def _plain_rhat(draws: FloatArray) -> FloatArray:
    """(n,) split R-hat without ranks, inf where there is none, block by block so that no copy of the draws is made."""
    half = draws.shape[1] // 2
    out = np.empty(draws.shape[2])
    with np.errstate(all="ignore"):
        for first in range(0, out.size, _BLOCK):
            part = _scaled(draws[:, :, first : first + _BLOCK])
            halves = np.concatenate([part[:, :half], part[:, -half:]])
            within = halves.var(axis=1, ddof=1).mean(axis=0)
            between = halves.mean(axis=1).var(axis=0, ddof=1)
            out[first : first + _BLOCK] = np.sqrt((half - 1) / half + between / within)
    out[np.isnan(out)] = np.inf
    return out


def _by_blocks(draws: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """(n,) the statistic of each variable's draws in units of their largest, NaN where they say nothing."""
    out = np.full(_enough(draws).shape[2], np.nan)
    with np.errstate(all="ignore"):
        for first in range(0, out.size, _BLOCK):
            part = draws[:, :, first : first + _BLOCK]
            telling = np.isfinite(part).all(axis=(0, 1)) & (part != part[:1, :1]).any(axis=(0, 1))
            if telling.any():
                out[first : first + _BLOCK][telling] = statistic(_scaled(part[:, :, telling]))
    return out


def _scaled(draws: FloatArray) -> FloatArray:
    """The draws in units of each variable's largest, so that no square of theirs leaves the floats."""
    return draws / _largest(draws)


def _largest(draws: FloatArray) -> FloatArray:
    largest = np.maximum(draws.max(axis=(0, 1)), -draws.min(axis=(0, 1)))
    return np.where(largest > 0, largest, 1.0)


def _enough(draws: FloatArray) -> FloatArray:
    if draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"draws: at least {FEWEST_DRAWS} per chain are needed to judge them, but there are {draws.shape[1]}. "
            "Draw more."
        )
    return draws


def _at_least_two(draws: FloatArray) -> FloatArray:
    if draws.shape[0] > 1:
        return draws
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])

"""Effective sample size, R-hat and Monte-Carlo errors of draws (chains, draws, n), by arviz-stats."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nnbm.arrays import FloatArray, IntArray

__all__ = ["FEWEST_DRAWS", "EssKind", "ess", "mean_error", "rhat", "unmixed"]

EssKind = Literal["bulk", "tail", "mean"]

FEWEST_DRAWS = 8  # draws per chain below which no diagnostic means anything
_ALL_EXACTLY = 500  # up to this many variables every one gets the rank-normalised R-hat
_BLOCK = 4096


def rhat(draws: FloatArray) -> FloatArray:
    """(n,) rank-normalised split R-hat (Vehtari et al. 2021); a single chain is compared with itself in halves."""
    from arviz_stats.base import array_stats  # half a second of import, needed only here

    return np.asarray(array_stats.rhat(_at_least_two(draws), chain_axis=0, draw_axis=1))


def ess(draws: FloatArray, kind: EssKind = "bulk") -> FloatArray:
    """(n,) effective sample size of all chains together."""
    from arviz_stats.base import array_stats

    tail = {"prob": (0.05, 0.95)} if kind == "tail" else {}
    return np.asarray(array_stats.ess(_enough(draws), chain_axis=0, draw_axis=1, method=kind, **tail))


def mean_error(draws: FloatArray) -> FloatArray:
    """(n,) Monte-Carlo standard error of the mean."""
    from arviz_stats.base import array_stats

    return np.asarray(array_stats.mcse(_enough(draws), chain_axis=0, draw_axis=1, method="mean"))


def unmixed(draws: FloatArray, threshold: float) -> tuple[IntArray, FloatArray]:
    """The variables whose R-hat exceeds `threshold`, worst first, and their R-hat.

    Beyond `_ALL_EXACTLY` variables the plain split R-hat of all of them, one cheap pass, picks the most suspicious
    for the rank-normalised one.
    """
    n = draws.shape[2]
    if n <= _ALL_EXACTLY:
        suspects = np.arange(n)
    else:
        suspects = np.argpartition(-_plain_rhat(_enough(draws)), _ALL_EXACTLY)[:_ALL_EXACTLY].copy()
    found = rhat(draws[:, :, suspects])
    order = np.argsort(found)[::-1]
    order = order[found[order] > threshold]
    return suspects[order], found[order]


def _plain_rhat(draws: FloatArray) -> FloatArray:
    """(n,) split R-hat without ranks, block by block so that no copy of the draws is made."""
    half = draws.shape[1] // 2
    out = np.empty(draws.shape[2])
    for first in range(0, out.size, _BLOCK):
        part = draws[:, :, first : first + _BLOCK]
        halves = np.concatenate([part[:, :half], part[:, -half:]])
        within = halves.var(axis=1, ddof=1).mean(axis=0)
        between = halves.mean(axis=1).var(axis=0, ddof=1)
        out[first : first + _BLOCK] = np.sqrt((half - 1) / half + between / within)
    return out


def _enough(draws: FloatArray) -> FloatArray:
    if draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"draws: at least {FEWEST_DRAWS} per chain are needed to judge them, but there are {draws.shape[1]}. "
            "Draw more."
        )
    return draws


def _at_least_two(draws: FloatArray) -> FloatArray:
    if _enough(draws).shape[0] > 1:
        return draws
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])

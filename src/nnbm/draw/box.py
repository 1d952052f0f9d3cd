"""Exact draws of one variable on [lower, upper], either end possibly infinite: `truncated_normal`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from nnbm.arrays import FloatArray
from nnbm.draw.half_line import half_line_draw, normal
from nnbm.draw.interval import interval_draw
from nnbm.kernels import kernel
from nnbm.site import Box
from nnbm.site.box_statistics import ends_are_out_of_sight, is_seen_from_below
from nnbm.site.rounding import slope_at
from nnbm.stream import Seed, Stream, StreamArray, load, store, streams

__all__ = ["box_draw", "truncated_normal"]


@kernel(error_model="numpy")
def box_draw(l: float, r: float, lower: float, upper: float, stream: Stream) -> tuple[float, Stream]:
    """A draw from q(x; l, r) on lower <= x <= upper, exact in law; NaN of an (l, r) that has none."""
    below, above = lower > -np.inf, upper < np.inf
    if not (r > 0.0 or (below and above)):
        return np.nan, stream
    if ends_are_out_of_sight(l, r, lower, upper):
        x, stream = normal(stream)
        return l / r + x / math.sqrt(r), stream
    is_upright = is_seen_from_below(lower, upper)
    slope = slope_at(lower, l, r) if is_upright else -slope_at(upper, l, r)
    if below and above:
        x, stream = interval_draw(slope, r, upper - lower, stream)
    else:
        x, stream = half_line_draw(slope, r, stream)
    # the width and its sum with the end are rounded
    return (min(lower + x, upper) if is_upright else max(upper - x, lower)), stream


@kernel()
def _fill(
    l: FloatArray, r: FloatArray, lower: FloatArray, upper: FloatArray, row: StreamArray, out: FloatArray
) -> None:
    """The ends repeat themselves along l and r."""
    stream, i = load(row), 0
    for k in range(out.size):
        if lower[i] == 0.0 and upper[i] == np.inf:
            out[k], stream = half_line_draw(l[k], r[k], stream)
        else:
            out[k], stream = box_draw(l[k], r[k], lower[i], upper[i], stream)
        i = i + 1 if i + 1 < lower.size else 0
    store(stream, row)


def truncated_normal(
    l: ArrayLike,
    r: ArrayLike,
    size: int | tuple[int, ...] | None = None,
    *,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = math.inf,
    seed: Seed = None,
) -> FloatArray:
    """Independent draws from q(x; l, r) ∝ exp(l x - r x²/2) on lower <= x <= upper, all broadcast to `size`.

    In other words: normal of mean l/r and variance 1/r, truncated (EQ 2). Ends may be infinite; between two that are
    not r may be 0, an exponential, or negative, with the mass at both ends. Refused where l/r is not a float.

    >>> import numpy as np
    >>> x = truncated_normal([-1e6, 0.0, 3.0], 1.0, size=(1000, 3), seed=0)
    >>> bool((x > 0).all()), np.round(x.mean(axis=0)[1:], 1)
    (True, array([0.8, 3. ]))
    >>> x = truncated_normal(0.0, -20.0, 1000, lower=-1.0, upper=1.0, seed=0)
    >>> float(np.round(np.abs(x).mean(), 2))
    0.94
    """
    box = Box(lower, upper)
    slope, curvature = box.checked(l, r)
    out = np.empty(slope.shape if size is None else size)
    try:
        slope, curvature = np.broadcast_to(slope, out.shape), np.broadcast_to(curvature, out.shape)
    except ValueError as error:
        raise ValueError(
            f"size: l, r and the ends must broadcast to it, but size = {size} and their common shape is {slope.shape}. "
            "Its last axes are theirs."
        ) from error
    ends = box.lower.reshape(-1), box.upper.reshape(-1)
    _fill(slope.ravel(), curvature.ravel(), *ends, streams(seed, 1)[0], out.reshape(-1))
    return out

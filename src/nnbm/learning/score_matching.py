"""Score matching between walls: consistent, quadratic in the parameters, one pass and one linear solve (EQ 8).

Minimises E_D sum_j [1/2 h(x_j) g_j² + h(x_j) dg_j + h'(x_j) g_j], g_j = b_j - sum_k W_jk x_k, dg_j = -w_jj, with a
weight h that vanishes at the walls: a function of the distance from them (`wall_distance`); without walls h = 1.
Hyvärinen (2007); Yu, Drton & Shojaie (2019). Every variable is measured in units of its own mean distance, so that the
answer does not depend on the units of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.learning.blocks import Blocks, weighted_gram
from nnbm.learning.edges import EdgeSet
from nnbm.learning.frame import wall_distance
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.learning.rows import Rows

__all__ = ["WEIGHTS", "matched", "ridge_curvature", "score_matching", "score_matching_blocks", "score_matching_scores"]

_Weight = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]

# name -> (h, h') of y, the distance from the walls over its mean
WEIGHTS: Mapping[str, _Weight] = {
    "log": (np.log1p, lambda y: 1.0 / (1.0 + y)),
    "linear": (lambda y: y, np.ones_like),
    "square": (np.square, lambda y: 2.0 * y),
    "capped": (lambda y: np.minimum(y, 1.0), lambda y: (y < 1.0).astype(np.float64)),
    "tanh": (np.tanh, lambda y: 1.0 / np.cosh(np.minimum(y, 300.0)) ** 2),
}


def score_matching(rows: Rows, edges: EdgeSet, *, weight: str = "log", ridge: float = 0.0) -> Estimate:
    """The minimiser, by one linear solve.

    weight: a name in `WEIGHTS`. ridge: of a penalty ridge/2 [sum w_ij² + sum (w_ii - 1)²] in units of the variables'
    means; between two walls w_ii is drawn to 0 instead.

    >>> from nnbm import gallery, sample
    >>> model = gallery.square_grid(3, 3, coupling=0.5)
    >>> rows = Rows.checked(sample(model, 4000, thin=3, seed=0).flat)
    >>> found = score_matching(rows, EdgeSet(9, *model.edges))
    >>> bool(np.abs(found.parameters.couplings - 0.5).mean() < 0.1)
    True
    """
    frame = rows.frame
    found = matched(rows.seen_from(frame), edges, weight, ridge)
    if found is None:
        raise ValueError(
            f"X: {rows.count} rows do not determine {edges.parameters} parameters: the score-matching equations are "
            "singular. Use more rows, fewer edges, drop columns that depend linearly on others, or set ridge=0.01."
        )
    return Estimate("score_matching", found.seen_back(frame), 1)


def matched(rows: Rows, edges: EdgeSet, weight: str, ridge: float) -> Parameters | None:
    """The minimiser for rows in their own frame; None where the equations are singular."""
    blocks = score_matching_blocks(rows, edges, weight)
    penalty = ridge_curvature(edges, ridge)
    towards = np.zeros(edges.parameters)
    towards[edges.n : 2 * edges.n] = np.where(np.isfinite(np.subtract(*rows.ends)), 0.0, ridge)
    found = blocks.solve(towards - blocks.total_gradient(), penalty)
    return None if found is None else Parameters.from_vector(edges, found)


def ridge_curvature(edges: EdgeSet, ridge: float) -> FloatArray:
    """(parameters,) diagonal of the penalty ridge/2 [sum w_ij² + sum (w_ii - 1)²]."""
    penalty = np.full(edges.parameters, ridge)
    penalty[: edges.n] = 0.0
    return penalty


def score_matching_blocks(rows: Rows, edges: EdgeSet, weight: str = "log") -> Blocks:
    """Gradient at 0 and curvature of the objective, for rows in the units that the weight is meant for."""
    if weight not in WEIGHTS:
        raise ValueError(f"weight: one of {', '.join(WEIGHTS)} is meant, but weight = {weight!r}.")
    return reduce(Blocks.merged, (_of_batch(batch, edges, WEIGHTS[weight]) for batch in rows.batches()))


def _of_batch(rows: Rows, edges: EdgeSet, weight: _Weight) -> Blocks:
    gradient, curvature = [], []
    share = rows.shares
    for node, neighbours in enumerate(edges.neighbours):
        own = rows.columns[node]
        h, slope = _weighed(rows, node, weight)
        design = np.empty((neighbours.size + 2, rows.count))
        design[0] = 1.0
        np.negative(own, out=design[1])
        np.negative(rows.columns[neighbours], out=design[2:])
        linear = design @ (slope * share)
        linear[1] -= h @ share
        gradient.append(linear)
        curvature.append(weighted_gram(design, np.sqrt(h * share)))
    return Blocks(edges, rows.total, 0.0, tuple(gradient), tuple(curvature))


def _weighed(rows: Rows, node: int, weight: _Weight) -> tuple[FloatArray, FloatArray]:
    """(rows,) h and its derivative by x at every value of a variable."""
    low, high = (float(end[node]) for end in rows.ends)
    distance, slope = wall_distance(rows.columns[node], low, high)
    if np.isinf(low) and np.isinf(high):
        return np.ones_like(slope), slope
    of_distance, by_distance = weight
    return of_distance(distance), by_distance(distance) * slope


def score_matching_scores(rows: Rows, parameters: Parameters, weight: str = "log") -> FloatArray:
    """(parameters, rows) gradient of every row's own objective: the meat of the sandwich."""
    edges, y = parameters.edges, rows.columns
    weighed = [_weighed(rows, node, WEIGHTS[weight]) for node in range(edges.n)]
    h, slope = (np.stack(part) for part in zip(*weighed, strict=True))
    q = h * (parameters.bias[:, None] - parameters.coupling @ y) + slope
    i, j = edges.i, edges.j
    return np.concatenate([q, -h - y * q, -(y[i] * q[j] + y[j] * q[i])])

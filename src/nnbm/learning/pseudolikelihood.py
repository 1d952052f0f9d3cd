"""Maximum pseudo-likelihood: sum_i ln q(x_i; b_i - sum_j w_ij x_j, w_ii), concave in (b, W) (EQ 8).

Besag (1975). Newton's method from score matching; W symmetric, so that both ends of an edge speak of its coupling.
With D = (1, -x_j) of node i and s, c, d = Var(x), Cov(x, x²), Var(x²) of its conditional, the curvature is <s D D'>,
-1/2 <c D> against w_ii, and 1/4 <d> for w_ii itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.learning.blocks import Blocks, weighted_gram
from nnbm.learning.edges import EdgeSet
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.learning.rows import Rows
from nnbm.learning.score_matching import matched

__all__ = [
    "RidgePenalty",
    "conditional_means",
    "log_pseudolikelihoods",
    "pseudolikelihood",
    "pseudolikelihood_blocks",
    "pseudolikelihood_scores",
]

_TOLERANCE = 1e-8  # of Newton's decrement, in standard errors of the worst combination of parameters at N = 1
_SETTLED = 1e-5  # decrement at which a step that gains nothing has met rounding, not a wall
_REFRESH = 1e-3  # decrement below which the last curvature serves
_STEPS, _HALVINGS = 50, 30
_FADING = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
_LONGEST_FALL = -3.0  # of ln w_ii in one step


@dataclass(frozen=True)
class RidgePenalty:
    """ridge [1/2 sum w_ij² + sum (w_ii - 1 - ln w_ii)]: couplings towards 0, and every w_ii off 0 towards 1.

    bounded (n,): variables between two walls, whose w_ii may have any sign: theirs is 1/2 w_ii².
    """

    edges: EdgeSet
    ridge: float
    bounded: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Rows, edges: EdgeSet, ridge: float) -> RidgePenalty:
        """For rows in their own frame."""
        return cls(edges, ridge, np.isfinite(np.subtract(*rows.ends)))

    def value(self, vector: FloatArray) -> float:
        """At (b, w_ii, w_ij)."""
        n = self.edges.n
        own, couplings = vector[n : 2 * n], vector[2 * n :]
        positive = np.where(self.bounded, 1.0, own)
        of_own = np.where(self.bounded, 0.5 * own**2, own - 1.0 - np.log(positive))
        return self.ridge * float(0.5 * couplings @ couplings + np.sum(of_own))

    def gradient(self, vector: FloatArray) -> FloatArray:
        """(parameters,)."""
        n = self.edges.n
        own = vector[n : 2 * n]
        of_own = np.where(self.bounded, own, 1.0 - 1.0 / np.where(self.bounded, 1.0, own))
        return self.ridge * np.concatenate([np.zeros(n), of_own, vector[2 * n :]])

    def curvature(self, vector: FloatArray) -> FloatArray:
        """(parameters,) the diagonal, which is all there is."""
        n = self.edges.n
        of_own = np.where(self.bounded, 1.0, vector[n : 2 * n]) ** -2.0
        return self.ridge * np.concatenate([np.zeros(n), of_own, np.ones(self.edges.size)])


def pseudolikelihood(rows: Rows, edges: EdgeSet, *, ridge: float = 0.0, start: Parameters | None = None) -> Estimate:
    """The maximiser.

    ridge: of a penalty ridge [1/2 sum w_ij² + sum (w_ii - 1 - ln w_ii)] in units of the variables' means. start: None
    starts from score matching.

    >>> from nnbm import gallery, sample
    >>> model = gallery.square_grid(3, 3, coupling=0.5)
    >>> rows = Rows.checked(sample(model, 4000, thin=3, seed=0).flat)
    >>> found = pseudolikelihood(rows, EdgeSet(9, *model.edges))
    >>> bool(np.abs(found.parameters.couplings - 0.5).mean() < 0.1), found.iterations < 6
    (True, True)
    """
    frame = rows.frame
    near = rows.seen_from(frame)
    first, said = (
        (start.seen_from(frame), "Newton's method began where it was told") if start else _first(near, edges, ridge)
    )
    vector, steps = _maximised(near, first, ridge)
    found = Parameters.from_vector(edges, vector).seen_back(frame)
    return Estimate("pseudolikelihood", found, steps, remarks=(f"{said}.",))


def _first(rows: Rows, edges: EdgeSet, ridge: float) -> tuple[Parameters, str]:
    """Score matching's answer if its w_ii are positive where they must be, else independent variables; and which."""
    found = matched(rows, edges, "log", ridge)
    if found is not None and ((found.diagonal > 0) | np.isfinite(np.subtract(*rows.ends))).all():
        return found, "Newton's method began at score matching's answer"
    return _independent(
        rows, edges
    ), "Newton's method began at independent variables: score matching has no answer here"


def _independent(rows: Rows, edges: EdgeSet) -> Parameters:
    """Normals of the rows' variances, whose centred biases are 0."""
    variance = rows.average((rows.columns - rows.average(rows.columns)[:, None]) ** 2)
    return Parameters(edges, np.zeros(edges.n), 1.0 / variance, np.zeros(edges.size))


def _maximised(rows: Rows, start: Parameters, ridge: float) -> tuple[FloatArray, int]:
    """The maximiser's vector and the number of steps: straight from the start, or led by penalties that fade."""
    edges = start.edges
    found = _newton(rows, start, RidgePenalty.of(rows, edges, ridge))
    if found is not None:
        return found
    here, total = _independent(rows, edges), 0
    for strength in (*(r for r in _FADING if r > ridge), ridge):
        found = _newton(rows, here, RidgePenalty.of(rows, edges, strength))
        if found is None:
            raise ValueError(
                f"X: the pseudo-likelihood of {edges.parameters} parameters has no maximum that {rows.count} rows "
                "determine. Use more rows, fewer edges, or a ridge (ridge=0.01)."
            )
        here, total = Parameters.from_vector(edges, found[0]), total + found[1]
    return here.vector, total


def _newton(rows: Rows, start: Parameters, penalty: RidgePenalty) -> tuple[FloatArray, int] | None:
    """The maximiser's vector and the number of steps, None if they stall.

    The curvature is kept once it hardly changes.
    """
    vector = start.vector
    here = pseudolikelihood_blocks(rows, start)
    curved = here
    for step in range(_STEPS):
        gradient = here.total_gradient() - penalty.gradient(vector)
        move = curved.solve(gradient, penalty.curvature(vector))
        if move is None:
            return None
        decrement = math.sqrt(max(float(gradient @ move), 0.0))
        if decrement < _TOLERANCE:
            return vector + move, step + 1
        fresh = decrement > _REFRESH
        found = _line_search(rows, here, vector, move, penalty, float(gradient @ move), fresh)
        if found is None:
            # a value that no longer rises, this close to the maximum, is rounding
            return (vector, step + 1) if decrement < _SETTLED else None
        vector, here = found
        curved = here if fresh else curved
    return None


def _line_search(
    rows: Rows, here: Blocks, vector: FloatArray, move: FloatArray, penalty: RidgePenalty, gain: float, fresh: bool
) -> tuple[FloatArray, Blocks] | None:
    """The first point along the move that is as good as promised; a w_ii > 0 that falls moves in its logarithm."""
    n, length = here.edges.n, 1.0
    diagonal, slope = vector[n : 2 * n], move[n : 2 * n]
    value = here.value - penalty.value(vector)
    for _ in range(_HALVINGS):
        moved = vector + length * move
        positive = np.where(penalty.bounded, 1.0, diagonal)
        falling = positive * np.exp(np.clip(length * slope / positive, _LONGEST_FALL, 0.0))
        moved[n : 2 * n] = np.where((slope < 0.0) & ~penalty.bounded, falling, moved[n : 2 * n])
        there = pseudolikelihood_blocks(rows, Parameters.from_vector(here.edges, moved), curved=fresh)
        # rounding of a value near its maximum is no reason to shorten the step
        if there.value - penalty.value(moved) >= value + 1e-4 * length * gain - 1e-12 * (1.0 + abs(value)):
            return moved, there
        length *= 0.5
    return None


def pseudolikelihood_blocks(rows: Rows, parameters: Parameters, *, curved: bool = True) -> Blocks:
    """Mean log pseudo-likelihood, its gradient and (if `curved`) its negative curvature."""
    return reduce(Blocks.merged, (_of_batch(batch, parameters, curved) for batch in rows.batches()))


def _of_batch(rows: Rows, parameters: Parameters, curved: bool) -> Blocks:
    edges, share = parameters.edges, rows.shares
    gradient, curvature, value = [], [], 0.0
    for node, neighbours in enumerate(edges.neighbours):
        own, r = rows.columns[node], float(parameters.diagonal[node])
        design = np.empty((neighbours.size + 1, rows.count))
        design[0] = 1.0
        np.negative(rows.columns[neighbours], out=design[1:])
        couplings = parameters.couplings[edges.own_edges[node]]
        l = np.concatenate([parameters.bias[[node]], couplings]) @ design
        log_partition, m, s, k3, k4 = rows.site.of(node).conditionals(l, r)
        square = own * own
        value += float((l * own - 0.5 * r * square - log_partition) @ share)
        slope = design @ ((own - m) * share)
        by_diagonal = 0.5 * float((s + m * m - square) @ share)
        gradient.append(np.concatenate([slope[:1], [by_diagonal], slope[1:]]))
        if curved:
            c = k3 + 2.0 * m * s
            d = k4 + 2.0 * s * s + 4.0 * m * (k3 + m * s)
            curvature.append(_bordered(weighted_gram(design, np.sqrt(s * share)), design @ (c * share), d @ share))
    return Blocks(edges, rows.total, value, tuple(gradient), tuple(curvature))


def _bordered(gram: FloatArray, border: FloatArray, corner: float) -> FloatArray:
    """The curvature of one node in the order b_i, w_ii, w_ij."""
    size = gram.shape[0] + 1
    rest = np.delete(np.arange(size), 1)
    whole = np.empty((size, size))
    whole[np.ix_(rest, rest)] = gram
    whole[1, rest] = whole[rest, 1] = -0.5 * border
    whole[1, 1] = 0.25 * corner
    return whole


def pseudolikelihood_scores(rows: Rows, parameters: Parameters) -> FloatArray:
    """(parameters, rows) gradient of every row's log pseudo-likelihood: the meat of the sandwich."""
    x, edges = rows.columns, parameters.edges
    residual, by_diagonal = np.empty_like(x), np.empty_like(x)
    fields = _fields(rows, parameters)
    for node in range(edges.n):
        _, m, s, _, _ = rows.site.of(node).conditionals(fields[node], float(parameters.diagonal[node]))
        residual[node] = x[node] - m
        by_diagonal[node] = -0.5 * (x[node] ** 2 - s - m * m)
    i, j = edges.i, edges.j
    return np.concatenate([residual, by_diagonal, -(x[i] * residual[j] + x[j] * residual[i])])


def log_pseudolikelihoods(rows: Rows, parameters: Parameters) -> FloatArray:
    """(rows,) every row's log pseudo-likelihood."""
    fields, total = _fields(rows, parameters), np.zeros(rows.count)
    for node, own in enumerate(rows.columns):
        r = float(parameters.diagonal[node])
        total += fields[node] * own - 0.5 * r * own * own - rows.site.of(node).conditionals(fields[node], r)[0]
    return total


def conditional_means(rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, rows) the mean of every variable given the others of its row."""
    fields = _fields(rows, parameters)
    pairs = enumerate(zip(fields, parameters.diagonal, strict=True))
    return np.stack([rows.site.of(node).conditionals(l, float(r))[1] for node, (l, r) in pairs])


def _fields(rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, rows) the l of every conditional."""
    x = rows.columns
    pulls = np.asarray(parameters.coupling @ x) - parameters.diagonal[:, None] * x
    return np.ascontiguousarray(parameters.bias[:, None] - pulls)

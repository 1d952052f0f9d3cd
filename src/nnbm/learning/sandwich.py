"""Standard errors of estimators that maximise a sum over rows: H^{-1} J H^{-1} / N (Godambe 1960).

H is the curvature of what is maximised, a ridge's included, so that these are the spreads of penalised estimates, too;
the bias that a ridge brings is not in them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.learning.blocks import Blocks
from nnbm.learning.frame import Frame
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import RidgePenalty, pseudolikelihood_blocks, pseudolikelihood_scores
from nnbm.learning.rows import Rows
from nnbm.learning.score_matching import ridge_curvature, score_matching_blocks, score_matching_scores
from nnbm.learning.statistics import covariance_over, errors_seen_back, require_dense
from nnbm.linalg.dense import balanced

__all__ = ["pseudolikelihood_errors", "score_matching_errors"]


def pseudolikelihood_errors(rows: Rows, at: Parameters, *, ridge: float = 0.0) -> Parameters:
    """Standard errors of the maximum pseudo-likelihood estimate `at`, found with this ridge."""
    frame = rows.frame
    near, here = rows.seen_from(frame), at.seen_from(frame)
    penalty = RidgePenalty.of(near, at.edges, ridge).curvature(here.vector)
    blocks = pseudolikelihood_blocks(near, here)
    return _errors(near, blocks, penalty, frame, lambda batch: pseudolikelihood_scores(batch, here))


def score_matching_errors(rows: Rows, at: Parameters, *, weight: str = "log", ridge: float = 0.0) -> Parameters:
    """Standard errors of the score-matching estimate `at`, found with this weight and ridge."""
    frame = rows.frame
    near, here = rows.seen_from(frame), at.seen_from(frame)
    blocks = score_matching_blocks(near, at.edges, weight)
    penalty = ridge_curvature(at.edges, ridge)
    return _errors(near, blocks, penalty, frame, lambda batch: score_matching_scores(batch, here, weight))


def _errors(
    rows: Rows, blocks: Blocks, penalty: FloatArray, frame: Frame, scores: Callable[[Rows], FloatArray]
) -> Parameters:
    """inf where the rows determine no errors."""
    edges = blocks.edges
    require_dense(edges, "standard errors")
    curvature = blocks.matrix()
    curvature.flat[:: edges.parameters + 1] += penalty
    found = balanced(curvature)
    # scores of so few rows span too little to tell a spread
    if found is None or rows.count <= edges.parameters:
        return Parameters.from_vector(edges, np.full(edges.parameters, np.inf))
    bread = found.inverse()
    return errors_seen_back(edges, bread @ covariance_over(rows, scores) @ bread / rows.total, frame)

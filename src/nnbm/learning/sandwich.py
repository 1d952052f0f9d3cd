"""Standard errors of estimators that maximise a sum over rows: H^{-1} J H^{-1} / N (Godambe 1960)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.learning.blocks import Blocks
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import pseudolikelihood_blocks, pseudolikelihood_scores
from nnbm.learning.rows import Rows
from nnbm.learning.score_matching import score_matching_blocks, score_matching_scores
from nnbm.learning.statistics import covariance_over, require_dense
from nnbm.linalg.dense import balanced

__all__ = ["pseudolikelihood_errors", "score_matching_errors"]


def pseudolikelihood_errors(rows: Rows, at: Parameters) -> Parameters:
    """Standard errors of the maximum pseudo-likelihood estimate `at`."""
    scale = rows.average(rows.columns)
    near, here = rows.scaled(scale), at.in_units(1.0 / scale)
    blocks = pseudolikelihood_blocks(near, here)
    return _errors(near, here, blocks, lambda batch: pseudolikelihood_scores(batch, here)).in_units(scale)


def score_matching_errors(rows: Rows, at: Parameters, *, weight: str = "log") -> Parameters:
    """Standard errors of the score-matching estimate `at`."""
    scale = rows.average(rows.columns)
    near, here, ones = rows.scaled(scale), at.in_units(1.0 / scale), np.ones_like(scale)
    blocks = score_matching_blocks(near, at.edges, ones, weight)
    return _errors(near, here, blocks, lambda batch: score_matching_scores(batch, here, ones, weight)).in_units(scale)


def _errors(rows: Rows, at: Parameters, blocks: Blocks, scores: Callable[[Rows], FloatArray]) -> Parameters:
    """inf where the rows determine no errors."""
    require_dense(at.edges, "standard errors")
    found = balanced(blocks.matrix())
    # scores of so few rows span too little to tell a spread
    if found is None or rows.count <= at.edges.parameters:
        return Parameters.from_vector(at.edges, np.full(at.edges.parameters, np.inf))
    bread = found.inverse()
    covariance = bread @ covariance_over(rows, scores) @ bread
    return Parameters.from_vector(at.edges, np.sqrt(np.maximum(covariance.diagonal(), 0.0) / rows.total))

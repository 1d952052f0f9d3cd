"""EP with cumulant corrections (EQ 12): what EP's Gaussian leaves out of ln Z, and of its derivatives by b.

ln Z ~ ln Z_EP + R; means and covariances are the first and second derivatives of that sum, so they belong together as
those of a density do. Opper, Paquet & Winther, JMLR 14 (2013) 2857.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.closed import ACCURATE
from nnbm.inference.cumulants import Expansion
from nnbm.inference.curvature import covariance_correction
from nnbm.inference.ep import EP
from nnbm.inference.problem import Point, Problem
from nnbm.inference.result import Inference, Known, Status
from nnbm.linalg.dense import factor

__all__ = ["COVARIANCE_VARIABLES", "NAME", "corrected"]

NAME = "epc"
COVARIANCE_VARIABLES = 400  # up to here covariances are corrected, at n⁴ operations: half a second
# What the corrected result may still be wrong by, see decisions: of EP's own expected error this share, or the
# correction itself and twice what its fourth cumulants contribute.
_LEFT_OF_EP, _LEFT_OF_FOURTH = 0.6, 2.0


@dataclass(frozen=True)
class _Second:
    """What belongs to the covariances: d²R/db db' (n, n), and of dR/db the share of fourth cumulants (n,)."""

    bend: FloatArray
    fourth: FloatArray


@dataclass(frozen=True)
class _Corrections:
    """R, dR/db (n,), EP's linear response (n, n), and the second order unless there are too many variables."""

    value: float
    mean: FloatArray
    response: FloatArray
    second: _Second | None

    @property
    def covariance(self) -> FloatArray:
        """(n, n) corrected if possible."""
        return self.response if self.second is None else self.response + self.second.bend


def corrected(problem: Problem, result: Inference) -> Inference:
    """EP's result with corrections of the means, the covariances and ln Z, and its alternatives likewise.

    Where EP has no solution there is nothing to correct. Where the corrected means would leave the domain, or the
    corrected covariance is none, EP's own values are returned and the status says so. Beyond `COVARIANCE_VARIABLES` the
    covariance is EP's linear response. l and r are EP's: the sites whose cumulants the correction is made of.
    """
    if result.method != EP.name:
        return result
    others = tuple(corrected(problem, other) for other in result.alternatives)
    kept = replace(result, method=NAME, alternatives=others)
    if not result.converged or result.l is None or result.r is None:
        return kept
    point = problem.point(problem.state(result.l, result.r))
    found, plain = _corrections(problem, point), EP().log_partition(point)
    if found is None or plain is None:
        return _uncorrected(kept)
    mean, covariance = result.mean + found.mean, found.covariance
    if not (_within(problem, mean) and (found.second is None or _definite(covariance))):
        return _uncorrected(kept)
    error = _expected_error(result, found)
    judged = Status.CONVERGED if error <= ACCURATE else Status.INACCURATE
    return replace(
        kept,
        status=kept.status if kept.status is Status.SEVERAL_MODES else judged,
        mean=mean,
        variance=np.diagonal(covariance).copy(),
        expected_error=error,
        derived=Known(covariance, plain + found.value),
        detail=kept.detail if found.second is not None else _joined(kept.detail, _plain_covariance(mean.size)),
    )


def _corrections(problem: Problem, point: Point) -> _Corrections | None:
    """At a solution of EP; None where its linear response does not exist."""
    found = Expansion.at(point)
    if found is None:
        return None
    shift = found.mean_shift()
    second = None
    if shift.size <= COVARIANCE_VARIABLES:
        bend = covariance_correction(problem, found, problem.diagonal - point.r, shift)
        second = _Second(bend, found.mean_shift((4,)))
    return _Corrections(found.value, shift, found.by_bias * np.outer(found.unit, found.unit), second)


def _within(problem: Problem, mean: FloatArray) -> bool:
    return bool(((problem.site.lower < mean) & (mean < problem.site.upper)).all())


def _definite(covariance: FloatArray) -> bool:
    return bool(np.isfinite(covariance).all()) and factor(covariance) is not None


def _expected_error(result: Inference, found: _Corrections) -> float:
    """What is still expected of the corrected means and standard deviations, in units of the latter."""
    shift = np.abs(found.mean)
    if found.second is None:
        return max(result.expected_error, float((shift / result.standard_deviation).max()))
    shift += _LEFT_OF_FOURTH * np.abs(found.second.fourth)
    of_means = float((shift / result.standard_deviation).max())
    of_spreads = float(0.5 * np.abs(np.diagonal(found.second.bend) / np.diagonal(found.response)).max())
    return max(_LEFT_OF_EP * result.expected_error, of_means, of_spreads)


def _uncorrected(kept: Inference) -> Inference:
    return replace(
        kept,
        status=kept.status if kept.status is Status.SEVERAL_MODES else Status.INACCURATE,
        expected_error=np.inf,
        detail=_joined(kept.detail, "the cumulant correction is too large to be one: these are EP's own values"),
    )


def _plain_covariance(n: int) -> str:
    return (
        f"covariances are EP's linear response: their correction takes n^4 operations and is made up to "
        f"n = {COVARIANCE_VARIABLES}, but n = {n}"
    )


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))

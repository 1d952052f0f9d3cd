"""fit: parameters from a table or from its moments, by whichever estimator, with standard errors and an account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from nnbm.arrays import IntArray
from nnbm.inference.closed import ACCURATE
from nnbm.learning.ascent import ascent
from nnbm.learning.blocks import DENSE_PARAMETERS, weighted_gram
from nnbm.learning.downs import downs
from nnbm.learning.edges import EdgeSet
from nnbm.learning.inverse import inverse, moment_error
from nnbm.learning.labels import label, listed
from nnbm.learning.likelihood import likelihood
from nnbm.learning.moments import Moments, moments
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.learning.pseudolikelihood import pseudolikelihood
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import pseudolikelihood_errors, score_matching_errors
from nnbm.learning.score_matching import score_matching
from nnbm.model import NNBM
from nnbm.site import HALF_LINE, Site
from nnbm.stream import Seed

__all__ = ["METHODS", "MOMENT_METHODS", "Fitted", "Request", "fit", "fit_moments"]

_INDEPENDENT = 1e-12  # share of a column's variance that others must leave
_RIDGES = (
    1e-3,
    1e-2,
    1e-1,
    1.0,
    10.0,
    100.0,
    1000.0,
)  # what "auto" tries, in this order, where the plain maximum has no norm


@dataclass(frozen=True)
class Request:
    """What is asked for. ridge: how strongly couplings are pulled to 0. names: of the columns."""

    method: str = "auto"
    ridge: float = 0.0
    seed: Seed = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Fitted:
    """An estimate and its model."""

    estimate: Estimate
    model: NNBM


_ByMoments = Callable[[Moments, Sequence[str]], Estimate]

_BY_MOMENTS: Mapping[str, _ByMoments] = {
    "isusp": lambda data, names: inverse(data, "isusp", names=names),
    "susp": lambda data, names: inverse(data, "susp", names=names),
    "ep": lambda data, names: inverse(data, "ep", names=names),
    "downs": lambda data, _: downs(data),
    "ascent": lambda data, names: ascent(data, names=names),
}


def _by_score_matching(rows: Rows, edges: EdgeSet, request: Request) -> Estimate:
    found = _penalised(score_matching(rows, edges, ridge=request.ridge), request.ridge)
    return _with_errors(found, lambda: score_matching_errors(rows, found.parameters, ridge=request.ridge))


def _by_pseudolikelihood(rows: Rows, edges: EdgeSet, request: Request) -> Estimate:
    found = _penalised(pseudolikelihood(rows, edges, ridge=request.ridge), request.ridge)
    return _with_errors(found, lambda: pseudolikelihood_errors(rows, found.parameters, ridge=request.ridge))


def _penalised(found: Estimate, ridge: float) -> Estimate:
    said = "Estimates are pulled towards 0 by the ridge; standard errors tell their spread, not this bias."
    return found.with_remarks(said) if ridge > 0.0 else found


def _by_likelihood(rows: Rows, edges: EdgeSet, request: Request) -> Estimate:
    if request.ridge > 0.0:
        raise ValueError(
            f"ridge: likelihood knows none, but ridge = {request.ridge:g}. Use pseudolikelihood, or ridge=0."
        )
    return likelihood(rows, edges, seed=request.seed, names=request.names)


_BY_ROWS: Mapping[str, Callable[[Rows, EdgeSet, Request], Estimate]] = {
    "score_matching": _by_score_matching,
    "pseudolikelihood": _by_pseudolikelihood,
    "likelihood": _by_likelihood,
}

MOMENT_METHODS = tuple(_BY_MOMENTS)
METHODS = ("auto", *MOMENT_METHODS, *_BY_ROWS)


def fit(rows: Rows, edges: EdgeSet, request: Request) -> Fitted:
    """The model behind a table.

    "auto" is pseudo-likelihood from score matching: consistent in every regime and within a few percent of the smallest
    possible errors. Where that gives no density, "auto" penalises couplings as little as helps, and says so.

    >>> from nnbm import gallery, sample
    >>> model = gallery.square_grid(3, 3, coupling=0.5)
    >>> rows = Rows.checked(sample(model, 4000, thin=3, seed=0).flat)
    >>> fit(rows, EdgeSet(9, *model.edges), Request()).estimate.method
    'pseudolikelihood'
    """
    _require_known(request)
    _require_independent(rows, edges, request.names)
    if request.method == "auto":
        return _automatic(rows, edges, request)
    by_rows = _BY_ROWS.get(request.method)
    if by_rows is None:
        return fit_moments(moments(rows, edges), request)
    return _modelled(by_rows(rows, edges, request), request, rows.site)


def fit_moments(data: Moments, request: Request) -> Fitted:
    """The model behind moments, which is all that mean-field inverses need; "auto" is the paper's I-SusP."""
    _require_known(request)
    _require_variances(data, request.names)
    if request.ridge > 0.0:
        raise ValueError(
            f"ridge: methods from moments know none, but ridge = {request.ridge:g}. Use pseudolikelihood or "
            "score_matching, or ridge=0."
        )
    method = "isusp" if request.method == "auto" else request.method
    if method not in MOMENT_METHODS:
        raise ValueError(
            f"method: {method} needs the rows themselves, but only moments are given. Use one of "
            f"{', '.join(MOMENT_METHODS)}, or fit(X)."
        )
    estimate = _BY_MOMENTS[method](data, request.names)
    found = _modelled(estimate if method == "downs" else _judged(data, estimate), request, data.site)
    if request.method != "auto":
        return found
    said = "Only moments are given, so this is I-SusP, the most accurate estimator that needs no more; it is biased."
    return Fitted(found.estimate.with_remarks(said), found.model)


def _judged(data: Moments, estimate: Estimate) -> Estimate:
    """With a doubt where mean field itself expects to be wrong."""
    error = moment_error(data, estimate.parameters)
    if error <= ACCURATE:
        return estimate
    return estimate.with_doubts(
        f"At these parameters mean-field moments may be off by {error:.2g} standard deviations: the couplings are too "
        "strong for it, and the estimates biased. Use pseudolikelihood, which needs the rows."
    )


def _automatic(rows: Rows, edges: EdgeSet, request: Request) -> Fitted:
    failures: list[ValueError] = []
    for ridge in (request.ridge, *(r for r in _RIDGES if r > request.ridge)):
        try:
            found = _modelled(_by_pseudolikelihood(rows, edges, replace(request, ridge=ridge)), request, rows.site)
        except ValueError as error:
            failures.append(error)
            continue
        remarks = _remarks(rows, ridge, request, failures)
        return Fitted(found.estimate.with_remarks(*remarks), found.model)
    raise failures[0]


def _remarks(rows: Rows, ridge: float, request: Request, failures: Sequence[ValueError]) -> list[str]:
    """What a reader of an automatic fit must know."""
    remarks = []
    if failures:
        remarks.append(
            f"Couplings are penalised (ridge={ridge:g}): as little as gives a density, not what predicts best. "
            f"Without it: {failures[0]}"
        )
    elif ridge == 0.0:
        remarks.append("Pseudo-likelihood is consistent, and near the statistical floor when rows are many.")
    spread = _more_spread_than_an_exponential(rows)
    if rows.site is HALF_LINE and spread.size:
        remarks.append(
            f"Mean-field inverses are out of the question: <x²> >= 2 <x>² for {listed(request.names, spread)}."
        )
    return remarks


def _more_spread_than_an_exponential(rows: Rows) -> IntArray:
    mean = rows.average(rows.columns)
    return np.flatnonzero(rows.average(rows.columns**2) >= 2.0 * mean**2)


def _with_errors(found: Estimate, errors: Callable[[], Parameters]) -> Estimate:
    """The same with standard errors, or with a remark why there are none."""
    count = found.parameters.edges.parameters
    if count > DENSE_PARAMETERS:
        return found.with_remarks(f"No standard errors: they take a matrix of {count} x {count} parameters.")
    return found.with_errors(errors())


def _modelled(estimate: Estimate, request: Request, site: Site) -> Fitted:
    return Fitted(estimate, estimate.parameters.model(request.names, site))


def _require_variances(data: Moments, names: Sequence[str]) -> None:
    bad = ~(data.variance > 0.0)
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(
            f"X: every variable must vary, but the variance of {label(names, k)} is {data.variance[k]:g}. Drop it."
        )


def _require_independent(rows: Rows, edges: EdgeSet, names: Sequence[str]) -> None:
    """Where every pair is free and rows are enough, no column may be a combination of others."""
    if not edges.is_complete or rows.count <= rows.n:
        return
    apart = rows.columns - rows.average(rows.columns)[:, None]
    spread = np.sqrt(rows.average(apart**2))
    correlation = weighted_gram(apart / spread[:, None], np.sqrt(rows.shares))
    _, pivots, rank, _ = lapack.dpstrf(correlation, tol=_INDEPENDENT, lower=1)
    if rank < rows.n:
        raise ValueError(
            f"X: no column may follow from others, but {listed(names, np.sort(pivots[rank:] - 1))} "
            f"{'does' if rank == rows.n - 1 else 'do'}. Drop it, or give edges that do not join such columns."
        )


def _require_known(request: Request) -> None:
    if request.method not in METHODS:
        raise ValueError(f"method: one of {', '.join(METHODS)} is meant, but method = {request.method!r}.")
    try:
        sound = np.ndim(request.ridge) == 0 and np.isfinite(request.ridge) and request.ridge >= 0.0
    except TypeError:
        sound = False
    if not sound:
        raise ValueError(f"ridge: a number >= 0 is needed, but ridge = {request.ridge!r}.")

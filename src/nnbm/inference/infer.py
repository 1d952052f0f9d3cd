"""infer(model): means, covariances and ln Z without sampling, by whichever method."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from nnbm.arrays import FloatArray
from nnbm.errors import NotConverged, UnreliableWarning
from nnbm.inference.closed import ClosedMethod, infer_closed
from nnbm.inference.downs import infer_downs
from nnbm.inference.ep import EP
from nnbm.inference.epc import NAME as EPC
from nnbm.inference.epc import corrected
from nnbm.inference.exact import Exact, exact
from nnbm.inference.isusp import ISusP
from nnbm.inference.isusp3 import ISusP3
from nnbm.inference.naive import Naive
from nnbm.inference.pairs import MOMENTS as PAIR_MOMENTS
from nnbm.inference.pairs import NAME as PAIRS
from nnbm.inference.pairs import infer_pairs
from nnbm.inference.problem import Problem
from nnbm.inference.response import Susceptibilities
from nnbm.inference.result import Inference, Status
from nnbm.inference.solver import Options
from nnbm.inference.tap import Susp, Tap
from nnbm.inference.tap3 import Tap3
from nnbm.model import NNBM

__all__ = ["METHODS", "infer", "problem_of"]

_CLOSED: dict[str, ClosedMethod] = {
    method.name: method for method in (Naive(), Tap(), Susp(), Tap3(), ISusP(), ISusP3(), EP())
}
METHODS = ("auto", *_CLOSED, EPC, PAIRS, "downs", "exact")
_DENSE_VARIABLES = 10_000
_PAIRS_FIRST = 400  # moments, 2n + edges: some milliseconds
_EXACT_VARIABLES = 100  # of a forest: a few seconds
_RAISES = (Status.NOT_CONVERGED, Status.UNSTABLE, Status.NO_SITE)


def infer(model: NNBM, method: str = "auto", *, throw: bool = True, options: Options | None = None) -> Inference:
    """Means, variances, covariances and ln Z of the model.

    method: "auto" (default), "exact" (n <= 3, forests), "pairs" (every edge's two variables exactly), "epc" (EP with
    cumulant corrections), "ep", "isusp" (the paper's), "susp", "tap", "isusp3" and "tap3" (one order further), "naive",
    "downs". "auto" is exact where that is cheap, else the first of "pairs" (beyond 2n + edges = 400 after "epc"),
    "epc", "isusp" and "tap3" that does not warn, or where all do, the one with the smallest expected error.
    options: see `Options`.

    Raises NotConverged, which carries the partial result, where there is no stable solution; throw=False returns it.
    Warns (UnreliableWarning) where a solution is not to be relied on; `status` and `expected_error` say why.

    >>> from nnbm import gallery
    >>> r = infer(gallery.square_grid(6, 6, coupling=0.4))
    >>> r
    Inference(pairs, n=36, converged, to 0.0002 sd)
    """
    if method not in METHODS:
        raise ValueError(f"method: one of {', '.join(METHODS)} is meant, but method = {method!r}.")
    if method != "exact" and model.n > _DENSE_VARIABLES:
        raise ValueError(
            f"model: mean-field methods hold n x n matrices, up to n = {_DENSE_VARIABLES}, but n = {model.n}. Sample."
        )
    chosen = options or Options()
    result = _automatic(model, chosen) if method == "auto" else _by_name(model, method, chosen)
    _complain(result, throw)
    return result


def _by_name(model: NNBM, method: str, options: Options) -> Inference:
    if method == "exact":
        return _exactly(model)
    if method == "downs":
        return infer_downs(problem_of(model), model.names, options)
    if method == EPC:
        problem = problem_of(model)
        return corrected(problem, _closed(problem, EP.name, model.names, options))
    if method == PAIRS:
        return _paired(problem_of(model), model, options)
    return _closed(problem_of(model), method, model.names, options)


def _paired(problem: Problem, model: NNBM, options: Options) -> Inference:
    """Pairs, with naive mean field's modes where it breaks down."""
    if _pair_moments(model) > PAIR_MOMENTS:
        raise ValueError(
            f"model: 'pairs' solves for 2n + edges moments at a time, up to {PAIR_MOMENTS}, but these are "
            f"{_pair_moments(model)}. Use 'epc' or 'tap3', or sample."
        )
    return _with_modes(problem, infer_pairs(problem, model.names, options), options)


def _pair_moments(model: NNBM) -> int:
    return int(2 * model.n + model.edges[0].size)


def _closed(problem: Problem, method: str, names: tuple[str, ...], options: Options) -> Inference:
    """A closure's result; of one that finds no modes although there are several, with naive mean field's."""
    return _with_modes(problem, infer_closed(problem, _CLOSED[method], names, options), options)


def _with_modes(problem: Problem, result: Inference, options: Options) -> Inference:
    """The result, with naive mean field's modes where it says that there are several and has none."""
    troubled = result.status in (Status.UNSTABLE, Status.SEVERAL_MODES) and not result.alternatives
    if not troubled or result.method == "naive":
        return result
    # the crudest method survives deepest into the regime of several modes: it tells at least where they lie
    modes = infer_closed(problem, _CLOSED["naive"], result.names, options)
    return replace(result, alternatives=(modes, *modes.alternatives)) if modes.converged else result


def problem_of(model: NNBM) -> Problem:
    """The model in the form that mean-field methods work on."""
    off = np.array(model.coupling) if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()
    diagonal = np.diagonal(off).copy()
    np.fill_diagonal(off, 0.0)
    return Problem(model.bias, diagonal, off, model.site)


def _automatic(model: NNBM, options: Options) -> Inference:
    """Exact, or the first of several methods that does not warn, or the best of those that do."""
    if _exact_is_cheap(model):
        # a ridge too narrow for quadrature is no reason to give up
        with suppress(ValueError, RuntimeError):
            return _exactly(model)
    tried = []
    for result in _attempts(model, options):
        if result.status.reliable:
            return result
        tried.append(result)
    return _best(tried)


def _attempts(model: NNBM, options: Options) -> Iterator[Inference]:
    """Pairs, EP with its cumulant correction, I-SusP, third order: the most accurate first, but for its price."""
    problem = problem_of(model)
    first = _pair_moments(model) <= _PAIRS_FIRST
    if first:
        yield _paired(problem, model, options)
    epc = corrected(problem, _closed(problem, EP.name, model.names, options))
    yield epc
    isusp = _closed(problem, ISusP.name, model.names, options)
    if not first and (epc.converged or isusp.converged) and _pair_moments(model) <= PAIR_MOMENTS:
        yield _paired(problem, model, options)
    yield isusp
    yield _closed(problem, Tap3.name, model.names, options)


def _best(tried: list[Inference]) -> Inference:
    """Of results that all warn: whichever found several modes, else the one that expects the smallest error."""
    solved = [result for result in tried if result.converged]
    if not solved:
        return next(result for result in tried if result.method == EPC)
    several = [result for result in solved if result.status is Status.SEVERAL_MODES]
    chosen = several[0] if several else min(solved, key=lambda result: result.expected_error)
    broken = [result for result in tried if not result.converged]
    return _mentioning(chosen, broken[0]) if broken else chosen


def _mentioning(result: Inference, other: Inference) -> Inference:
    said = f"{other.method} was tried, too, with this outcome: {other.status.value}"
    return replace(result, detail="; ".join(filter(None, (result.detail, said))))


def _exact_is_cheap(model: NNBM) -> bool:
    """Three variables at most, or a forest of moderate size."""
    if model.n <= 3:
        return True
    edges = model.edges[0].size
    if edges >= model.n or model.n > _EXACT_VARIABLES:
        return False
    return edges == model.n - connected_components(model.coupling, directed=False, return_labels=False)


@dataclass(frozen=True)
class _Known:
    found: Exact

    def covariance(self) -> FloatArray | None:
        return self.found.covariance

    def log_partition(self) -> float | None:
        return self.found.log_partition

    def susceptibilities(self) -> Susceptibilities | None:
        return None


def _exactly(model: NNBM) -> Inference:
    found = exact(model)
    return Inference("exact", model.names, Status.CONVERGED, found.mean, found.variance, 0.0, _Known(found))


def _complain(result: Inference, throw: bool) -> None:
    """Nothing unreliable is returned silently."""
    if result.status.reliable:
        return
    message = f"{result.method}: {result.status.value}"
    if result.status is Status.INACCURATE:
        message += f" (means or standard deviations may be off by {result.expected_error:.2g} standard deviations)"
    if result.detail:
        message += f". {result.detail[0].upper()}{result.detail[1:]}"
    if throw and result.status in _RAISES:
        raise NotConverged(f"{message}. The partial result is in this error's `result`.", result)
    warnings.warn(f"{message}.", UnreliableWarning, stacklevel=3)

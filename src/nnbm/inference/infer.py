"""infer(model): means, covariances and ln Z without sampling, by whichever method."""

from __future__ import annotations

import warnings
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
METHODS = ("auto", *_CLOSED, EPC, "downs", "exact")
_DENSE_VARIABLES = 10_000
_EXACT_VARIABLES = 100  # of a forest: a few seconds
_RAISES = (Status.NOT_CONVERGED, Status.UNSTABLE, Status.NO_SITE)


def infer(model: NNBM, method: str = "auto", *, throw: bool = True, options: Options | None = None) -> Inference:
    """Means, variances, covariances and ln Z of the model.

    method: "auto" (default), "exact" (n <= 3, forests), "epc" (EP with cumulant corrections), "ep", "isusp" (the
    paper's), "susp", "tap", "isusp3" and "tap3" (one order further), "naive", "downs".
    "auto" is exact where that is cheap, else "epc", or "isusp" where only that exists or only that does not warn.
    options: see `Options`.

    Raises NotConverged, which carries the partial result, where there is no stable solution; throw=False returns it.
    Warns (UnreliableWarning) where a solution is not to be relied on; `status` and `expected_error` say why.

    >>> from nnbm import gallery
    >>> r = infer(gallery.square_grid(6, 6, coupling=0.4))
    >>> r
    Inference(epc, n=36, converged, to 0.003 sd)
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
    return _closed(problem_of(model), method, model.names, options)


def _closed(problem: Problem, method: str, names: tuple[str, ...], options: Options) -> Inference:
    """A closure's result; of one that finds no modes although there are several, with naive mean field's."""
    result = infer_closed(problem, _CLOSED[method], names, options)
    troubled = result.status in (Status.UNSTABLE, Status.SEVERAL_MODES) and not result.alternatives
    if not troubled or method == "naive":
        return result
    # the crudest method survives deepest into the regime of several modes: it tells at least where they lie
    modes = infer_closed(problem, _CLOSED["naive"], names, options)
    return replace(result, alternatives=(modes, *modes.alternatives)) if modes.converged else result


def problem_of(model: NNBM) -> Problem:
    """The model in the form that mean-field methods work on."""
    off = np.array(model.coupling) if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()
    diagonal = np.diagonal(off).copy()
    np.fill_diagonal(off, 0.0)
    return Problem(model.bias, diagonal, off, model.site)


def _automatic(model: NNBM, options: Options) -> Inference:
    """Exact, or EP with its cumulant correction, or I-SusP where that is reliable and the other is not."""
    if _exact_is_cheap(model):
        # a ridge too narrow for quadrature is no reason to give up
        with suppress(ValueError, RuntimeError):
            return _exactly(model)
    problem = problem_of(model)
    epc = corrected(problem, _closed(problem, EP.name, model.names, options))
    isusp = _closed(problem, ISusP.name, model.names, options)
    if not (epc.converged and isusp.converged):
        better, other = (isusp, epc) if isusp.converged else (epc, isusp)
        return better if better.status.reliable else _mentioning(better, other)
    for result in (epc, isusp):
        if result.status is Status.SEVERAL_MODES:  # whichever found them
            return result
    return isusp if isusp.status.reliable and not epc.status.reliable else epc


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

"""Pairwise expectation consistency (EQ 13): two-variable marginals that agree with one Gaussian on every edge.

The free energy is `pair_entropy`'s; here it is minimised, from another method's solution or by switching the couplings
on, and its minimum is judged. Opper & Winther, JMLR 6 (2005) 2177, with pairs instead of single variables or a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.closed import ACCURATE, Others, other_solutions, starts, where_it_ends
from nnbm.inference.convex import only_mode
from nnbm.inference.ep import EP
from nnbm.inference.pair_entropy import PairPoint
from nnbm.inference.pair_state import Edges, PairState
from nnbm.inference.problem import Point, Problem, Sweep
from nnbm.inference.result import Inference, Known, Status
from nnbm.inference.solver import Options, follow, iterate
from nnbm.inference.tap3 import Tap3

__all__ = ["MOMENTS", "NAME", "infer_pairs"]

NAME = "pairs"
MOMENTS = 3000  # 2n + E, up to which the (2n + E)² Hessian is made
_OF_INCONSISTENCY = 1.5  # no error was larger than so much of it, see decisions
_ROUGHLY = 1e-2  # the residual to which solutions for weaker couplings are followed


@dataclass(frozen=True)
class _Branch:
    """The minimum at t = `reached` of the couplings."""

    point: PairPoint
    reached: float
    history: tuple[float, ...]


class _Newton:
    """One step after another; the latest point is kept."""

    def __init__(self, problem: Problem, edges: Edges) -> None:
        self._problem, self._edges = problem, edges
        self.point: PairPoint | None = None

    def __call__(self, y: FloatArray) -> tuple[FloatArray, float] | None:
        found = PairPoint.at(self._problem, self._edges, PairState.from_vector(y, self._problem.bias.size))
        if found is None:
            return None
        self.point = found
        return found.move


def infer_pairs(problem: Problem, names: tuple[str, ...], options: Options) -> Inference:
    """The minimum of (13.1), and what else there is."""
    edges = Edges.of(problem.off)
    branch = _main_branch(problem, edges, options)
    arrived = branch.reached == 1.0
    others = _others(problem, edges, branch.point, options) if arrived else Others[PairPoint]((), 0, ())
    history = branch.history + others.history
    if not arrived:
        broken = Status.UNSTABLE if branch.reached > 0.0 else Status.NOT_CONVERGED
        return replace(_result(branch.point, names, broken), history=history, detail=where_it_ends(branch.reached))
    if not others.basins:
        return replace(_result(branch.point, names), history=history)
    solutions = sorted((branch.point, *others.found), key=lambda point: -point.log_partition)
    best, *rest = [_result(point, names, Status.SEVERAL_MODES) for point in solutions]
    detail = f"{len(solutions)} stable solution(s) and {others.basins} other basin(s) were found"
    return replace(best, history=history, alternatives=tuple(rest), detail=detail)


def _result(point: PairPoint, names: tuple[str, ...], status: Status | None = None) -> Inference:
    """The result at a point; without a `status` its expected error decides."""
    covariance = point.covariance
    error = _expected_error(point, covariance) if status is None else np.inf
    return Inference(
        method=NAME,
        names=names,
        status=status or (Status.CONVERGED if error <= ACCURATE else Status.INACCURATE),
        mean=point.mean,
        variance=np.diagonal(covariance).copy(),
        expected_error=error,
        derived=Known(covariance, point.log_partition),
        l=point.sites.l,
        r=point.sites.r,
    )


def _expected_error(point: PairPoint, covariance: FloatArray) -> float:
    """From how far the response dm/db is off the marginals' own (co)variances, which the method keeps consistent.

    Of the density itself the two are the same. The response is what is returned: it is several times closer.
    """
    s, i, j = point.variance, point.edges.first, point.edges.second
    of_spreads = 0.5 * np.abs(np.diagonal(covariance) / s - 1.0)
    of_pairs = np.abs(covariance[i, j] - point.covariances) / np.sqrt(s[i] * s[j])
    return _OF_INCONSISTENCY * float(max(of_spreads.max(), of_pairs.max(initial=0.0)))


def _others(problem: Problem, edges: Edges, solution: PairPoint, options: Options) -> Others[PairPoint]:
    """Other minima, looked for where relaxations of sites with these means lead."""
    l, r = problem.site.from_mean_variance(solution.mean, solution.narrowed)
    main = Point(problem, l, r, problem.site.moments(l, r))
    if only_mode(problem, main):
        return Others((), 0, ())

    def solve(basin: Point) -> tuple[PairPoint | None, bool, tuple[float, ...]]:
        newton = _Newton(problem, edges)
        found = iterate(newton, PairState.suggested(basin, edges).vector, replace(options, memory=0))
        return newton.point if found.converged else None, found.converged, found.history

    return other_solutions(problem, main, solution, solve)


def _main_branch(problem: Problem, edges: Edges, options: Options) -> _Branch:
    """From a solution nearby; if there is none, or it leads nowhere, by switching the couplings on bit by bit."""
    plain = replace(options, memory=0)  # Newton's steps are not to be mixed
    history: tuple[float, ...] = ()
    for near in _nearby(problem, options):
        newton = _Newton(problem, edges)
        found = iterate(newton, PairState.suggested(near, edges).vector, plain)
        history += found.history
        if found.converged and newton.point is not None:
            return _Branch(newton.point, 1.0, history)
    state = PairState.suggested(problem.weakened(0.0).point(problem.uncoupled), edges)
    for tolerance in (max(_ROUGHLY, plain.tolerance), plain.tolerance):
        step = replace(plain, tolerance=tolerance)
        path = follow(lambda t: _Newton(problem.weakened(t), edges), state.vector, step)
        newton = _Newton(problem.weakened(path.reached), edges)
        found = iterate(newton, path.outcome.y, plain)
        history += path.outcome.history + found.history
        if found.converged and newton.point is not None:
            return _Branch(newton.point, path.reached, history)
    alone = PairPoint.at(problem.weakened(0.0), edges, state)
    assert alone is not None  # noqa: S101 (independent sites always exist; for the type checker)
    return _Branch(alone, 0.0, history)


def _nearby(problem: Problem, options: Options) -> Iterator[Point]:
    """Solutions of EP and, where there is none, of third order."""
    for closure in (EP(), Tap3()):
        for start in starts(problem):
            sweep = Sweep(problem, closure)
            if iterate(sweep, start, options).converged and sweep.point is not None:
                yield sweep.point
                break

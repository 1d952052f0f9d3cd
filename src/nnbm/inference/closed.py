"""Running a closure: where to start, how to stay on the stable branch, other solutions, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.accuracy import expected_error
from nnbm.inference.convex import only_mode
from nnbm.inference.problem import Closure, Point, Problem, Sweep
from nnbm.inference.response import Susceptibilities
from nnbm.inference.result import Inference, Status
from nnbm.inference.solver import Options, Outcome, follow, iterate

__all__ = ["ACCURATE", "ClosedMethod", "Others", "infer_closed", "other_solutions", "starts", "where_it_ends"]

ACCURATE = 0.04  # expected error, in standard deviations, up to which a result passes without a warning
_APART = 0.1  # standard deviations between two solutions that are not the same
_EXPLORED = 1.0  # how far, in standard deviations, a relaxation must come to be worth a solve
_RETURNED = 0.1  # how close to the stable solution a relaxation must be to end there
_SIGHT = 40.0  # standard deviations beyond which no float tells an end
_END = 5.0  # how far, in standard deviations of a variable alone, its ends are looked for
_RELAXATIONS = 40
_KEPT = 300  # up to so many variables a result keeps the factors that its verdict has made


class ClosedMethod(Closure, Protocol):
    """A closure with what follows from its solution."""

    name: str

    def stable(self, point: Point) -> bool:
        """Whether the solution is a minimum of the method's free energy."""
        ...

    def covariance(self, _: Point, /) -> FloatArray | None:
        """(n, n), or None."""
        ...

    def free_energy(self, point: Point) -> float:
        """What ranks several solutions of one method."""
        ...

    def log_partition(self, point: Point) -> float | None:
        """ln Z, or None."""
        ...

    def susceptibilities(self, _: Point, /) -> Susceptibilities | None:
        """(M, V, L, R), or None."""
        ...


@dataclass(frozen=True)
class _FromPoint:
    """What follows from a solution (see `result.Derived`)."""

    method: ClosedMethod
    point: Point

    def covariance(self) -> FloatArray | None:
        return self.method.covariance(self.point)

    def log_partition(self) -> float | None:
        return self.method.log_partition(self.point)

    def susceptibilities(self) -> Susceptibilities | None:
        return self.method.susceptibilities(self.point)


@dataclass(frozen=True)
class _Branch:
    """The solution continued from independent sites, as far as it is stable: t = `reached` of the couplings."""

    point: Point
    reached: float
    history: tuple[float, ...]


def infer_closed(problem: Problem, method: ClosedMethod, names: tuple[str, ...], options: Options) -> Inference:
    """The method's solution on the branch that starts at independent sites, and what else there is."""
    branch = _main_branch(problem, method, options)
    arrived = branch.reached == 1.0 and method.stable(branch.point)
    if only_mode(problem, branch.point):
        others = Others[Point]((), 0, ())
    else:

        def solve(basin: Point) -> tuple[Point | None, bool, tuple[float, ...]]:
            outcome: Outcome = iterate(Sweep(problem, method), problem.state(basin.l, basin.r), options)
            solution = problem.point(outcome.y) if outcome.converged else None
            return solution, solution is not None and method.stable(solution), outcome.history

        others = other_solutions(problem, branch.point, branch.point, solve)
    history = branch.history + others.history
    if arrived and not others.basins:
        return _result(method, branch.point, names, history=history)
    solutions = sorted(((branch.point,) if arrived else ()) + others.found, key=method.free_energy)
    if not solutions:
        broken = Status.UNSTABLE if branch.reached > 0.0 else Status.NOT_CONVERGED
        return replace(
            _result(method, branch.point, names, broken), history=history, detail=where_it_ends(branch.reached)
        )
    best, *rest = [_result(method, point, names, Status.SEVERAL_MODES) for point in solutions]
    detail = f"{len(solutions)} stable solution(s) and {others.basins} other basin(s) were found"
    return replace(
        best,
        history=history,
        alternatives=tuple(rest),
        detail=detail if arrived else f"{detail}; {where_it_ends(branch.reached)}",
    )


def where_it_ends(reached: float) -> str:
    """The sentence about t = `reached`."""
    return (
        f"the stable solution that starts at independent variables ends when {reached:.0%} of the couplings "
        "are switched on"
    )


def _main_branch(problem: Problem, method: ClosedMethod, options: Options) -> _Branch:
    """Straight from independent sites; if that fails, by switching the couplings on bit by bit."""
    history: tuple[float, ...] = ()
    for start in starts(problem):
        sweep = Sweep(problem, method)
        found = iterate(sweep, start, options)
        history += found.history
        if found.converged and sweep.point is not None:
            return _Branch(sweep.point, 1.0, history)  # the latest point is the solution
    path = follow(lambda t: Sweep(problem.weakened(t), method), problem.uncoupled, options)
    point = problem.weakened(path.reached).point(path.outcome.y)
    return _Branch(point, path.reached, history + path.outcome.history)


def starts(problem: Problem) -> Iterator[FloatArray]:
    """Independent sites, and if these lead nowhere fields that are nearer."""
    yield problem.uncoupled
    yield _relaxed(problem)


def _relaxed(problem: Problem) -> FloatArray:
    """(2n,) a few damped rounds of naive mean field: fields near the solution's, as symmetric as the model."""
    l = problem.bias
    for _ in range(6):
        mean = problem.site.moments(l, problem.diagonal).mean
        l = 0.5 * (l + problem.bias - problem.off @ mean)
    return problem.state(l, problem.diagonal)


class _Moments(Protocol):
    """Whatever has means and variances (n,)."""

    @property
    def mean(self) -> FloatArray: ...

    @property
    def variance(self) -> FloatArray: ...


_Solution = TypeVar("_Solution", bound=_Moments)


@dataclass(frozen=True)
class Others(Generic[_Solution]):
    """Stable solutions apart from the main one, the number of basins they were looked for in, and the residuals."""

    found: tuple[_Solution, ...]
    basins: int
    history: tuple[float, ...]


def other_solutions(
    problem: Problem,
    main: Point,
    solution: _Solution,
    solve: Callable[[Point], tuple[_Solution | None, bool, tuple[float, ...]]],
) -> Others[_Solution]:
    """What relaxations at the r of `main`, the sites of a `solution`, started apart from it, lead to.

    solve: the solution that a basin leads to or None, whether it is stable, and the residuals on the way. A basin
    counts even where the method has no solution in it: it may be a mode that the method cannot describe.
    """
    basins: list[Point] = []
    found: list[_Solution] = []
    history: tuple[float, ...] = ()
    for l in _relaxed_apart(problem, main):
        basin = problem.point(problem.state(l, main.r))
        if min(_distance(basin, other) for other in [main, *basins]) < _EXPLORED:
            continue
        basins.append(basin)
        reached, stable, residuals = solve(basin)
        history += residuals
        if reached is not None:
            if min(_distance(reached, other) for other in [solution, *found]) < _APART:
                basins.pop()  # it led back
            elif stable:
                found.append(reached)
    return Others(tuple(found), len(basins), history)


def _relaxed_apart(problem: Problem, main: Point) -> FloatArray:
    """(starts, n) fields l of EQ 5.1 at the r and the field h of `main`, relaxed from starting means that lie apart.

    Ends early when all have come back to a `main` that solves this problem, and not one of weaker couplings.
    """
    back, bias = problem.diagonal - main.r, problem.bias + main.field_error
    mean, near = _starts_apart(problem, main), _RETURNED * np.sqrt(main.variance)
    l = bias - mean @ problem.off - back * mean
    for _ in range(_RELAXATIONS):
        mean = problem.site.moments(l, main.r).mean
        l = 0.5 * (l + bias - mean @ problem.off - back * mean)
        if main.problem is problem and (np.abs(mean - main.mean) < near).all():
            break
    return l


def _starts_apart(problem: Problem, main: Point) -> FloatArray:
    """(6, n) means: both ways along the softest mode of `main`; half of the variables at one end, half at the other.

    Of a single end the other is the mean as if alone; from that, ends count up to `_END` standard deviations.
    """
    _, vectors = np.linalg.eigh(problem.off + np.diag(problem.diagonal - main.r + 1.0 / main.variance))
    soft = 3.0 * np.sqrt(main.variance) * vectors[:, 0] / np.abs(vectors[:, 0]).max()
    rng = np.random.default_rng(0)
    halves = np.stack([rng.permutation(main.mean.size) % 2 == 0 for _ in range(2)])
    low, high = problem.site.lower, problem.site.upper
    alone = problem.site.moments(problem.bias, problem.diagonal)
    reach, end = _END * np.sqrt(alone.variance), problem.single_end(alone, _SIGHT)
    one_end = np.where(np.isfinite(end), alone.mean, np.minimum(high, alone.mean + reach))
    other_end = np.where(np.isfinite(end), end, np.maximum(low, alone.mean - reach))
    starts = np.concatenate(
        [[main.mean + soft, main.mean - soft], np.where(np.concatenate([halves, ~halves]), one_end, other_end)]
    )
    return np.clip(starts, low, high)


def _distance(one: _Moments, other: _Moments) -> float:
    """Largest difference of means in units of the larger standard deviation."""
    return float((np.abs(one.mean - other.mean) / np.sqrt(np.maximum(one.variance, other.variance))).max())


def _result(
    method: ClosedMethod,
    point: Point,
    names: tuple[str, ...],
    status: Status | None = None,
    history: tuple[float, ...] = (),
) -> Inference:
    """The result at a point; without a `status` its expected error decides."""
    # of a result that is not to be relied on nothing is known
    error = expected_error(point) if status is None else np.inf
    return Inference(
        method=method.name,
        names=names,
        status=status or (Status.CONVERGED if error <= ACCURATE else Status.INACCURATE),
        mean=point.mean,
        variance=point.variance,
        expected_error=error,
        derived=_FromPoint(method, point if point.l.size <= _KEPT else replace(point)),
        history=history,
        l=point.l,
        r=point.r,
    )

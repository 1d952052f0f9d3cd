"""Exact Hamiltonian Monte Carlo with walls, for positive definite W (Pakman & Paninski 2014).

With momenta of mass W all frequencies are 1: between walls x(t) = mu + v sin t + (x - mu) cos t, mu = W⁻¹ b, and the
velocities are draws from N(0, Σ), Σ = W⁻¹. At a wall of x_i the momentum's component turns round, v -= 2 (v_i / Σ_ii)
Σ_i. Nothing is approximated, so nothing is ever refused but for trajectories of absurdly many bounces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.copositive import Verdict
from nnbm.draw import normal
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.products import SUM, dot, multiply
from nnbm.sampling.protocol import Chain
from nnbm.sampling.rows import apart
from nnbm.stream import Seed, StreamArray, load, store, streams, uniform

__all__ = ["HMC"]

_MOST_VARIABLES = 5_000  # Σ is dense
_MOST_BOUNCES = 1_000  # per variable; the way back has as many, so refusing such trajectories keeps the law
_ROOT_2 = math.sqrt(2.0)
_NO_WALL = 5.0


@kernel(error_model="numpy", fastmath=SUM)
def _earliest(away: FloatArray, v: FloatArray, low: FloatArray, high: FloatArray, turns: FloatArray) -> float:
    """Into turns (n,): how far each variable is from its next wall; returns the least.

    A place t on the circle is measured by sin t up to an eighth of a turn, by sqrt 2 - cos t up to a half, and then by
    sqrt 2 + 2 + cos t: that rises with t, takes no trigonometry, and `_time` makes t of it. away = x - mu, low and
    high: the ends - mu.
    """
    least = _NO_WALL
    for i in range(away.size):
        a, b = v[i], away[i]
        square = a * a + b * b
        c, d = low[i], high[i]
        # where r cos(t - phi) falls through c, and where it rises through d
        inner = square - c * c
        s = math.sqrt(max(inner, 0.0))
        cos, sin = (c * b - a * s) / square, (c * a + b * s) / square
        down = (sin if cos > sin else _ROOT_2 - cos) if sin >= 0.0 else _ROOT_2 + 2.0 + cos
        down = down if inner > 0.0 or c > 0.0 else _NO_WALL
        down = 0.0 if b <= c and a < 0.0 else down  # rounding has put it on its wall, or behind
        inner = square - d * d
        s = math.sqrt(max(inner, 0.0))
        cos, sin = (d * b + a * s) / square, (d * a - b * s) / square
        up = (sin if cos > sin else _ROOT_2 - cos) if sin >= 0.0 else _ROOT_2 + 2.0 + cos
        up = up if inner > 0.0 or d < 0.0 else _NO_WALL
        up = 0.0 if b >= d and a > 0.0 else up
        turns[i] = min(down, up)
        least = min(least, turns[i])
    return least


@kernel()
def _time(turn: float) -> float:
    """The t that `_earliest` measured, inf for none."""
    if turn >= _NO_WALL:
        return math.inf
    if turn < 0.5 * _ROOT_2:
        return math.asin(turn)
    if turn < _ROOT_2 + 1.0:
        return math.acos(max(_ROOT_2 - turn, -1.0))
    return 2.0 * math.pi - math.acos(min(turn - _ROOT_2 - 2.0, 1.0))


@kernel(fastmath=SUM)
def _turn(away: FloatArray, v: FloatArray, cos: float, sin: float) -> None:
    """Go on by t along the circle."""
    for i in range(v.size):
        ahead = cos * away[i] + sin * v[i]
        v[i] = cos * v[i] - sin * away[i]
        away[i] = ahead


@kernel(fastmath=SUM)
def _reflect(row: FloatArray, i: int, v: FloatArray) -> None:
    """Turn the momentum's i-th component round; row = Σ_i."""
    twice = 2.0 * v[i] / row[i]
    for j in range(v.size):
        v[j] -= twice * row[j]


@kernel(error_model="numpy")
def _bounce_along(
    length: float, covariance: FloatArray, low: FloatArray, high: FloatArray, away: FloatArray, v: FloatArray,
    turns: FloatArray,
) -> int:  # fmt: skip
    """Move by a time `length`; how many bounces it took, -1 if too many."""
    most, left = _MOST_BOUNCES * v.size, length
    for bounces in range(most):
        least = _earliest(away, v, low, high, turns)
        time = _time(least)
        if not time < left:
            _turn(away, v, math.cos(left), math.sin(left))
            return bounces
        i = 0
        while turns[i] != least:
            i += 1
        _turn(away, v, math.cos(time), math.sin(time))
        away[i] = low[i] if v[i] < 0.0 else high[i]
        _reflect(covariance[i], i, v)
        left -= time
    return -1


@kernel(error_model="numpy")
def _draws(
    mean: FloatArray, covariance: FloatArray, factor: FloatArray, lower: FloatArray, upper: FloatArray, length: float,
    x: FloatArray, row: StreamArray, sweeps: int, draws: FloatArray, tally: FloatArray,
) -> None:  # fmt: skip
    """Fill draws (count, n), each after `sweeps` trajectories; tally (3,): trajectories, bounces, refusals."""
    n, stream = x.size, load(row)
    room = np.empty((4, n))
    xi, v, away, turns = room[0], room[1], room[2], room[3]
    low, high = lower - mean, upper - mean
    for count in range(draws.shape[0]):
        for _ in range(sweeps):
            for i in range(n):
                xi[i], stream = normal(stream)
            multiply(factor, xi, v)
            away[:] = x - mean
            u, stream = uniform(stream)
            # of one length they fall in step with the bounces of a variable that is pressed to its wall
            bounces = _bounce_along(length * (0.5 + u), covariance, low, high, away, v, turns)
            if not abs(dot(away, away)) < np.inf:
                x[:] = np.nan
            elif bounces >= 0:
                for i in range(n):
                    x[i] = min(max(mean[i] + away[i], lower[i]), upper[i])
            tally[0] += 1.0
            tally[1] += max(bounces, 0)
            tally[2] += 1.0 if bounces < 0 else 0.0
        draws[count] = x
    store(stream, row)


@dataclass(frozen=True)
class _Chain:
    model: NNBM
    exact: _Gaussian
    length: float
    x: FloatArray
    row: StreamArray
    tally: FloatArray

    def run(self, sweeps: int, draws: FloatArray) -> None:
        law, lower, upper = self.exact, self.model.lower, self.model.upper
        _draws(
            law.mean, law.covariance, law.factor, lower, upper, self.length, self.x, self.row, sweeps, draws, self.tally
        )

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"x": self.x, "stream": self.row, "tally": self.tally}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.x[:], self.row[:], self.tally[:] = state["x"], state["stream"], state["tally"]

    def info(self) -> Mapping[str, float | FloatArray]:
        trajectories = max(self.tally[0], 1.0)
        return {"bounces": self.tally[1] / trajectories, "refused": self.tally[2] / trajectories}


@dataclass(frozen=True)
class HMC:
    """Exact Hamiltonian Monte Carlo; a sweep is one trajectory of a time around `length`, n operations a bounce.

    For positive definite W, dense algebra, any ends. length: the mean, in units in which every frequency is 1; times
    are uniform within half of it. pi/2, a quarter of a period, forgets most where no wall is met. `Samples.info` tells
    the mean number of bounces of a trajectory, and the share of trajectories refused for having too many.

    >>> from nnbm import gallery, sample
    >>> s = sample(gallery.square_grid(6, 6, coupling=0.2), draws=1000, method=HMC(), seed=0)
    >>> float(s.info["refused"].max())
    0.0
    """

    length: float = math.pi / 2
    name = "hmc"

    def __post_init__(self) -> None:
        if not 0.0 < self.length < np.inf:
            raise ValueError(f"length: a positive, finite time is meant, but length = {self.length}.")

    def chains(self, model: NNBM, starts: FloatArray, seed: Seed, threads: int) -> Sequence[Chain]:  # noqa: ARG002
        """One chain per row of `starts` (chains, n)."""
        exact, count = _Gaussian.of(model), starts.shape[0]
        own = zip(apart(starts), apart(streams(seed, count)), apart(np.zeros((count, 3))), strict=True)
        return [_Chain(model, exact, self.length, x, row, tally) for x, row, tally in own]


@dataclass(frozen=True)
class _Gaussian:
    """The law without walls: mean (n,), covariance (n, n), and a factor A with A A' = covariance."""

    mean: FloatArray
    covariance: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, model: NNBM) -> Self:
        """A model's, or an error that says why there is none."""
        if model.n > _MOST_VARIABLES:
            raise ValueError(
                f"method: hmc holds two dense matrices (n, n), and takes at most {_MOST_VARIABLES} variables, but the "
                f'model has {model.n}. Take method="fields" or "gibbs".'
            )
        w = model.coupling if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()
        try:
            lower = np.linalg.cholesky(w)
        except np.linalg.LinAlgError:
            lower = None
        known = model.copositivity.verdict is Verdict.POSITIVE_DEFINITE
        if lower is None or not (known or _is_safe(lower)):
            raise ValueError(
                "method: hmc needs a positive definite coupling: its trajectories turn about W⁻¹ b, and this one "
                f'has no such centre, but the model is {model!r}. Take method="fields", which is collective for any '
                'model, or "gibbs".'
            )
        inverse = np.linalg.inv(lower)
        covariance = inverse.T @ inverse
        return cls(covariance @ model.bias, 0.5 * (covariance + covariance.T), np.ascontiguousarray(inverse.T))


def _is_safe(lower: FloatArray) -> bool:
    """Whether pivots are beyond rounding."""
    pivots, rows = np.diagonal(lower), np.sqrt(np.square(lower).sum(axis=1))
    return bool((pivots > 1e-6 * rows).all())

"""How trajectories in the fields are tuned: a pilot finds soft directions, the step, and the length that pays best.

The work of the pilot is counted in operations, not seconds, so that it ends alike on any machine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from nnbm.arrays import FloatArray
from nnbm.copositive import Verdict
from nnbm.model import NNBM
from nnbm.sampling.field_chain import FieldChain, Plan
from nnbm.sampling.field_dynamics import Soft, walls_of
from nnbm.sampling.gibbs import Gibbs
from nnbm.sampling.split import Split, product_with, split
from nnbm.stream import StreamArray, streams

__all__ = ["soft_directions", "tuned"]

_SWEEPS = 200  # of Gibbs sampling before anything is measured
_STATES = 400  # over which the curvature is averaged
_MOST_STEPS, _MOST_WORK = 400_000, 1_500_000_000  # of the pilot: 0.1 s at n = 36, about a second for large models
_PER_SITE = 30  # a mean and its share of a step cost as much as so many products
_ACCEPTED = 0.95  # share of short trajectories; of long ones then some 0.9
_LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_OVERHEAD = 15  # steps that drawing fields and x costs as much as
_FEWEST = 24  # trajectories from which a length is judged
_SOFT, _MOST_SOFT = 0.6, 16  # curvature, in units of its average, below which a direction is soft
_WATCHED = 4  # of the softest directions: the worst of many is the noisiest
_FASTEST = 4.0  # speed-up where W is not positive definite: a mode's curvature says little beyond it
_FASTEST_CONVEX = 100.0
_ALL_EIGENVALUES = 500  # variables up to which all directions are looked at


def tuned(model: NNBM, start: FloatArray, seed: np.random.SeedSequence, length: int | None) -> Plan:
    """The plan for chains that begin near `start` (n,); `length` as asked for, or by what the pilot sees."""
    part, rows = split(model), streams(seed, 2)
    nobody = np.empty((0, model.n))
    walls, none = walls_of(part.curvature, model.lower, model.upper), Soft(nobody, nobody, np.empty(0))
    step = 0.8 * min(1.0, (36.0 / model.n) ** 0.25)  # errors of H add up over the variables
    plain = Plan(model.bias, part, walls, none, step, 16 if length is None else length)
    x = _settled(model, start, seed)
    if not np.isfinite(x).all():
        return plain  # the chains will run away, too, and be told so
    work = (part.matrix.size or part.weights.size) + _PER_SITE * model.n
    steps = min(_MOST_STEPS, _MOST_WORK // work)
    chain = _with_step(FieldChain.of(plain, x, rows[1]), steps // 10)
    states = _states(chain, steps // 5)
    if not np.isfinite(states).all():
        return plain
    directions, curvatures, average = soft_directions(model, part, states, rows[0])
    soft = _sped_up(model, part, directions, curvatures, average)
    chain = _with_step(replace(chain, plan=replace(chain.plan, soft=soft)), steps // 5)
    if length is None:
        slow = directions[: min(max(2, soft.speedup.size), _WATCHED)]
        chain = _with_length(chain, product_with(part, slow.T), steps // 2)
    return replace(chain.plan, length=length or chain.plan.length)


def _settled(model: NNBM, start: FloatArray, seed: np.random.SeedSequence) -> FloatArray:
    """(n,) the last of some Gibbs sweeps from `start`."""
    work = np.size(model.coupling.data) + _PER_SITE * model.n
    out = np.empty((1, model.n))
    Gibbs().chains(model, start[None], seed, 1)[0].run(max(4, min(_SWEEPS, _MOST_WORK // (4 * work))), out)
    return out[0]


def _states(chain: FieldChain, steps: int) -> FloatArray:
    """(states, n) of trajectories that see as much of the density as `steps` allow: a bump must turn, for instance."""
    length = max(each for each in _LENGTHS if each == _LENGTHS[0] or each * _FEWEST <= steps)
    draws = np.empty((2 * max(2, min(_STATES // 2, steps // (2 * length))), chain.x.size))
    replace(chain, plan=replace(chain.plan, length=length)).run(1, draws)
    return draws


def soft_directions(
    model: NNBM, part: Split, states: FloatArray, row: StreamArray
) -> tuple[FloatArray, FloatArray, float]:
    """Directions a (k, n) with a_i'C a_j = delta_ij, softest first, their curvatures 1 - a'C S C a, and the average.

    S (n,) is the sites' average variance given the fields at `states`; R a is an eigenvector of 1 - R S R'.
    """
    fields = model.bias + product_with(part, states.T).T + part.noise_rows(states.shape[0] // 2, row)
    root = np.sqrt(model.site.moments(fields, part.curvature).variance.mean(axis=0))
    own = root * root * part.own
    average = 1.0 - float(own.mean())
    if model.n <= _ALL_EIGENVALUES:
        c = part.matrix if part.matrix.size else sparse.csr_array(product_with(part, np.eye(model.n))).toarray()
        values, vectors = np.linalg.eigh(c * root * root[:, None])
    else:
        operator = LinearOperator(
            (model.n, model.n), lambda g: root * product_with(part, root * np.ravel(g)), dtype=float
        )
        begin = np.random.default_rng(0).normal(size=model.n)
        values, vectors = eigsh(operator, k=4, which="LA", v0=begin, tol=1e-3)
    order = np.argsort(-values)[:_MOST_SOFT]
    values, vectors = values[order], vectors[:, order]
    keep = values > 1e-9
    return (root[:, None] * vectors[:, keep] / np.sqrt(values[keep])).T.copy(), 1.0 - values[keep], average


def _sped_up(model: NNBM, part: Split, a: FloatArray, curvatures: FloatArray, average: float) -> Soft:
    """Those soft enough to be worth a mass of their own, average over own curvature as far as one may trust it."""
    fastest = _FASTEST_CONVEX if model.copositivity.verdict is Verdict.POSITIVE_DEFINITE else _FASTEST
    soft = curvatures < _SOFT * average
    if average <= 0.0:
        soft[:] = False
    speedup = average / np.maximum(curvatures[soft], average / fastest) if soft.any() else np.empty(0)
    return Soft(a[soft].copy(), np.ascontiguousarray(product_with(part, a[soft].T).T), speedup)


def _with_step(chain: FieldChain, steps: int) -> FieldChain:
    """The step at which about _ACCEPTED of all trajectories are accepted, by Robbins and Monro's rule."""
    length, block = 16, 10
    out = np.empty((1, chain.x.size))
    rounds = max(4, min(40, steps // (length * block)))
    block = max(1, min(block, steps // (length * rounds)))
    logs = []
    for k in range(rounds):
        chain = replace(chain, plan=replace(chain.plan, length=length), tally=np.zeros(3))
        chain.run(block, out)
        accepted = chain.tally[1] / chain.tally[0]
        logs.append(np.log(chain.plan.step) + 1.5 * (accepted - _ACCEPTED) / (1.0 + k) ** 0.6)
        chain = replace(chain, plan=replace(chain.plan, step=float(min(np.exp(logs[-1]), 1.2))))
    settled = float(min(np.exp(np.mean(logs[len(logs) // 2 :])), 1.2))
    return replace(chain, plan=replace(chain.plan, step=settled))


def _with_length(chain: FieldChain, features: FloatArray, steps: int) -> FieldChain:
    """The length with most independent values of the slowest feature x'features (n, k) for the work."""
    share = steps // len(_LENGTHS)
    lengths = [each for each in _LENGTHS if share >= _FEWEST * each]
    if not lengths or features.shape[1] == 0:
        return replace(chain, plan=replace(chain.plan, length=16))
    seen = []
    for each in lengths:  # of a chain that runs away nothing is learned; the run itself will say so
        draws = np.empty((share // each, chain.x.size))
        chain = replace(chain, plan=replace(chain.plan, length=each))
        chain.run(1, draws)
        with np.errstate(all="ignore"):
            seen.append(draws @ features)
    with np.errstate(all="ignore"):
        pooled = np.concatenate(seen).var(axis=0)
    if not (np.isfinite(pooled) & (pooled > 0.0)).all():
        return replace(chain, plan=replace(chain.plan, length=16))
    worth = [_worth(f, pooled) / (each + _OVERHEAD) for each, f in zip(lengths, seen, strict=True)]
    return replace(chain, plan=replace(chain.plan, length=lengths[_peak(np.log(lengths), np.log(worth))]))


def _peak(places: FloatArray, heights: FloatArray) -> int:
    """Where a parabola through the noisy heights (count,) is highest: the largest of them is large by chance, too."""
    if places.size > 3:
        return int(np.argmax(np.polyval(np.polyfit(places, heights, 2), places)))
    return int(np.argmax(heights))


def _worth(features: FloatArray, variance: FloatArray) -> float:
    """Independent values a trajectory gives of the slowest feature, by Geyer's initial positive sums."""
    return 1.0 / max(_persistence(features[:, k], variance[k]) for k in range(features.shape[1]))


def _persistence(feature: FloatArray, variance: float) -> float:
    """1 + 2 sum of the autocorrelations (count,) while neighbours' sums are positive; less than 1 is chance."""
    total, lags = -1.0, feature.size // 4
    for lag in range(0, lags, 2):
        pair = sum(1.0 - np.square(feature[k:] - feature[: feature.size - k]).mean() / (2.0 * variance)
                   for k in (lag, lag + 1))  # fmt: skip
        if pair <= 0.0:
            break
        total += 2.0 * pair
    return max(total, 1.0)

"""Reference answers: ln Z, means and covariances to 1e-10 by quadrature, for a forest or for three variables.

Every connected piece is brought to its own units t_i = +-(x_i - end) root_i, where it reads exp(slope.t - 1/2 t'Vt) on
start <= t <= length: root = sqrt(w_ii) and V_ii = 1, or between two ends whatever makes V_ii <= 1; start is 0, or -inf
for a variable without ends. A tree is then summed over Gauss-Legendre nodes from the leaves to the root; a triangle is
the same with one variable integrated out, by its site, at every pair of nodes.

No mass can hide between the nodes. Marginalising adds a convex function to slope_i t_i - V_ii t_i²/2, so ln p_i never
curves down faster than -1: a peak away from a wall is at least as wide as a unit normal, and the first panels, a few
units long, see it. At a wall p_i may fall faster, but no faster than the slope there; panels shrink towards the wall
until they resolve that. The box that the first panels fill is a bound (`_box`), enlarged where it proves too small.

From then on panels without mass are dropped and panels are halved whose last Legendre coefficients are not small, in
t_i, for the joint density of t_i with each neighbour: those are all the integrands that occur. The answer is what
24 and 32 nodes per panel agree on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from nnbm.arrays import FloatArray, IntArray
from nnbm.model import NNBM
from nnbm.site import site_between

__all__ = ["Exact", "exact"]

_LOCATE, _REFINE, _CONFIRM = 12, 24, 32  # Gauss nodes per panel: to find the mass, to refine, to confirm
_PANEL = 6.0  # longest first panel; 24 nodes resolve a unit normal on it
_GRADE = 8.0  # e-folds on the panel at a wall
_REACH = 12.0  # standard deviations, of a normal at least as wide, from the mode to the end of the box
_EMPTY = 1e-24  # mass of a panel that is dropped
_NEAR = 30.0  # standard deviations from the lower wall within which numbers are relative to that wall
_END = 1e-20  # density at the end of a box that is large enough
_GOALS = (1e-13, 1e-15, 1e-17)  # error of a panel, tried in this order
_TOLERANCE = 1e-10  # between the last two levels
_ENTRIES = 30_000_000  # pairs of neighbours' nodes: 240 MB
_ROUNDS = 40  # halvings of one panel; enlargements of one box


@dataclass(frozen=True)
class Exact:
    """ln Z and the moments of a model; `variance` (n,) is the diagonal of `covariance` (n, n)."""

    log_partition: float
    mean: FloatArray
    variance: FloatArray
    covariance: FloatArray


def exact(model: NNBM) -> Exact:
    """ln Z, means (n,), variances (n,) and covariances (n, n) of EQ 1 for a forest or for n <= 3, by quadrature.

    Errors are below 1e-10, absolute in ln Z and relative to sd_i in <x_i> and to sd_i sd_j in Cov(x_i, x_j), but for
    the rounding of the energy itself (1e-16 of its differences between places that matter). n variables with K nodes
    each cost O(n² K²); K grows with the correlation, as 1 / sqrt(1 - c²) for a pair of correlation c, and with the
    distance between several modes. A ValueError says if that is out of reach (c > 0.9998), or the graph is.

    >>> model = NNBM([1.0, 1.0, 1.0], [[1.0, 2.0, 0.0], [2.0, 1.0, -0.5], [0.0, -0.5, 1.0]])
    >>> found = exact(model)
    >>> round(found.log_partition, 10)
    3.0728034363
    """
    i, j = model.edges
    count, label = connected_components(coo_array((np.ones(i.size), (i, j)), shape=(model.n, model.n)), directed=False)
    if model.n > 3 and i.size > model.n - count:
        raise ValueError(
            "model: exact moments need a graph without cycles or at most 3 variables, but there are "
            f"{model.n} variables and {i.size} edges, {i.size - model.n + count} more than a forest has. "
            "Use another method or sample."
        )
    log_partition, mean, covariance = 0.0, np.empty(model.n), np.zeros((model.n, model.n))
    for members in np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1]):
        found = _connected(model.bias[members], _dense(model, members), model.lower[members], model.upper[members])
        log_partition += found.log_partition
        mean[members] = found.mean
        covariance[np.ix_(members, members)] = found.covariance
    return Exact(log_partition, mean, covariance.diagonal().copy(), covariance)


def _dense(model: NNBM, members: IntArray) -> FloatArray:
    """The couplings among `members`, dense."""
    if isinstance(model.coupling, np.ndarray):
        return model.coupling[np.ix_(members, members)]
    return np.asarray(model.coupling[members][:, members].toarray())


class _Moments(NamedTuple):
    """ln of an integral over several variables, their means (n,) and covariances (n, n)."""

    log_partition: float
    mean: FloatArray
    covariance: FloatArray


class _Piece(NamedTuple):
    """exp(slope.t - 1/2 t'Vt) on start <= t <= length, V_ii <= 1: a connected part of a model in its own units."""

    slope: FloatArray
    unit: FloatArray  # V
    start: FloatArray  # 0, or -inf
    length: FloatArray
    linked: csr_array  # where V_ij is not 0 but for underflow, diagonal included


def _connected(bias: FloatArray, coupling: FloatArray, lower: FloatArray, upper: FloatArray) -> _Moments:
    """ln Z and moments of a connected model."""
    has_lower, width = np.isfinite(lower), upper - lower
    own = coupling.diagonal()
    root = np.sqrt(np.maximum(own, np.where(np.isfinite(width), width, np.inf) ** -2.0))
    # towards the inside from a finite end; a variable that has only an upper one is turned round
    wall = np.where(has_lower, lower, np.where(np.isfinite(upper), upper, 0.0))
    inwards = np.where(~has_lower & np.isfinite(upper), -root, root)
    unit = coupling / np.outer(inwards, inwards)
    unit.flat[:: bias.size + 1] = own / root**2
    at_wall = coupling @ wall
    linked = csr_array((coupling != 0.0) | (np.eye(bias.size) > 0))
    start = np.where(has_lower | np.isfinite(upper), 0.0, -np.inf)
    piece = _Piece((bias - at_wall) / inwards, unit, start, width * root, linked)
    found = _integrated(piece, _tree if linked.nnz == 3 * bias.size - 2 else _triangle)
    constant = float((bias - 0.5 * at_wall) @ wall) - float(np.log(root).sum())
    covariance = found.covariance / np.outer(inwards, inwards)
    return _Moments(found.log_partition + constant, wall + found.mean / inwards, covariance)


def _mode(piece: _Piece) -> FloatArray:
    """A maximum of the density, up to a small part of its width."""
    inverse = _inverse(piece.unit)
    start = piece.slope if inverse is None else inverse @ piece.slope
    clipped = np.clip(start, piece.start, piece.length)
    if (piece.slope.size == 1 and inverse is not None) or (inverse is not None and np.array_equal(clipped, start)):
        return clipped

    def energy(t: FloatArray) -> tuple[float, FloatArray]:
        pull = piece.unit @ t
        return float(t @ (0.5 * pull - piece.slope)), pull - piece.slope

    options = {"ftol": 1e-15, "gtol": 1e-6, "maxiter": 20_000, "maxfun": 40_000}
    bounds = np.column_stack([piece.start, piece.length])
    return np.asarray(minimize(energy, clipped, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """The inverse of a symmetric matrix, or None if it is not positive definite."""
    try:
        half = np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None
    return np.asarray(half.T @ half)


def _box(piece: _Piece, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(low, high), each (n,): an interval per variable that holds all but a negligible part of its mass.

    If V is positive definite the density is at least as narrow about its mode as the normal of covariance inv(V)
    (Brascamp-Lieb). Of variables t >= 0 without an upper end, given the others: if their part of V stays so without its
    positive couplings, p is stochastically smaller than without them and with the negative slopes raised to 0; in a
    tree that always applies, because a strictly copositive matrix without positive entries off the diagonal is
    positive definite. Otherwise the normals of all faces bound the triangle.
    """
    low, high = piece.start.copy(), piece.length.copy()
    inverse = _inverse(piece.unit)
    if inverse is not None:
        reach = _REACH * np.sqrt(inverse.diagonal())
        low, high = np.maximum(low, centre - reach), np.minimum(high, centre + reach)
    if not np.isfinite(low).all():
        raise ValueError(
            "model: exact moments of a variable without ends need a positive definite coupling matrix of its connected "
            "part, which this is not. Use another method or sample."
        )
    if np.isfinite(piece.start).all():
        open_ended = np.flatnonzero(np.isinf(piece.length))
        high[open_ended] = np.minimum(high[open_ended], _competed(piece, open_ended))
    return low, high


def _competed(piece: _Piece, members: IntArray) -> FloatArray:
    """(members,) bounds of those variables without an upper end, the others at the ends that help them most."""
    others = np.setdiff1d(np.arange(piece.slope.size), members)
    helped = np.maximum(-piece.unit[np.ix_(members, others)], 0.0) @ piece.length[others]
    slope, unit = piece.slope[members] + helped, piece.unit[np.ix_(members, members)]
    inverse = _inverse(np.where(np.eye(members.size) > 0, unit, np.minimum(unit, 0.0)))
    if inverse is None:
        return _faces(slope, unit)
    return np.asarray(inverse @ np.maximum(slope, 0.0) + _REACH * np.sqrt(inverse.diagonal()))


def _faces(slope: FloatArray, unit: FloatArray) -> FloatArray:
    """(n,) how far the normals on all positive definite faces of the first octant reach."""
    n = slope.size
    if n > 3:
        raise ValueError(
            "model: ln Z of a forest is finite if its coupling without the positive entries off the diagonal is "
            "positive definite, but within rounding it is not. Raise the diagonal or weaken the negative couplings."
        )
    high = np.zeros(n)
    for size in range(1, n + 1):
        for face in combinations(range(n), size):
            inverse = _inverse(unit[np.ix_(face, face)])
            if inverse is not None:
                reach = inverse @ slope[list(face)] + _REACH * np.sqrt(inverse.diagonal())
                high[list(face)] = np.maximum(high[list(face)], reach)
    return high


class _Rule(NamedTuple):
    """Gauss-Legendre on [-1, 1], and what takes masses at its nodes to the last two Legendre coefficients."""

    points: FloatArray  # (count,)
    weights: FloatArray  # (count,)
    last: FloatArray  # (count, 2)


@functools.cache
def _rule(count: int) -> _Rule:
    points, weights = np.polynomial.legendre.leggauss(count)
    orders = np.array([count - 2, count - 1])
    return _Rule(points, weights, np.polynomial.legendre.legvander(points, count - 1)[:, orders] * (2 * orders + 1))


_Mesh = list[FloatArray]  # per variable (panels, 2): start and end of every panel, relative to the centre


def _nodes(panels: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Places and weights of `count` Gauss nodes on each panel, both (panels * count,)."""
    rule, middle, half = _rule(count), panels.mean(axis=1), 0.5 * (panels[:, 1] - panels[:, 0])
    return (middle[:, None] + half[:, None] * rule.points).ravel(), np.outer(half, rule.weights).ravel()


@dataclass(frozen=True)
class _Tree:
    """exp(constant + sum_i slope_i y_i - curvature_i y_i²/2) times a function of each child and its parent.

    y = t - centre.
    """

    centre: FloatArray
    constant: float
    slope: FloatArray
    curvature: FloatArray
    order: IntArray  # parents before children
    parent: IntArray  # of each variable; the root's is negative
    log_pair: Callable[[int, FloatArray, FloatArray], FloatArray]  # (child, parent's y, child's y) -> matrix
    moments: Callable[[_Tree, _Sum], _Moments]  # of y, without the constant


@dataclass(frozen=True)
class _Sum:
    """A tree summed over the nodes of a mesh."""

    count: int  # nodes per panel
    log_sum: float
    nodes: list[FloatArray]  # per variable (K_i,), relative to the centre
    masses: list[FloatArray]  # per variable (K_i,): marginal probabilities
    conditionals: dict[int, FloatArray]  # child -> (K_parent, K_child): p(child | parent)


def _sum(tree: _Tree, mesh: _Mesh, count: int) -> _Sum:
    """Messages from the leaves to the root in logarithms, then marginals from the root to the leaves."""
    nodes, field = [], []
    for slope, curvature, panels in zip(tree.slope, tree.curvature, mesh, strict=True):
        y, weights = _nodes(panels, count)
        nodes.append(y)
        field.append(np.log(weights) + y * (slope - 0.5 * curvature * y))
    _forbid_huge(sum(nodes[child].size * nodes[tree.parent[child]].size for child in tree.order[1:]))
    conditionals = {}
    for child in tree.order[:0:-1]:
        parent = tree.parent[child]
        conditional = tree.log_pair(child, nodes[parent], nodes[child])
        conditional += field[child]
        top = conditional.max(axis=1)
        conditional -= top[:, None]
        np.exp(conditional, out=conditional)
        total = conditional.sum(axis=1)
        conditional /= total[:, None]
        field[parent] += top + np.log(total)
        conditionals[int(child)] = conditional
    root = tree.order[0]
    top = field[root].max()
    total = np.exp(field[root] - top).sum()
    masses = [np.exp(field[root] - top) / total] * len(nodes)  # the root's; all others follow
    for child in tree.order[1:]:
        masses[child] = masses[tree.parent[child]] @ conditionals[int(child)]
    return _Sum(count, float(top + np.log(total)), nodes, masses, conditionals)


def _forbid_huge(entries: int) -> None:
    if entries > _ENTRIES:
        raise ValueError(
            f"model: exact moments may take {_ENTRIES} pairs of nodes, but {entries} are needed. "
            "Some pair is too strongly correlated, or biases too large for several modes: use another method or sample."
        )


def _spread(mass: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Mean and variance."""
    mean = float(mass @ y)
    return mean, float(mass @ (y - mean) ** 2)


def _unresolved(found: _Sum, tree: _Tree) -> list[FloatArray]:
    """Per variable (panels,): the last Legendre coefficients of its joint densities with its neighbours, as masses."""
    last = _rule(found.count).last
    worst = [np.abs(mass.reshape(-1, found.count) @ last).max(axis=1) for mass in found.masses]
    for child, given in found.conditionals.items():
        parent = tree.parent[child]
        joint = found.masses[parent][:, None] * given
        for i, rows in ((child, joint), (parent, np.ascontiguousarray(joint.T))):
            coefficients = np.abs(rows.reshape(-1, found.count) @ last).reshape(rows.shape[0], -1, 2)
            worst[i] = np.maximum(worst[i], coefficients.sum(axis=0).max(axis=1))
    return worst


def _heaviness(panels: FloatArray, mass: FloatArray, y: FloatArray) -> FloatArray:
    """(panels,) what a panel's mass counts in moments up to the second: 1 + (distance from the mean / sd)²."""
    mean, variance = _spread(mass, y)
    return 1.0 + ((panels - mean) ** 2).max(axis=1) / variance


def _adapted(found: _Sum, mesh: _Mesh, tree: _Tree, goal: float) -> tuple[_Mesh, bool]:
    """The mesh without empty panels and with every unresolved one cut in two, and whether one was cut.

    Gauss' rule errs in the coefficient of twice the order: by u²/mass, if u is the last one that the nodes see.
    """
    adapted, any_cut = [], False
    for panels, mass, y, last in zip(mesh, found.masses, found.nodes, _unresolved(found, tree), strict=True):
        heaviness = _heaviness(panels, mass, y)
        weight = heaviness * mass.reshape(-1, found.count).sum(axis=1)
        cut = heaviness * last > np.maximum(goal, np.sqrt(goal * weight))
        middle = panels.mean(axis=1)
        left = np.column_stack([panels[:, 0], np.where(cut, middle, panels[:, 1])])[weight > _EMPTY]
        both = np.concatenate([left, np.column_stack([middle, panels[:, 1]])[cut]])
        adapted.append(both[np.argsort(both[:, 0])])
        any_cut = any_cut or bool(cut.any())
    return adapted, any_cut


def _refine(tree: _Tree, mesh: _Mesh, goal: float) -> tuple[_Mesh, _Sum]:
    """A mesh on which every joint density of neighbours is resolved, and the sum over it."""
    for _ in range(_ROUNDS):
        found = _sum(tree, mesh, _REFINE)
        mesh, any_cut = _adapted(found, mesh, tree, goal)
        if not any_cut:
            return mesh, found
    raise RuntimeError(f"model: {_ROUNDS} halvings of the quadrature's panels do not resolve it. Sample instead.")


def _first_panels(low: float, high: float, fall: float, rise: float) -> FloatArray:
    """(panels, 2) of at most `_PANEL` on [low, high], by powers of 4 shorter towards a wall with a spike.

    fall, rise: the steepest decrease of ln p from `low`, and increase towards `high`.
    """
    edges = np.linspace(low, high, math.ceil((high - low) / _PANEL) + 1)
    width = edges[1] - edges[0]
    for wall, inwards, slope in ((low, width, fall), (high, -width, rise)):
        steps = math.ceil(math.log(max(slope * width / _GRADE, 1.0), 4.0))
        edges = np.concatenate([edges, wall + inwards * 0.25 ** np.arange(1, steps + 1)])
    edges = np.unique(edges)
    return np.column_stack([edges[:-1], edges[1:]])


def _locate(tree: _Tree, piece: _Piece) -> tuple[_Mesh, _Sum]:
    """A first mesh that holds all the mass of the tree's variables (the piece's first), and the sum over it."""
    low, high = _box(piece, tree.centre)
    own = piece.unit.diagonal()
    off_diagonal = piece.unit - np.diag(own)
    for _ in range(_ROUNDS):
        # no conditional density, hence no marginal one, falls or rises faster at a wall while the others are in the box
        at_low, at_high = off_diagonal * low, off_diagonal * high
        most, least = np.maximum(at_low, at_high).sum(axis=1), np.minimum(at_low, at_high).sum(axis=1)
        fall = np.maximum(own * low + most - piece.slope, 0.0) * (low <= piece.start)
        rise = np.maximum(piece.slope - own * high - least, 0.0) * (high >= piece.length)
        mesh = [_first_panels(low[i], high[i], fall[i], rise[i]) - tree.centre[i] for i in range(tree.slope.size)]
        found = _sum(tree, mesh, _LOCATE)
        short_below, short_above = np.zeros(low.size, bool), np.zeros(low.size, bool)
        for i, (panels, mass, y) in enumerate(zip(mesh, found.masses, found.nodes, strict=True)):
            ends = mass[[0, -1]] / _nodes(panels, _LOCATE)[1][[0, -1]] * (y[-1] - y[0])
            short_below[i], short_above[i] = (ends > _END) & [low[i] > piece.start[i], high[i] < piece.length[i]]
        if not (short_below.any() or short_above.any()):
            return mesh, found
        width = high - low
        low = np.where(short_below, np.maximum(low - width, piece.start), low)
        high = np.where(short_above, np.minimum(high + width, piece.length), high)
    raise RuntimeError(f"model: {_ROUNDS} enlargements of the quadrature's box do not hold its mass. Sample instead.")


def _integrated(piece: _Piece, build: Callable[[_Piece, FloatArray], _Tree]) -> _Moments:
    """The moments of t on which two levels of refinement agree; `build` makes the tree about a centre."""
    rough_tree = build(piece, _mode(piece))
    mesh, rough_sum = _locate(rough_tree, piece)
    centre = _centre(rough_tree, rough_sum)
    mesh = [panels + (rough_tree.centre[i] - centre[i]) for i, panels in enumerate(mesh)]
    tree, gap = build(piece, centre), math.inf
    for goal in _GOALS:
        mesh, rough_sum = _refine(tree, mesh, goal)
        rough, fine = (tree.moments(tree, found) for found in (rough_sum, _sum(tree, mesh, _CONFIRM)))
        sd = np.sqrt(fine.covariance.diagonal())
        gap = max(
            abs(rough.log_partition - fine.log_partition),
            float(np.abs((rough.mean - fine.mean) / sd).max()),
            float(np.abs((rough.covariance - fine.covariance) / sd[:, None] / sd).max()),
        )
        if gap <= _TOLERANCE:
            return _Moments(fine.log_partition + tree.constant, centre + fine.mean, fine.covariance)
    raise RuntimeError(
        f"model: two levels of quadrature must agree to {_TOLERANCE}, but differ by {gap:.1e}: its biases or couplings "
        "are too large for the energy's rounding. Use another method or sample."
    )


def _centre(tree: _Tree, found: _Sum) -> FloatArray:
    """(n,) where y = 0 loses the fewest digits: at the lower wall if that is near, else at the mean."""
    rough = tree.moments(tree, found)
    mean = tree.centre + rough.mean
    return np.where(mean < _NEAR * np.sqrt(rough.covariance.diagonal()), 0.0, mean)


def _centred(piece: _Piece, centre: FloatArray) -> tuple[FloatArray, float]:
    """(slope, constant): the exponent of the piece as a function of y = t - centre."""
    pull = piece.unit @ centre
    return piece.slope - pull, float((piece.slope - 0.5 * pull) @ centre)


def _tree(piece: _Piece, centre: FloatArray) -> _Tree:
    """A piece whose graph is a tree."""
    order, parent = breadth_first_order(piece.linked, 0, directed=False)
    slope, constant = _centred(piece, centre)

    def log_pair(child: int, y_parent: FloatArray, y_child: FloatArray) -> FloatArray:
        return np.multiply.outer(-piece.unit[child, parent[child]] * y_parent, y_child)

    return _Tree(centre, constant, slope, piece.unit.diagonal(), order, parent, log_pair, _tree_moments)


def _tree_moments(tree: _Tree, found: _Sum) -> _Moments:
    """The moments of y. Two variables are independent given the last common ancestor of theirs in the tree, so their
    covariance is that of their conditional means given it, E[y_i - <y_i> | y_k].
    """  # fmt: skip
    n = tree.slope.size
    mean, covariance = np.empty(n), np.empty((n, n))
    below: list[tuple[list[int], FloatArray]] = [([], np.empty((y.size, 0))) for y in found.nodes]
    for k in tree.order[::-1]:
        mass, y = found.masses[k], found.nodes[k]
        mean[k], covariance[k, k] = _spread(mass, y)
        branches = [([int(k)], (y - mean[k])[:, None])]
        for child in np.flatnonzero(tree.parent == k):
            members, given_child = below[child]
            given = found.conditionals[int(child)] @ given_child
            for others, other_given in branches:
                block = (other_given * mass[:, None]).T @ given
                covariance[np.ix_(others, members)] = block
                covariance[np.ix_(members, others)] = block.T
            branches.append((members, given))
            below[child] = ([], given_child[:, :0])
        below[k] = [i for members, _ in branches for i in members], np.hstack([given for _, given in branches])
    return _Moments(found.log_sum, mean, covariance)


def _triangle(piece: _Piece, centre: FloatArray) -> _Tree:
    """Three variables coupled to each other: a pair, and the last one integrated out at every pair of nodes."""
    rest, last = piece.unit[:2, :2], piece.unit[2]
    slope, constant = _centred(piece, centre)
    site = site_between(piece.start[2] - centre[2], piece.length[2] - centre[2])

    def inner(y_parent: FloatArray, y_child: FloatArray) -> FloatArray:
        """(3, rows, columns): ln of the integral over y_2, its mean and its variance."""
        fields = slope[2] - np.add.outer(last[0] * y_parent, last[1] * y_child)
        found = site.conditionals(fields.ravel(), float(last[2]))
        return found[:3].reshape(3, *fields.shape)

    def log_pair(child: int, y_parent: FloatArray, y_child: FloatArray) -> FloatArray:
        return np.multiply.outer(-rest[0, child] * y_parent, y_child) + inner(y_parent, y_child)[0]

    def moments(tree: _Tree, found: _Sum) -> _Moments:
        two = _tree_moments(tree, found)
        _, mean, variance = inner(*found.nodes)
        joint = found.masses[0][:, None] * found.conditionals[1]
        third = float(np.sum(joint * mean))
        mean -= third
        covariance = np.empty((3, 3))
        covariance[:2, :2] = two.covariance
        covariance[2, 0] = covariance[0, 2] = np.sum(joint * mean, axis=1) @ (found.nodes[0] - two.mean[0])
        covariance[2, 1] = covariance[1, 2] = np.sum(joint * mean, axis=0) @ (found.nodes[1] - two.mean[1])
        covariance[2, 2] = np.sum(joint * (variance + mean**2))
        return _Moments(two.log_partition, np.append(two.mean, third), covariance)

    own = piece.unit.diagonal()[:2]
    return _Tree(centre, constant, slope[:2], own, np.array([0, 1]), np.array([-1, 0]), log_pair, moments)

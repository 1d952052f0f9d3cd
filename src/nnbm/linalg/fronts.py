"""Symbolic analysis: the dense blocks of a factorisation, their memory and their operations, before any number.

Columns of the factor with (nearly) the same rows below them form a *front*: a panel of m rows by k columns, eliminated
at once. Fronts form a tree; a front is done after its children. Duff & Reid (1983); the merging of fronts follows Chen,
Davis, Hager & Rajamanickam (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnbm.arrays import FloatArray, IntArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import Graph, IndexArray
from nnbm.linalg.tree import column_counts, elimination_tree, postorder

__all__ = ["Fronts", "fronts"]

# A child is merged into its parent if that front has at most so many columns, and so small a share of stored zeros.
_MERGE = ((4, 1.0), (16, 0.8), (48, 0.1), (10**9, 0.05))


@dataclass(frozen=True)
class Fronts:
    """What is known of a factorisation before any number.

    Front f eliminates the columns columns[f] : columns[f + 1] of the permuted matrix; the rows of its panel are
    those, then border[starts[f] : starts[f + 1]], ascending. Its panel lies column by column in
    panels[f] : panels[f + 1].
    """

    columns: IntArray
    starts: IntArray
    border: IndexArray
    panels: IntArray
    parent: IntArray
    factor_flops: float
    inverse_flops: float
    update_room: int
    inverse_room: int

    @property
    def n(self) -> int:
        """The order of the matrix."""
        return int(self.columns[-1])

    @property
    def structure(self) -> tuple[IntArray, IntArray, IndexArray, IntArray, IntArray]:
        """What every kernel begins with: columns, starts, border, panels, parent."""
        return self.columns, self.starts, self.border, self.panels, self.parent

    @property
    def entries(self) -> int:
        """How many numbers the factor holds."""
        return int(self.panels[-1])

    @property
    def largest(self) -> int:
        """Rows of the largest front, at least 1."""
        return int((np.diff(self.columns) + np.diff(self.starts)).max(initial=1))


def fronts(graph: Graph, order: IntArray) -> tuple[Fronts, IntArray]:
    """The fronts of a graph whose vertices are eliminated in this order, and the equivalent order (n,) they ask for."""
    graph = graph.renumbered(order)
    post, parent = _children_first(elimination_tree(graph.starts, graph.neighbours), np.arange(graph.n))
    order, graph = order[post], graph.renumbered(post)
    counts = column_counts(graph.starts, graph.neighbours, parent, graph.weights)

    front, parent, width, height = _merged(parent, counts, graph.weights, np.array(_MERGE))
    update = (height - width).astype(np.float64) ** 2
    post, parent = _children_first(parent, np.argsort(update - _peaks(parent, update), kind="stable"))
    place = np.empty_like(post)
    place[post] = np.arange(post.size)
    front = place[front]
    vertices = np.argsort(front, kind="stable")
    return _finish(graph.renumbered(vertices), front[vertices], parent, width[post], height[post]), order[vertices]


def _children_first(parent: IntArray, siblings: IntArray) -> tuple[IntArray, IntArray]:
    """A postorder (n,) of a forest, and the parents in it; siblings (n,): all vertices, those of a parent in order."""
    post = postorder(parent, siblings)
    place = np.empty_like(post)
    place[post] = np.arange(post.size)
    above = parent[post]
    return post, np.where(above >= 0, place[above], -1)


def _finish(graph: Graph, front: IntArray, parent: IntArray, width: IntArray, height: IntArray) -> Fronts:
    """The fronts of a graph in its final order; front (n,): that of each vertex; width, height: columns and rows."""
    starts, columns, panels = (_sums(sizes) for sizes in (height - width, width, width * height))
    border = _borders(graph.starts, graph.neighbours, graph.weights, parent, front, starts)
    k, m = width.astype(np.float64), height.astype(np.float64)
    rest = m - k
    # sum of r (r + 2) over r = m - k ... m - 1: what is left below each pivot, divided and then subtracted
    flops = (_squares(m - 1) - _squares(rest - 1)) + (m * (m - 1) - rest * (rest - 1))
    inverse_flops = 3.0 * k * k * rest + 2.0 * rest * rest * k + k**3
    rooms = _rooms(parent, width, height)
    return Fronts(columns, starts, border, panels, parent, float(flops.sum()), float(inverse_flops.sum()), *rooms)


def _sums(sizes: IntArray) -> IntArray:
    """(n + 1,) where each of n pieces of these sizes begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _squares(n: FloatArray) -> FloatArray:
    """1² + 2² + ... + n²."""
    return n * (n + 1) * (2 * n + 1) / 6


@kernel()
def _merged(
    parent: IntArray, counts: IntArray, weights: IntArray, rules: FloatArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The front of each vertex (n,), and the parent, columns and rows of each front; children have smaller numbers."""
    n = parent.size
    first = np.empty(n, dtype=np.int64)  # the front of each vertex before merging
    up, width, height = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    total = -1
    for j in range(n):
        if j == 0 or parent[j - 1] != j or counts[j - 1] != counts[j] + weights[j - 1]:
            total += 1
            height[total] = counts[j]
        first[j] = total
        width[total] += weights[j]
        up[total] = j  # its last vertex, for now
    total += 1
    for f in range(total):
        above = parent[up[f]]
        up[f] = first[above] if above >= 0 else -1
    into = _merge(up[:total], width, height, rules)
    # a front that was merged gets the number of the one it went into
    number = np.empty(total, dtype=np.int64)
    count = 0
    for f in range(total):
        if into[f] == -1:
            number[f] = count
            width[count], height[count], up[count] = width[f], height[f], up[f]
            count += 1
    for f in range(total - 1, -1, -1):
        if into[f] != -1:
            number[f] = number[into[f]]
    for f in range(count):
        if up[f] >= 0:
            up[f] = number[up[f]]
    for j in range(n):
        first[j] = number[first[j]]
    return first, up[:count].copy(), width[:count].copy(), height[:count].copy()


@kernel()
def _merge(up: IntArray, width: IntArray, height: IntArray, rules: FloatArray) -> IntArray:
    """Which front each is merged into, or -1; width and height become those of the merged fronts."""
    total = up.size
    into = np.full(total, -1)
    child, sibling = np.full(total, -1), np.full(total, -1)
    filled = np.zeros(total)  # entries of the factor that are not zero
    for f in range(total):
        filled[f] = width[f] * height[f] - width[f] * (width[f] - 1) / 2
    for f in range(total):
        c = child[f]
        while c != -1:
            k = width[c] + width[f]
            m = width[c] + height[f]
            size = k * m - k * (k - 1) / 2
            zeros = 1.0 - (filled[c] + filled[f]) / size
            for rule in range(rules.shape[0]):
                if k <= rules[rule, 0]:
                    if zeros <= rules[rule, 1]:
                        into[c] = f
                        width[f], height[f] = k, m
                        filled[f] += filled[c]
                    break
            c = sibling[c]
        if up[f] >= 0:
            sibling[f] = child[up[f]]
            child[up[f]] = f
    return into


@kernel()
def _peaks(parent: IntArray, update: FloatArray) -> FloatArray:
    """(fronts,) about how much waits in memory at once below each front, if the most demanding child goes first."""
    total = parent.size
    peak = update.copy()
    first, waiting = np.zeros(total), update.copy()  # the need of the most demanding child; what all have left
    for f in range(total):
        peak[f] = max(first[f], waiting[f])
        if parent[f] >= 0:
            first[parent[f]] = max(first[parent[f]], peak[f])
            waiting[parent[f]] += update[f]
    return peak


@kernel()
def _borders(
    starts: IntArray,
    neighbours: IndexArray,
    weights: IntArray,
    parent: IntArray,
    front: IntArray,
    border_starts: IntArray,
) -> IndexArray:
    """The rows below each front's own columns, ascending, all in one array; front (n,): that of each vertex.

    Vertex u is in the border of every front on the way up from its earlier neighbours to its own front.
    """
    border = np.empty(border_starts[-1], dtype=np.int32)
    top = border_starts.copy()
    seen = np.full(parent.size, -1)
    column = 0
    for u in range(weights.size):
        for k in range(starts[u], starts[u + 1]):
            if neighbours[k] > u:
                continue
            f = front[neighbours[k]]
            while f != front[u] and seen[f] != u:
                seen[f] = u
                for j in range(weights[u]):
                    border[top[f]] = column + j
                    top[f] += 1
                f = parent[f]
        column += weights[u]
    return border


@kernel()
def _rooms(parent: IntArray, width: IntArray, height: IntArray) -> tuple[int, int]:
    """Numbers that wait at once: updates on the way up the tree, and fronts of the inverse on the way down."""
    total = parent.size
    waiting = np.zeros(total + 1, dtype=np.int64)  # what the children of a front have left
    now, most = 0, 0
    for f in range(total):
        own = (height[f] - width[f]) ** 2
        most = max(most, now + own)
        now += own - waiting[f]
        if parent[f] >= 0:
            waiting[parent[f]] += own
    depth = np.zeros(total, dtype=np.int64)
    deepest = 0
    for f in range(total - 1, -1, -1):
        above = depth[parent[f]] if parent[f] >= 0 else 0
        depth[f] = above + height[f] ** 2
        deepest = max(deepest, depth[f])
    return most, deepest

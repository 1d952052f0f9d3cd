"""Nested dissection without METIS: separators found on coarser and coarser graphs, minimum degree where little is left.

George (1973); the levels are those of Karypis & Kumar (1998), the refinement that of Ashcraft & Liu (1997). The same
graph has the same order on every machine.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import IntArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import Graph, IndexArray

__all__ = ["dissect"]

_LEAF = 64  # vertices that are ordered by minimum degree: as many as a word has bits
_COARSEST = 100  # vertices of a graph that is separated as it is
_STARTS = 5  # regions grown there, of which the best gives the separator
_PASSES = 4
_PATIENCE = 60  # moves without progress until a pass ends
_SHARE = 0.6  # of all weight: more on one side is out of balance

Sides = NDArray[np.int8]  # 0 and 1 are the sides, 2 is what separates them


def dissect(graph: Graph) -> IntArray:
    """(n,) the vertices in the order of a nested dissection."""
    return _dissect(graph.starts, graph.neighbours, graph.weights)


@kernel()
def _dissect(starts: IntArray, neighbours: IndexArray, weights: IntArray) -> IntArray:
    """Split pieces of an array of vertices into two sides and their separator, last piece first."""
    n = weights.size
    order = np.arange(n)
    local = np.full(n, -1, dtype=np.int32)
    pieces = [(0, n)]
    while pieces:
        low, high = pieces.pop()
        members = order[low:high].copy()
        begins, edges = _part(starts, neighbours, members, local)
        if high - low <= _LEAF:
            order[low:high] = members[_minimum_degree(begins, edges)]
            continue
        sides = _separator(begins, edges, weights[members], np.ones(edges.size, dtype=np.int64))
        sizes = np.zeros(3, dtype=np.int64)
        for i in range(members.size):
            sizes[sides[i]] += 1
        if max(sizes) == members.size:
            continue  # nothing separates it: any order is as good
        at = np.array([low, low + sizes[0], low + sizes[0] + sizes[1]])
        for i in range(members.size):
            order[at[sides[i]]] = members[i]
            at[sides[i]] += 1
        pieces.append((low, low + sizes[0]))
        pieces.append((low + sizes[0], low + sizes[0] + sizes[1]))
    return order


@kernel()
def _part(
    starts: IntArray, neighbours: IndexArray, members: IntArray, local: IndexArray
) -> tuple[IntArray, IndexArray]:
    """The graph of some of the vertices, numbered as they come; local (n,) is -1 before and after."""
    begins = np.zeros(members.size + 1, dtype=np.int64)
    room = 0
    for i in range(members.size):
        local[members[i]] = i
        room += starts[members[i] + 1] - starts[members[i]]
    edges = np.empty(room, dtype=np.int32)
    top = 0
    for i in range(members.size):
        for k in range(starts[members[i]], starts[members[i] + 1]):
            j = local[neighbours[k]]
            if j >= 0:
                edges[top] = j
                top += 1
        begins[i + 1] = top
    for i in members:
        local[i] = -1
    return begins, edges[:top].copy()


@kernel()
def _minimum_degree(starts: IntArray, neighbours: IndexArray) -> IntArray:
    """The order of at most 64 vertices in which always the one with fewest neighbours goes; sets of them are words."""
    n = starts.size - 1
    one = np.uint64(1)
    near = np.zeros(n, dtype=np.uint64)
    for i in range(n):
        near[i] = one << np.uint64(i)
        for k in range(starts[i], starts[i + 1]):
            near[i] |= one << np.uint64(neighbours[k])
    order = np.empty(n, dtype=np.int64)
    degree = np.empty(n, dtype=np.int64)
    for i in range(n):
        degree[i] = _bits(near[i])
    for step in range(n):
        v = np.argmin(degree)
        order[step] = v
        degree[v] = n + 1
        own = near[v] & ~(one << np.uint64(v))
        for i in range(n):
            if (own >> np.uint64(i)) & one:
                near[i] = (near[i] | own) & ~(one << np.uint64(v))
                degree[i] = _bits(near[i])
    return order


@kernel()
def _bits(word: np.uint64) -> int:
    """How many bits of a word are set."""
    count = 0
    while word != np.uint64(0):
        word &= word - np.uint64(1)
        count += 1
    return count


@kernel()
def _separator(starts: IntArray, neighbours: IndexArray, weights: IntArray, ties: IntArray) -> Sides:
    """The side (n,) of each vertex: that of the coarser graph's, refined."""
    if weights.size <= _COARSEST:
        return _grown(starts, neighbours, weights)
    coarse = _matched(starts, neighbours, weights, ties)
    count = coarse.max() + 1
    if count > 0.95 * weights.size:
        return _grown(starts, neighbours, weights)
    begins, edges, heavier, knots = _contracted(starts, neighbours, weights, ties, coarse, count)
    sides = _separator(begins, edges, heavier, knots)[coarse]
    _refine(starts, neighbours, weights, sides)
    return sides


@kernel()
def _matched(starts: IntArray, neighbours: IndexArray, weights: IntArray, ties: IntArray) -> IntArray:
    """The coarser vertex (n,) each vertex goes into: with its strongest tie, the lighter of equals, if that is free."""
    n = weights.size
    coarse = np.full(n, -1)
    limit = 1.5 * weights.sum() / _COARSEST  # nothing heavier, or the coarsest graph cannot be balanced
    count = 0
    for i in range(n):
        if coarse[i] >= 0:
            continue
        mate, tie = -1, 0
        for k in range(starts[i], starts[i + 1]):
            j = neighbours[k]
            if coarse[j] >= 0 or weights[i] + weights[j] > limit:
                continue
            if mate < 0 or ties[k] > tie or (ties[k] == tie and weights[j] < weights[mate]):
                mate, tie = j, ties[k]
        coarse[i] = count
        if mate >= 0:
            coarse[mate] = count
        count += 1
    return coarse


@kernel()
def _contracted(
    starts: IntArray, neighbours: IndexArray, weights: IntArray, ties: IntArray, coarse: IntArray, count: int
) -> tuple[IntArray, IndexArray, IntArray, IntArray]:
    """The coarser graph: its neighbours, the weights of its vertices and of its edges."""
    n = weights.size
    first, second = np.full(count, -1), np.full(count, -1)
    heavier = np.zeros(count, dtype=np.int64)
    for i in range(n):
        heavier[coarse[i]] += weights[i]
        if first[coarse[i]] < 0:
            first[coarse[i]] = i
        else:
            second[coarse[i]] = i
    begins = np.zeros(count + 1, dtype=np.int64)
    edges, knots = np.empty(neighbours.size, dtype=np.int32), np.empty(neighbours.size, dtype=np.int64)
    found = np.full(count, -1)  # where the edge to each vertex is
    top = 0
    for c in range(count):
        for i in (first[c], second[c]):
            if i < 0:
                continue
            for k in range(starts[i], starts[i + 1]):
                other = coarse[neighbours[k]]
                if other == c:
                    continue
                if found[other] < begins[c]:
                    found[other] = top
                    edges[top], knots[top] = other, 0
                    top += 1
                knots[found[other]] += ties[k]
        begins[c + 1] = top
    return begins, edges[:top].copy(), heavier, knots[:top].copy()


@kernel()
def _grown(starts: IntArray, neighbours: IndexArray, weights: IntArray) -> Sides:
    """The best of a few separators, each the rim of a region that grew from a vertex to half of the weight."""
    n = weights.size
    best = np.full(n, 2, dtype=np.int8)
    least = np.inf
    half = weights.sum() / 2
    seed = _breadth_first(starts, neighbours, 0)[-1]
    for trial in range(_STARTS):
        reached = _breadth_first(starts, neighbours, seed)
        sides = np.ones(n, dtype=np.int8)
        inside = 0
        for i in reached:
            if inside >= half:
                break
            sides[i] = 0
            inside += weights[i]
        for i in range(n):
            if sides[i] == 0:
                for k in range(starts[i], starts[i + 1]):
                    if sides[neighbours[k]] == 1:
                        sides[i] = 2
                        break
        cost = _refine(starts, neighbours, weights, sides)
        if cost < least:
            least = cost
            best[:] = sides
        seed = reached[-1] if trial == 0 else np.int64(trial * n // _STARTS)
    return best


@kernel()
def _breadth_first(starts: IntArray, neighbours: IndexArray, seed: int) -> IntArray:
    """(n,) all vertices, from a first one outwards; other components follow."""
    n = starts.size - 1
    order = np.empty(n, dtype=np.int64)
    seen = np.zeros(n, dtype=np.bool_)
    done, top, fresh = 0, 1, 0
    order[0] = seed
    seen[seed] = True
    while done < n:
        if done == top:
            while seen[fresh]:
                fresh += 1
            order[top] = fresh
            seen[fresh] = True
            top += 1
        i = order[done]
        done += 1
        for k in range(starts[i], starts[i + 1]):
            j = neighbours[k]
            if not seen[j]:
                seen[j] = True
                order[top] = j
                top += 1
    return order


@kernel()
def _refine(starts: IntArray, neighbours: IndexArray, weights: IntArray, sides: Sides) -> float:
    """Make the separator lighter in passes of moves, until one brings nothing; its cost."""
    cost = np.inf
    for _ in range(_PASSES):
        before, cost = cost, _pass(starts, neighbours, weights, sides)
        if cost >= before:
            break
    return cost


@kernel()
def _cost(load: IntArray) -> float:
    """What a separator with these loads (side, side, separator) costs: its weight, and much for bad balance."""
    heavy = max(load[0], load[1])
    total = load[0] + load[1] + load[2]
    return load[2] + 1e-3 * heavy / total + 10.0 * max(0.0, heavy - _SHARE * total)


@kernel()
def _pass(starts: IntArray, neighbours: IndexArray, weights: IntArray, sides: Sides) -> float:
    """Move vertices out of the separator, best first and each at most once; what came after the best moment is undone.

    A vertex that goes to side s pulls its neighbours on the other side into the separator: against[s] is their weight.
    """
    n = weights.size
    load = np.zeros(3, dtype=np.int64)
    against = np.zeros((2, n), dtype=np.int64)
    moved = np.zeros(n, dtype=np.bool_)
    heap = [0 for _ in range(0)]
    for i in range(n):
        load[sides[i]] += weights[i]
        if sides[i] == 2:
            _look(starts, neighbours, weights, sides, i, against)
            for s in range(2):
                heapq.heappush(heap, (against[s, i] - weights[i]) * 2 * n + 2 * i + s)
    changed = [(0, 0) for _ in range(0)]  # vertex and the side it came from
    least, kept, waited = _cost(load), 0, 0
    while heap and waited < _PATIENCE:
        key = heapq.heappop(heap)
        i, s = (key % (2 * n)) // 2, key % 2
        if sides[i] != 2 or moved[i] or key // (2 * n) != against[s, i] - weights[i]:
            continue  # an entry of the past
        if load[s] + weights[i] > _SHARE * (load[0] + load[1] + load[2]) and load[s] >= load[1 - s]:
            continue
        _move(starts, neighbours, weights, sides, i, s, load, against, moved, heap, changed)
        waited += 1
        if _cost(load) < least:
            least, kept, waited = _cost(load), len(changed), 0
    while len(changed) > kept:
        i, side = changed.pop()
        sides[i] = side
    return least


@kernel()
def _look(starts: IntArray, neighbours: IndexArray, weights: IntArray, sides: Sides, i: int, against: IntArray) -> None:
    """Add up what vertex i of the separator has against going to either side."""
    against[0, i] = against[1, i] = 0
    for k in range(starts[i], starts[i + 1]):
        j = neighbours[k]
        if sides[j] < 2:
            against[1 - sides[j], i] += weights[j]


@kernel()
def _move(
    starts: IntArray, neighbours: IndexArray, weights: IntArray, sides: Sides, i: int, s: int, load: IntArray,
    against: IntArray, moved: NDArray[np.bool_], heap: list[int], changed: list[tuple[int, int]],
) -> None:  # fmt: skip
    """Vertex i leaves the separator for side s; those it pulls in, and all that they touch, are looked at again."""
    n = weights.size
    sides[i] = s
    moved[i] = True
    load[s] += weights[i]
    load[2] -= weights[i]
    changed.append((i, 2))
    for k in range(starts[i], starts[i + 1]):
        j = neighbours[k]
        if sides[j] == 2 and not moved[j]:
            against[1 - s, j] += weights[i]
            heapq.heappush(heap, (against[1 - s, j] - weights[j]) * 2 * n + 2 * j + 1 - s)
        elif sides[j] == 1 - s:
            sides[j] = 2
            load[1 - s] -= weights[j]
            load[2] += weights[j]
            changed.append((j, 1 - s))
            _look(starts, neighbours, weights, sides, j, against)
            if not moved[j]:
                for t in range(2):
                    heapq.heappush(heap, (against[t, j] - weights[j]) * 2 * n + 2 * j + t)
            for q in range(starts[j], starts[j + 1]):
                u = neighbours[q]
                if sides[u] == 2 and not moved[u] and u != j:
                    against[s, u] -= weights[j]
                    heapq.heappush(heap, (against[s, u] - weights[u]) * 2 * n + 2 * u + s)

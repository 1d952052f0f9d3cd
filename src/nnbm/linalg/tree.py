"""The elimination tree of an ordered graph: who waits for whom, and how long each column of the factor will be.

Liu (1990), "The role of elimination trees in sparse factorization"; the column counts are those of Gilbert, Ng & Peyton
(1994), with weights. All of it takes time proportional to the graph's edges, however many entries the factor will have.
"""

from __future__ import annotations

import numpy as np

from nnbm.arrays import IntArray
from nnbm.kernels import kernel
from nnbm.linalg.graph import IndexArray

__all__ = ["column_counts", "elimination_tree", "postorder"]


@kernel()
def elimination_tree(starts: IntArray, neighbours: IndexArray) -> IntArray:
    """(n,) the parent of each vertex: the first later one that its elimination fills a column towards; -1 for roots."""
    n = starts.size - 1
    parent = np.full(n, -1)
    ancestor = np.full(n, -1)
    for j in range(n):
        for k in range(starts[j], starts[j + 1]):
            i = np.int64(neighbours[k])
            while i != -1 and i < j:
                up = ancestor[i]
                ancestor[i] = j
                if up == -1:
                    parent[i] = j
                i = up
    return parent


@kernel()
def postorder(parent: IntArray, siblings: IntArray) -> IntArray:
    """(n,) the vertices of a forest, children first; siblings (n,): all, those of a parent as they shall come."""
    n = parent.size
    child = np.full(n + 1, -1)
    sibling = np.full(n, -1)
    for i in siblings[::-1]:
        up = parent[i] if parent[i] >= 0 else n
        sibling[i] = child[up]
        child[up] = i
    order = np.empty(n, dtype=np.int64)
    stack = np.empty(n + 1, dtype=np.int64)
    done = 0
    depth = 1
    stack[0] = n
    while depth:
        i = stack[depth - 1]
        if child[i] >= 0:
            stack[depth] = child[i]
            depth += 1
            child[i] = sibling[child[i]]
        else:
            depth -= 1
            if i < n:
                order[done] = i
                done += 1
    return order


@kernel()
def column_counts(starts: IntArray, neighbours: IndexArray, parent: IntArray, weights: IntArray) -> IntArray:
    """(n,) the weight of each column of the factor, its own included; vertices must be numbered in postorder.

    Row i of the factor is a subtree of the tree, pruned at its leaves: a leaf adds the weight of i, the least common
    ancestor of two leaves takes it off once.
    """
    n = parent.size
    first = np.full(n, -1)  # the first descendant
    delta = np.zeros(n, dtype=np.int64)
    for k in range(n):
        if first[k] == -1:
            delta[k] = weights[k]
        j = k
        while j != -1 and first[j] == -1:
            first[j] = k
            j = parent[j]
    ancestor = np.arange(n)
    last_first = np.full(n, -1)
    last_leaf = np.full(n, -1)
    for j in range(n):
        if parent[j] != -1:
            delta[parent[j]] -= weights[j]
        for k in range(starts[j], starts[j + 1]):
            i = neighbours[k]
            if i <= j or first[j] <= last_first[i]:
                continue
            last_first[i] = first[j]
            delta[j] += weights[i]
            if last_leaf[i] != -1:
                delta[_common_ancestor(ancestor, last_leaf[i])] -= weights[i]
            last_leaf[i] = j
        if parent[j] != -1:
            ancestor[j] = parent[j]
    for j in range(n):
        if parent[j] != -1:
            delta[parent[j]] += delta[j]
    return delta


@kernel()
def _common_ancestor(ancestor: IntArray, leaf: int) -> int:
    """The end of a path, which is shortened on the way."""
    top = leaf
    while ancestor[top] != top:
        top = ancestor[top]
    while leaf != top:
        leaf, ancestor[leaf] = ancestor[leaf], top
    return top

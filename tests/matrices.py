"""Sparse symmetric matrices with what is known of them, for the tests of sparse algebra."""

import numpy as np
from scipy import sparse


def from_edges(n, i, j, coupling, diagonal):
    """The CSR matrix with these entries on both sides of a diagonal that is always stored."""
    rows, columns = np.concatenate([i, j, np.arange(n)]), np.concatenate([j, i, np.arange(n)])
    found = sparse.csr_array((np.concatenate([coupling, coupling, diagonal]), (rows, columns)), shape=(n, n))
    found.sum_duplicates()
    return found


def edges(name, n, rng):
    """(i, j) of a graph with a name; n is about how many vertices."""
    i, j = np.triu_indices(n, 1) if n < 3000 else (np.zeros(0, dtype=int),) * 2
    if name == "chain":
        i, j = np.arange(n - 1), np.arange(1, n)
    elif name == "arrow":
        i, j = np.zeros(n - 1, dtype=int), np.arange(1, n)
    elif name == "tree":
        i, j = (rng.random(n - 1) * np.arange(1, n)).astype(int), np.arange(1, n)
    elif name == "grid":
        side = int(np.sqrt(n))
        n = side * side
        at = np.arange(n).reshape(side, side)
        i = np.concatenate([at[:-1].ravel(), at[:, :-1].ravel()])
        j = np.concatenate([at[1:].ravel(), at[:, 1:].ravel()])
    elif name == "islands":  # no edge between thirds, and vertices without any
        keep = (rng.random(i.size) < 4 / n) & (3 * i // n == 3 * j // n)
        i, j = i[keep], j[keep]
    elif name == "random":  # of mean degree 3
        keep = rng.random(i.size) < 3 / n
        i, j = i[keep], j[keep]
    return n, i, j


NAMES = ("chain", "arrow", "complete", "tree", "grid", "islands", "random")


def matrix(name, n, seed, definite=True):
    """A random matrix on a named graph, positive definite or with a diagonal of both signs."""
    rng = np.random.default_rng(seed)
    n, i, j = edges(name, n, rng)
    coupling = rng.normal(size=i.size)
    if definite:
        diagonal = 0.1 + rng.random(n) + np.bincount(i, abs(coupling), n) + np.bincount(j, abs(coupling), n)
    else:
        diagonal = 2.0 * rng.normal(size=n)
    return from_edges(n, i, j, coupling, diagonal)


def blocks(pattern, seed, definite=True):
    """The matrix of 2 x 2 blocks on a pattern, like the Hessian of two numbers a site."""
    rng = np.random.default_rng(seed)
    found = sparse.csr_array(sparse.kron(pattern, np.ones((2, 2))))
    found.sort_indices()
    found.data = rng.normal(size=found.data.size)
    found = sparse.csr_array(found + found.T)
    diagonal = abs(found).sum(axis=1) + 0.1 if definite else 3.0 * rng.normal(size=found.shape[0])
    found.setdiag(diagonal)
    found.sort_indices()
    return found

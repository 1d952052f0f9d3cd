"""The couplings w_ij, i != j, as kernels read them: dense or CSR in one type, and a site's field in two halves.

In a sweep by label the neighbours below a site already have their new values. Their half of its field therefore adds
up, site by site, to the coupling energy of the new state, which so costs nothing and never drifts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from nnbm.arrays import FloatArray
from nnbm.kernels import kernel
from nnbm.model import NNBM
from nnbm.sampling.update import Indices

__all__ = ["Couplings", "couplings_of", "dense_field", "sparse_field"]


class Couplings(NamedTuple):
    """dense: (n, n), whose diagonal is not read, or (0, 0); else rows pointers[i]:pointers[i + 1] of a CSR matrix
    without a diagonal, in which neighbours below i end at middle[i].
    """

    dense: FloatArray
    pointers: Indices
    middle: Indices
    neighbours: Indices
    weights: FloatArray


def couplings_of(model: NNBM) -> Couplings:
    """A model's; a dense matrix is not copied."""
    none = np.zeros(0, np.int32)
    if isinstance(model.coupling, np.ndarray):
        return Couplings(model.coupling, none, none, none, np.zeros(0))
    graph = model.graph
    graph.sort_indices()
    below = np.diff(sparse.tril(graph, k=-1, format="csr").indptr)
    pointers = graph.indptr.astype(np.int32)
    middle = (pointers[:-1] + below).astype(np.int32)
    empty = np.zeros((0, 0))
    empty.flags.writeable = False  # like a model's: the same type, or kernels are compiled for both
    return Couplings(empty, pointers, middle, graph.indices.astype(np.int32), graph.data)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def dense_field(row: FloatArray, site: int, x: FloatArray) -> tuple[float, float]:
    """sum_j w_ij x_j over j < i and over j > i, from row i."""
    below, above = 0.0, 0.0
    for j in range(site):
        below += row[j] * x[j]
    for j in range(site + 1, x.size):
        above += row[j] * x[j]
    return below, above


@kernel()
def sparse_field(
    pointers: Indices, middle: Indices, neighbours: Indices, weights: FloatArray, site: int, x: FloatArray
) -> tuple[float, float]:
    """The same from the parts of `Couplings`. One kernel for both kinds would not be inlined: five times the cost."""
    below, above = 0.0, 0.0
    for e in range(pointers[site], middle[site]):
        below += weights[e] * x[neighbours[e]]
    for e in range(middle[site], pointers[site + 1]):
        above += weights[e] * x[neighbours[e]]
    return below, above

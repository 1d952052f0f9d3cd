"""Has exp(b'x - x'Wx / 2) a finite integral over x >= 0 for every b? It has iff W is strictly copositive.

Strictly copositive: x'Wx > 0 for every x >= 0 but x = 0. To decide that is co-NP-complete, so the cheap
certificates come first, the exact search last, and "unproven" is a possible answer. Everything is done on the
matrix scaled to unit diagonal: that changes neither copositivity nor definiteness, and a tolerance then means
the same at every scale.

The facts used, for a W of positive diagonal:

1. Let U be a smallest set of variables that supports an x >= 0 with x'Wx <= 0. The graph of the negative
   couplings within U is connected, so the components of that graph are examined one by one.
2. W[V, V] is positive definite for every V inside U but U itself, and for every j in U the vector with
   x_j = 1 and (Wx)_i = 0 for all other i in U is such an x (Cottle, Habetler & Lemke 1970; Hadeler 1983;
   Väliaho 1986).
3. If W[S, S] is positive definite and its Schur complement strictly copositive on C, no such U lies between S
   and S + C: the complement is the minimum of x'Wx over x_S, free of its signs.
4. A positive definite matrix plus a nonnegative one is strictly copositive. The converse fails from n = 5 on:
   the Horn matrix (Diananda 1962; Hall & Newman 1963).

"Within rounding": the answer is right for W or for a matrix that differs from it by a few rounding errors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from nnbm.arrays import FloatArray
from nnbm.copositive.definite import DENSE_VARIABLES
from nnbm.copositive.dense import examine_dense
from nnbm.copositive.entries import row_of_each_entry, with_data
from nnbm.copositive.sparse import examine_sparse
from nnbm.copositive.verdict import Copositivity

__all__ = ["examine"]


def examine(coupling: FloatArray | sparse.csr_array) -> Copositivity:
    """Proof, disproof or "unproven" of the strict copositivity of a symmetric matrix of positive diagonal.

    `coupling` (n, n) is taken to be square, float64, symmetric and finite; if sparse, canonical; it is never
    made dense beyond 2,000 variables. The same matrix always gets the same answer.

    References: Hadeler, Linear Algebra Appl. 49 (1983) 79; Väliaho, Linear Algebra Appl. 81 (1986) 19.

    >>> import numpy as np
    >>> examine(np.array([[1.0, 2.0], [2.0, 1.0]])).verdict.name
    'COPOSITIVE'
    >>> refusal = examine(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> refusal.verdict.name, refusal.witness.tolist()
    ('NOT_COPOSITIVE', [0.5, 0.5])
    """
    root = np.sqrt(coupling.diagonal())
    unit = _with_unit_diagonal(coupling, root)
    found = examine_dense(unit) if isinstance(unit, np.ndarray) else examine_sparse(unit)
    if found.witness is None:
        return found
    witness = found.witness / root
    return replace(found, witness=witness / witness.sum())


def _with_unit_diagonal(coupling: FloatArray | sparse.csr_array, root: FloatArray) -> FloatArray | sparse.csr_array:
    """D^-1/2 W D^-1/2, dense if small; entries beyond -2 and 1e100 would say no more, and can overflow."""
    with np.errstate(over="ignore"):
        if isinstance(coupling, np.ndarray):
            unit = np.clip(coupling / root[:, None] / root, -2.0, 1e100)
            np.fill_diagonal(unit, 1.0)
            return unit
        rows = row_of_each_entry(coupling)
        data = np.clip(coupling.data / root[rows] / root[coupling.indices], -2.0, 1e100)
    data[rows == coupling.indices] = 1.0
    scaled = with_data(coupling, data)
    return scaled.toarray() if root.size <= DENSE_VARIABLES else scaled

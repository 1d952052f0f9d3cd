"""Sparse symmetric matrices: analyse a pattern once, then factor, solve and invert on it for any values.

The sparse twin of `dense`. P S A S P' = L D L' with S powers of two and an order P fixed by the pattern, so memory and
operations are known before any number; an indefinite matrix has a factor like any other, and its `inertia` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nnbm.arrays import FloatArray, IntArray, as_floats, as_sparse_floats
from nnbm.linalg.boosts import Boosts, boosts
from nnbm.linalg.fronts import Fronts, fronts
from nnbm.linalg.graph import IndexArray, compressed, first_asymmetric
from nnbm.linalg.ldl import CROWDED, SINGULAR, decompose
from nnbm.linalg.ordering import elimination_order
from nnbm.linalg.scaling import first_crooked, scales
from nnbm.linalg.selected import mirror_later, selected_inverse
from nnbm.linalg.substitution import substitute

__all__ = ["Inertia", "SparseFactor", "Symbolic", "analyse", "factor"]

_GROWTHS = (1e2, 1e5, 1e8)  # how far entries may grow: farther boosts fewer pivots, and costs digits
_MOST_BOOSTED = 64

_NOISE = 1e-8  # disturbs the recursion of an indefinite inverse, to see what rounding does to it
_ROUNDING = 1e-12  # a result of a cancelling sum may be off by this; on grids errors reached 1e-12 of what noise does
_LOST = 1e-6
_CHECKED = 8
_FEW = 500  # so many columns of an indefinite inverse are solved for instead
_TOGETHER = 64


class Inertia(NamedTuple):
    """How many eigenvalues are positive, and how many negative; a matrix that has a factor has none that is zero."""

    positive: int
    negative: int


@dataclass(frozen=True, eq=False)
class Symbolic:
    """What is known of all matrices with one pattern: the order of elimination, its fronts, what they cost.

    indptr, indices: the pattern, CSR with sorted rows. order (n,): which row is eliminated when; place: its inverse.
    """

    indptr: IntArray
    indices: IndexArray
    order: IntArray
    place: IndexArray
    fronts: Fronts

    @property
    def n(self) -> int:
        """The order of the matrices."""
        return self.order.size

    @property
    def entries(self) -> int:
        """How many numbers a factor holds."""
        return self.fronts.entries

    @property
    def flops(self) -> float:
        """Operations of a factorisation."""
        return self.fronts.factor_flops

    @property
    def inverse_flops(self) -> float:
        """Operations of a selected inverse once there is a factor."""
        return self.fronts.inverse_flops

    @property
    def bytes(self) -> int:
        """The most memory that numbers take at once, while a definite matrix's factor or selected inverse is made."""
        making = self.fronts.update_room + 4 * self.n
        inverting = self.fronts.inverse_room + 4 * self.n + self.indices.size
        return 8 * (self.entries + max(making, inverting))

    def factor(self, values: ArrayLike, *, replacing: SparseFactor | None = None) -> SparseFactor | None:
        """The factor of the matrix with these values on the pattern, row by row; None if it is singular to rounding.

        A matrix that needs many rows exchanged (zeros all along its diagonal, say) is an error: the order of
        elimination would then depend on the values. replacing: a factor of this analysis that is no longer needed; its
        memory is used again, which saves a large one up to a third of its time.
        """
        found = as_floats("values", values)
        if found.shape != self.indices.shape:
            raise ValueError(
                f"values: one number for each of the pattern's {self.indices.size} entries is needed, but their shape "
                f"is {found.shape}. Take the data of a CSR matrix with that pattern, explicit zeros included."
            )
        if replacing is not None and replacing.symbolic is not self:
            raise ValueError("replacing: a factor of this analysis is needed, but it is another's. Leave it out.")
        scale = scales(self.indptr, self.indices, found)
        crooked = first_crooked(self.indptr, self.indices, found, scale)
        if crooked >= 0:
            raise ValueError(
                f"values: the matrix must be symmetric, but {_place(self.indptr, self.indices, crooked)} = "
                f"{found[crooked]} differs from its mirror image. Average the halves, (A + A.T) / 2."
            )
        panels = np.empty(self.entries) if replacing is None else replacing.panels
        for growth in _GROWTHS:
            pivots = np.empty(self.n)
            boosted, added = np.empty(_MOST_BOOSTED, dtype=np.int64), np.empty(_MOST_BOOSTED)
            count = decompose(
                *self.fronts.structure, self.fronts.update_room, self.fronts.largest, self.indptr, self.indices, found,
                scale, self.order, self.place, growth, panels, pivots, boosted, added,
            )  # fmt: skip
            if count == SINGULAR:
                return None
            if count != CROWDED:
                return _taken_back(self, found, scale, panels, pivots, boosted[:count], added[:count])
        raise np.linalg.LinAlgError(
            f"values: more than {_MOST_BOOSTED} rows would have to be exchanged, but the order of elimination is fixed "
            "by the pattern. Use a method with pivoting, e.g. scipy.sparse.linalg.splu, or a larger diagonal."
        )


@dataclass(frozen=True, eq=False)
class SparseFactor:
    """The factor of an indefinite or definite matrix (n, n); `boosts` and `matrix` only where it is not positive."""

    symbolic: Symbolic
    scale: FloatArray
    panels: FloatArray
    pivots: FloatArray
    boosts: Boosts | None
    matrix: sparse.csr_array | None

    def solve(self, right: ArrayLike) -> FloatArray:
        """A^{-1} right for right (n,) or (n, k)."""
        found = as_floats("right", right)
        n = self.symbolic.n
        if found.ndim not in (1, 2) or found.shape[0] != n:
            raise ValueError(
                f"right: its shape must be ({n},) or ({n}, k), but it is {found.shape}. Turn right sides into columns."
            )
        columns = found if found.ndim == 2 else found[:, None]
        solution = self._once(columns)
        if self.matrix is not None:
            solution += self._once(columns - self.matrix @ solution)
        return solution.reshape(found.shape)

    def _once(self, right: FloatArray) -> FloatArray:
        """Solve for columns (n, k), as well as the pivots allow."""
        symbolic = self.symbolic
        rows = np.ascontiguousarray((right * self.scale[:, None])[symbolic.order].T)
        substitute(*symbolic.fronts.structure, symbolic.fronts.largest, self.panels, self.pivots, rows)
        if self.boosts is not None:
            self.boosts.correct(rows)
        return rows.T[symbolic.place] * self.scale[:, None]

    def inverse_on_pattern(self) -> FloatArray:
        """The entries of A^{-1} where the pattern has entries, in the order of its values."""
        return self.selected_inverse()[0]

    def inverse_diagonal(self) -> FloatArray:
        """(n,) the diagonal of A^{-1}."""
        return self.selected_inverse()[1]

    def selected_inverse(self) -> tuple[FloatArray, FloatArray]:
        """Both at the price of one: A^{-1} on the pattern, in the order of its values, and its diagonal (n,)."""
        if self.matrix is not None and self.symbolic.n <= _FEW:
            return self._by_columns()
        values, diagonal = self._selected(0.0)
        if self.matrix is not None and not self._holds(values, diagonal):
            raise np.linalg.LinAlgError(
                "selected_inverse: far inside the spectrum of an indefinite matrix its recursion amplifies rounding, "
                "and here it may leave fewer than six digits. Solve for the columns that are needed."
            )
        return values, diagonal

    def _by_columns(self) -> tuple[FloatArray, FloatArray]:
        """The same from refined solves: slower, and right wherever they are."""
        symbolic = self.symbolic
        values, diagonal = np.empty(symbolic.indices.size), np.empty(symbolic.n)
        for first in range(0, symbolic.n, _TOGETHER):
            columns = np.arange(first, min(first + _TOGETHER, symbolic.n))
            units = np.zeros((symbolic.n, columns.size))
            units[columns, columns - first] = 1.0
            found = self.solve(units)
            begins = symbolic.indptr[first : first + columns.size + 1]
            entries = slice(begins[0], begins[-1])
            values[entries] = found[symbolic.indices[entries], np.repeat(columns - first, np.diff(begins))]
            diagonal[columns] = found[columns, columns - first]
        mirror_later(symbolic.indptr, symbolic.indices, symbolic.place, values)
        return values, diagonal

    def _holds(self, values: FloatArray, diagonal: FloatArray) -> bool:
        """Whether rounding has left six digits of the largest entry, by what noise does to it and by a few solves."""
        found = self._in_units(values, diagonal)
        bound = _LOST * float(np.abs(found).max())
        amplified = float(np.abs(self._in_units(*self._selected(_NOISE)) - found).max()) / _NOISE
        if not amplified * _ROUNDING <= bound:
            return False
        largest = np.argsort(-np.abs(found[-diagonal.size :]), kind="stable")[:_CHECKED]
        columns = np.zeros((diagonal.size, largest.size))
        columns[largest, np.arange(largest.size)] = 1.0
        solved = self.solve(columns)[largest, np.arange(largest.size)]
        return float(np.abs((solved - diagonal[largest]) / self.scale[largest] / self.scale[largest]).max()) <= bound

    def _in_units(self, values: FloatArray, diagonal: FloatArray) -> FloatArray:
        """Entries and diagonal of A^{-1} as those of the inverse of S A S."""
        rows = np.repeat(self.scale, np.diff(self.symbolic.indptr))
        return np.concatenate([values / rows / self.scale[self.symbolic.indices], diagonal / self.scale / self.scale])

    def _selected(self, noise: float) -> tuple[FloatArray, FloatArray]:
        """The selected inverse, everything disturbed by a relative `noise`."""
        symbolic = self.symbolic
        values, diagonal = np.empty(symbolic.indices.size), np.empty(symbolic.n)
        pattern = (symbolic.indptr, symbolic.indices)
        selected_inverse(
            *symbolic.fronts.structure, symbolic.fronts.inverse_room, symbolic.fronts.largest, *pattern, self.scale,
            symbolic.order, symbolic.place, self.panels, self.pivots, noise, values, diagonal,
        )  # fmt: skip
        if self.boosts is not None:
            self.boosts.correct_inverse(*pattern, symbolic.place, self.scale, values, diagonal)
        return values, diagonal

    @property
    def inertia(self) -> Inertia:
        """How many eigenvalues of A are positive, and how many negative (Sylvester's law)."""
        negative = int((self.pivots < 0).sum()) + (0 if self.boosts is None else self.boosts.negative)
        return Inertia(self.symbolic.n - negative, negative)

    @property
    def log_determinant(self) -> float:
        """ln |det A|; its sign is that of (-1)^negative."""
        scaled = float(np.log(np.abs(self.pivots)).sum()) - 2.0 * float(np.log(self.scale).sum())
        return scaled if self.boosts is None else scaled + self.boosts.log_determinant


def _taken_back(
    symbolic: Symbolic, values: FloatArray, scale: FloatArray, panels: FloatArray, pivots: FloatArray,
    boosted: IntArray, added: FloatArray,
) -> SparseFactor | None:  # fmt: skip
    """The factor of A, from that of a matrix with some boosted pivots; None if A is singular."""
    found = None
    if boosted.size:
        units = np.zeros((boosted.size, symbolic.n))
        units[np.arange(boosted.size), boosted] = 1.0
        substitute(*symbolic.fronts.structure, symbolic.fronts.largest, panels, pivots, units)
        found = boosts(boosted, added, units)
        if found is None:
            return None
    matrix = None
    if boosted.size or (pivots < 0).any():
        shape = (symbolic.n, symbolic.n)
        matrix = sparse.csr_array((values.copy(), symbolic.indices, symbolic.indptr), shape=shape)
    return SparseFactor(symbolic, scale, panels, pivots, found, matrix)


def analyse(pattern: Any) -> Symbolic:
    """The symbolic analysis of a symmetric sparse pattern (n, n), explicit zeros included; its numbers do not matter.

    Values are then expected in the order of the pattern's data in CSR with sorted rows.

    >>> from scipy import sparse
    >>> chain = sparse.diags_array([[-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0]], offsets=[-1, 0, 1]).tocsr()
    >>> symbolic = analyse(chain)
    >>> found = symbolic.factor(chain.data)
    >>> found.inertia
    Inertia(positive=3, negative=0)
    >>> found.inverse_diagonal()
    array([0.75, 1.  , 0.75])
    >>> symbolic.factor(chain.data - 1.0 * (chain.data == 2.0)).inertia
    Inertia(positive=2, negative=1)
    """
    return _analysis(_symmetric("pattern", pattern))


def factor(matrix: Any) -> SparseFactor | None:
    """The factor of a sparse symmetric matrix (n, n), or None if it is singular to rounding."""
    found = _symmetric("matrix", matrix)
    return _analysis(found).factor(found.data)


def _analysis(pattern: sparse.csr_array) -> Symbolic:
    indptr, indices = pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32)
    graph, vertex = compressed(indptr, indices)
    found, vertices = fronts(graph, elimination_order(graph))
    when = np.empty(graph.n, dtype=np.int64)
    when[vertices] = np.arange(graph.n)
    order = np.argsort(when[vertex], kind="stable")
    place = np.empty(order.size, dtype=np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    return Symbolic(indptr, indices, order, place, found)


def _symmetric(name: str, matrix: Any) -> sparse.csr_array:
    """A square sparse matrix with a symmetric pattern as CSR with sorted rows, or an error."""
    if not sparse.issparse(matrix):
        raise TypeError(
            f"{name}: a scipy.sparse matrix is needed, but it is a {type(matrix).__name__}. "
            "Wrap it in scipy.sparse.csr_array."
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name}: it must be square, but its shape is {matrix.shape}. Give a symmetric matrix.")
    found = as_sparse_floats(name, matrix)
    alone = first_asymmetric(found.indptr.astype(np.int64), found.indices.astype(np.int32))
    if alone >= 0:
        raise ValueError(
            f"{name}: its pattern must be symmetric, but {_place(found.indptr, found.indices, alone)} has no "
            "mirror image. Give both halves, zeros included."
        )
    return found


def _place(indptr: IntArray, indices: IndexArray, entry: int) -> str:
    """An entry of a CSR matrix by row and column."""
    return f"[{int(np.searchsorted(indptr, entry, side='right')) - 1}, {int(indices[entry])}]"

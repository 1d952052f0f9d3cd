"""The model: p(x) = exp(b.x - 1/2 x'Wx) / Z on x >= 0 (EQ 1), or between other ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nnbm.arrays import FloatArray, IntArray, as_floats, as_reals, as_sparse_floats, as_whole, first_place, forbid
from nnbm.copositive import Copositivity, examine_in_box
from nnbm.ends import checked_ends, checked_points
from nnbm.errors import NotCopositive
from nnbm.site import Site, site_between

__all__ = ["NNBM", "Coupling"]

Coupling: TypeAlias = FloatArray | sparse.csr_array

_ASYMMETRY = 1e-10  # relative to sqrt(w_ii w_jj); what rounding in A'A can leave


@dataclass(frozen=True, eq=False, repr=False)
class NNBM:
    """A Nonnegative Boltzmann machine: p(x) ∝ exp(b.x - 1/2 x'Wx) on x >= 0 (EQ 1), or on lower <= x <= upper.

    bias: (n,). coupling: (n, n), symmetric with positive diagonal, strictly copositive; a dense array or any
    scipy.sparse matrix, copied and kept in its kind (sparse as CSR; explicit zeros are not edges). lower, upper: the
    ends of every variable, (n,) or one number for all, infinite where there is none: doubly truncated normals. A
    variable with two ends may have any w_ii, and x'Wx > 0 is needed only along directions that never leave the box.
    names: (n,) labels used in tables, figures and messages; None takes those of a labelled table (pandas), if they are
    strings.
    Attributes cannot be set and every array is read-only, the three inside a sparse coupling included; SciPy's sparse
    object around them cannot be sealed, so do not assign to it.

    >>> model = NNBM([0.5, -0.2], [[1.0, 0.3], [0.3, 2.0]], names=["a", "b"])
    >>> model
    NNBM(n=2, edges=1, dense, positive definite)
    >>> model.energy([[0.0, 0.0], [1.0, 1.0]])
    array([0. , 1.5])
    >>> NNBM([0, 0], [[1, -2], [-2, 1]])
    Traceback (most recent call last):
    ...
    nnbm.errors.NotCopositive: coupling: x'Wx > 0 is needed for every x >= 0, or Z is infinite, but x[0] = 0.5, \
x[1] = 0.5 has x'Wx = -0.5. Raise the diagonal or weaken the negative couplings along that direction.
    >>> NNBM([0, 0], [[1, -2], [-2, 1]], upper=3.0)
    NNBM(n=2, edges=1, dense, bounded)
    """

    bias: FloatArray
    coupling: Coupling
    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...]
    copositivity: Copositivity  # how we know that Z is finite, or that we do not

    def __init__(
        self,
        bias: ArrayLike,
        coupling: ArrayLike | Any,
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        names: Sequence[str] | None = None,
    ) -> None:
        labels = names if names is not None else _labels(bias, coupling)
        b = as_floats("bias", bias)
        if b.ndim != 1 or b.size == 0:
            raise ValueError(f"bias: one number per variable, shape (n,), is needed; its shape is {b.shape}.")
        low, high = checked_ends(lower, upper, b.size, labels)
        w = _sparse_coupling(coupling) if sparse.issparse(coupling) else _dense_coupling(coupling)
        if w.shape[0] != b.size:
            raise ValueError(
                f"bias, coupling: they must speak of the same n variables, but bias has {b.size} and coupling "
                f"{w.shape[0]}. Check which one was cut or transposed."
            )
        _check_diagonal(w.diagonal(), low, high)
        copositivity = examine_in_box(w, low, high)
        if copositivity.witness is not None:
            nonnegative = (low >= 0.0).all() and np.isposinf(high).all()
            _refuse(w, copositivity.witness, "x >= 0" if nonnegative else "direction x that never leaves the box")
        b = b.copy()
        b.flags.writeable = False
        # frozen: the only place where attributes are set
        object.__setattr__(self, "bias", b)
        object.__setattr__(self, "coupling", w)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "names", _checked_names(labels, b.size))
        object.__setattr__(self, "copositivity", copositivity)

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.bias.size

    @property
    def diagonal(self) -> FloatArray:
        """(n,) the w_ii."""
        return np.asarray(self.coupling.diagonal())

    @cached_property
    def site(self) -> Site:
        """One variable as inference and estimators see it: ln Z1, moments and their inverse between its ends."""
        return site_between(self.lower, self.upper)

    @property
    def is_nonnegative(self) -> bool:
        """Whether every variable lives on x >= 0, without an upper end."""
        return bool((self.lower == 0.0).all() and np.isposinf(self.upper).all())

    @property
    def edges(self) -> tuple[IntArray, IntArray]:
        """(i, j), each (edges,), with i < j and w_ij != 0, in row order."""
        i, j, _ = self._upper_entries
        return i, j

    @property
    def edge_couplings(self) -> FloatArray:
        """(edges,) the w_ij in the order of `edges`."""
        return self._upper_entries[2]

    @cached_property
    def _upper_entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """(i, j, w_ij), each (edges,), of the edges in row order."""
        upper = sparse.triu(self.coupling, k=1, format="coo")
        order = np.lexsort((upper.col, upper.row))
        entries = upper.row.astype(np.int64)[order], upper.col.astype(np.int64)[order], upper.data[order]
        for part in entries:
            part.flags.writeable = False
        return entries

    @property
    def graph(self) -> sparse.csr_array:
        """(n, n) the couplings w_ij, i != j, as CSR without a diagonal."""
        i, j = self.edges
        w = self.edge_couplings
        rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
        return sparse.csr_array((np.concatenate([w, w]), (rows, columns)), shape=(self.n, self.n))

    def energy(self, x: ArrayLike) -> FloatArray:
        """E(x) = -b.x + 1/2 x'Wx for one point or many: (..., n) -> (...)."""
        points = self._points(x)
        flat = points.reshape(-1, self.n)
        quadratic = np.einsum("ki,ki->k", flat, np.asarray((self.coupling @ flat.T).T))
        return np.asarray((0.5 * quadratic - flat @ self.bias).reshape(points.shape[:-1]))

    def conditional(self, site: int, x: ArrayLike) -> tuple[FloatArray, float]:
        """(l, r) of x_site given the others: q(x_i; l, r) with l = b_i - sum_{j != i} w_ij x_j, r = w_ii (EQ 1).

        x: (..., n), whose own entry at `site` does not matter; l has shape (...).
        """
        chosen = as_whole("site", site)
        if not -self.n <= chosen < self.n:
            raise IndexError(f"site: 0 to {self.n - 1} is meant, but site = {chosen}.")
        i = chosen % self.n
        others = self._with_last_axis(x).copy()
        others[..., i] = np.clip(0.0, self.lower[i], self.upper[i])
        others = self._points(others)
        others[..., i] = 0.0
        row = self.coupling[[i], :]
        return np.asarray(self.bias[i] - (row @ others.reshape(-1, self.n).T).reshape(others.shape[:-1])), float(
            self.diagonal[i]
        )

    def _with_last_axis(self, x: ArrayLike) -> FloatArray:
        points = as_reals("x", x)
        if points.ndim == 0 or points.shape[-1] != self.n:
            raise ValueError(
                f"x: the last axis must hold the {self.n} variables, but its shape is {points.shape}. "
                "Transpose it, or pick the model's columns."
            )
        return points

    def _points(self, x: ArrayLike) -> FloatArray:
        return checked_points("x", self._with_last_axis(x), self.lower, self.upper, "Clip it or drop that row.")

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.coupling) else "dense"
        i, _ = self.edges
        return f"NNBM(n={self.n}, edges={i.size}, {kind}, {self.copositivity.verdict.name.lower().replace('_', ' ')})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NNBM):
            return NotImplemented
        if self.names != other.names or not np.array_equal(self.bias, other.bias):
            return False
        if not (np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)):
            return False
        mine, theirs = self.coupling, other.coupling
        if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
            return type(mine) is type(theirs) and np.array_equal(mine, theirs)
        return mine.nnz == theirs.nnz and (mine != theirs).nnz == 0

    def __hash__(self) -> int:
        return hash((self.names, (self.bias + 0.0).tobytes()))  # -0.0 == 0.0, but not their bytes


def _dense_coupling(coupling: ArrayLike) -> FloatArray:
    w = as_floats("coupling", coupling)
    _require_square(w.shape)
    w = w.copy()
    scale = _scale(np.diagonal(w), np.abs(w).max(axis=1, initial=0.0))
    with np.errstate(over="ignore"):  # inf is uneven, too
        difference = np.abs(w - w.T)
    uneven = difference > _ASYMMETRY * np.outer(scale, scale)
    if uneven.any():
        i, j = first_place(uneven)
        raise _asymmetric(i, j, w[i, j], w[j, i])
    if difference.any():
        w = 0.5 * w + 0.5 * w.T  # halves first: their sum may not be a float
    w.flags.writeable = False
    return w


def _sparse_coupling(coupling: Any) -> sparse.csr_array:
    _require_square(coupling.shape)
    w = as_sparse_floats("coupling", coupling)
    w.eliminate_zeros()
    scale = _scale(w.diagonal(), abs(w).max(axis=1).toarray().ravel())
    transposed = sparse.csr_array(w.T)
    transposed.sort_indices()
    same_pattern = np.array_equal(w.indptr, transposed.indptr) and np.array_equal(w.indices, transposed.indices)
    if not (same_pattern and np.array_equal(w.data, transposed.data)):
        with np.errstate(over="ignore"):
            difference = sparse.coo_array(abs(w - transposed))
        i, j = difference.coords
        uneven = difference.data > _ASYMMETRY * scale[i] * scale[j]
        if uneven.any():
            k = int(np.argmax(uneven))
            raise _asymmetric(int(i[k]), int(j[k]), w[i[k], j[k]], w[j[k], i[k]])
        w = sparse.csr_array(0.5 * w + 0.5 * transposed)
        w.sort_indices()
    for part in (w.data, w.indices, w.indptr):
        part.flags.writeable = False
    return w


def _require_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"coupling: a square matrix (n, n) is needed; its shape is {shape}.")


def _scale(diagonal: FloatArray, largest: FloatArray) -> FloatArray:
    """(n,) the unit of each variable: 1/sqrt w_ii, or what its largest coupling gives where w_ii is not positive."""
    return np.sqrt(np.where(diagonal > 0.0, diagonal, largest))


def _check_diagonal(diagonal: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    forbid(
        "diagonal of coupling",
        diagonal,
        (diagonal <= 0) & ~(np.isfinite(lower) & np.isfinite(upper)),
        "every w_ii must be positive" + ("" if np.isinf(upper).all() else " of a variable that lacks an end"),
        "Z is infinite otherwise; the diagonal belongs to `coupling`.",
    )


def _asymmetric(i: int, j: int, upper: float, lower: float) -> ValueError:
    return ValueError(
        f"coupling: it must be symmetric, but coupling[{i}, {j}] = {upper} and coupling[{j}, {i}] = {lower}. "
        "Use (W + W.T) / 2 if both halves mean the same, or fill the missing half."
    )


def _labels(bias: Any, coupling: Any) -> Sequence[str] | None:
    """The names in labelled tables (pandas, known by what they offer), once they are seen to agree in their order."""
    if not (hasattr(coupling, "columns") and hasattr(coupling, "index")):
        return None
    rows, columns = list(coupling.index), list(coupling.columns)
    if rows != columns:
        raise ValueError(
            "coupling: its rows and columns must be labelled alike, in one order, but the labels differ. "
            "Reorder it, e.g. coupling.loc[coupling.columns]."
        )
    biases = getattr(bias, "index", rows)
    if not callable(biases) and list(biases) != rows:  # a list has a method of this name
        raise ValueError(
            "bias: its labels must be those of coupling, in the same order, but they differ. "
            "Reorder it, e.g. bias.loc[coupling.columns]."
        )
    return rows if all(isinstance(label, str) for label in rows) else None


def _checked_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str):
        raise TypeError(f"names: one name per variable is needed, but names = {names!r} is one string. Use a list.")
    labels = tuple(str(name) for name in names)
    if len(labels) != n:
        raise ValueError(f"names: one name per variable is needed, but there are {len(labels)} for {n} variables.")
    (name, times), *_ = Counter(labels).most_common(1)
    if times > 1:
        raise ValueError(f"names: they must differ, but {name!r} stands more than once. Rename one of them.")
    return labels


def _refuse(w: Coupling, witness: FloatArray, directions: str) -> None:
    places = np.flatnonzero(witness)
    shown = ", ".join(f"x[{k}] = {witness[k]:.4g}" for k in places[:6])
    more = f" ({places.size - 6} more)" if places.size > 6 else ""
    raise NotCopositive(
        f"coupling: x'Wx > 0 is needed for every {directions}, or Z is infinite, but {shown}{more} "
        f"has x'Wx = {float(witness @ (w @ witness)):.4g}. "
        "Raise the diagonal or weaken the negative couplings along that direction.",
        witness,
    )

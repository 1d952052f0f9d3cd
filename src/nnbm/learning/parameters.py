"""What every estimator returns: b, w_ii and w_ij on the edges, with how they came about and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from nnbm.arrays import FloatArray
from nnbm.errors import NotCopositive
from nnbm.learning.edges import EdgeSet
from nnbm.learning.frame import Frame
from nnbm.learning.labels import listed
from nnbm.model import NNBM
from nnbm.site import HALF_LINE, Site

__all__ = ["Estimate", "Parameters"]


@dataclass(frozen=True, eq=False)
class Parameters:
    """bias (n,), diagonal (n,) the w_ii, couplings (edges,) the w_ij; also used for their standard errors."""

    edges: EdgeSet
    bias: FloatArray
    diagonal: FloatArray
    couplings: FloatArray

    @classmethod
    def from_vector(cls, edges: EdgeSet, vector: FloatArray) -> Parameters:
        """From one vector (2n + edges,)."""
        n = edges.n
        return cls(edges, vector[:n], vector[n : 2 * n], vector[2 * n :])

    @classmethod
    def of_model(cls, model: NNBM, edges: EdgeSet) -> Parameters:
        """A model's parameters on these edges."""
        couplings = np.asarray(model.coupling[edges.i, edges.j]).ravel()
        return cls(edges, model.bias, model.diagonal, couplings)

    @property
    def vector(self) -> FloatArray:
        """(2n + edges,)."""
        return np.concatenate([self.bias, self.diagonal, self.couplings])

    @property
    def dense(self) -> FloatArray:
        """(n, n) W."""
        return self.edges.symmetric(self.couplings, self.diagonal)

    @property
    def coupling(self) -> FloatArray | sparse.csr_array:
        """W: dense if all pairs are edges, else sparse."""
        if self.edges.is_complete:
            return self.dense
        own, e = np.arange(self.edges.n), self.edges
        rows, columns = np.concatenate([own, e.i, e.j]), np.concatenate([own, e.j, e.i])
        values = np.concatenate([self.diagonal, self.couplings, self.couplings])
        return sparse.csr_array((values, (rows, columns)), shape=(e.n, e.n))

    def in_units(self, scale: FloatArray) -> Parameters:
        """The parameters of x = scale y, from those of y: b / c, w_ij / (c_i c_j)."""
        e = self.edges
        return Parameters(e, self.bias / scale, self.diagonal / scale**2, self.couplings / (scale[e.i] * scale[e.j]))

    def seen_from(self, frame: Frame) -> Parameters:
        """The parameters of a = (x - centre) / scale: b~ = scale (b - W centre), W~ = scale W scale."""
        here, offset = self.in_units(1.0 / frame.scale), frame.offset
        return replace(here, bias=here.bias - here.diagonal * offset - self.edges.pulls(here.couplings, offset))

    def seen_back(self, frame: Frame) -> Parameters:
        """The parameters of x, from those of a = (x - centre) / scale."""
        offset = frame.offset
        bias = self.bias + self.diagonal * offset + self.edges.pulls(self.couplings, offset)
        return replace(self, bias=bias).in_units(frame.scale)

    def model(self, names: Sequence[str] = (), site: Site = HALF_LINE) -> NNBM:
        """The model on this domain; NotCopositive where these parameters have no finite Z."""
        needed = ~np.isfinite(np.subtract(site.upper, site.lower))  # between two ends w_ii may have any sign
        bad = ~(np.isfinite(self.bias) & np.isfinite(self.diagonal) & ((self.diagonal > 0) | ~needed))
        if bad.any():
            raise ValueError(f"the fitted w_ii of {listed(names, np.flatnonzero(bad))} is not positive. {_FEW}")
        try:
            return NNBM(self.bias, self.coupling, lower=site.lower, upper=site.upper, names=names or None)
        except NotCopositive as error:
            places = np.flatnonzero(error.witness)
            raise NotCopositive(
                f"the fitted density has no norm (Z is infinite): it grows along {listed(names, places)} together. "
                f"{_FEW}",
                error.witness,
            ) from error


_FEW = "Use more rows, fewer edges, or pseudolikelihood with a ridge (ridge=0.01 and up)."


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimator's answer.

    errors: standard errors, where the method has them. iterations: its steps. remarks: what else there is to know, in
    sentences. doubts: why it is not to be relied on, if it is not.
    """

    method: str
    parameters: Parameters
    iterations: int
    errors: Parameters | None = None
    remarks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def with_errors(self, errors: Parameters | None) -> Estimate:
        """The same with standard errors."""
        return replace(self, errors=errors)

    def with_remarks(self, *remarks: str) -> Estimate:
        """The same with more to say."""
        return replace(self, remarks=self.remarks + remarks)

    def with_doubts(self, *doubts: str) -> Estimate:
        """The same with reasons not to rely on it."""
        return replace(self, doubts=self.doubts + doubts)

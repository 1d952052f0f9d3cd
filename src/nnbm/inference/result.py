"""What `infer` returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from nnbm.arrays import FloatArray
from nnbm.inference.response import Susceptibilities

__all__ = ["Derived", "Inference", "Known", "Status"]


class Status(enum.Enum):
    """How far a result is to be relied on; the value is the sentence the user reads."""

    CONVERGED = "converged"
    INACCURATE = (
        "converged, but this approximation is not accurate here: use method='auto', 'pairs' or 'epc', or sample"
    )
    SEVERAL_MODES = (
        "converged to one of several stable solutions (the others are in `alternatives`): "
        "the density has several modes, and averages over them need sample"
    )
    UNSTABLE = (
        "no stable solution (H indefinite): this approximation breaks down here, most likely because the density has "
        "several modes; use another method, or sample"
    )
    NOT_CONVERGED = "not converged: weaken the couplings, allow more sweeps, use another method, or sample"
    NO_SITE = "no one-variable density has the moments that this method asks for: use another method, or sample"

    @property
    def reliable(self) -> bool:
        """Whether nothing speaks against the result."""
        return self is Status.CONVERGED


class Derived(Protocol):
    """What follows from a solution at some cost, so it is worked out when it is asked for."""

    def covariance(self) -> FloatArray | None:
        """(n, n), or None where the method has none."""
        ...

    def log_partition(self) -> float | None:
        """ln Z, or None where the method has none."""
        ...

    def susceptibilities(self) -> Susceptibilities | None:
        """The paper's (M, V, L, R), or None where the method has none."""
        ...


@dataclass(frozen=True)
class Known:
    """What is not worked out anew when it is asked for: a covariance (n, n) and ln Z."""

    matrix: FloatArray
    value: float

    def covariance(self) -> FloatArray | None:
        """It."""
        return self.matrix

    def log_partition(self) -> float | None:
        """It."""
        return self.value

    def susceptibilities(self) -> Susceptibilities | None:
        """None."""
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Inference:
    """Means, variances, covariances and ln Z of a model by one method, and how far to trust them.

    mean, variance: (n,). expected_error: largest error of a mean, or of a standard deviation, to be expected, in units
    of the variable's standard deviation. history: the residual of every sweep. detail: what else there is to say.
    l, r: (n,) natural parameters of each variable's one-variable density, or None. alternatives: other stable
    solutions, best first; for an unstable result those of naive mean field, which tell at least where the modes lie.

    >>> from nnbm import gallery, infer
    >>> r = infer(gallery.orientation_tuning(36, epsilon=1.0), method="isusp")
    >>> r.mean.shape, r.covariance.shape, r.status.name
    ((36,), (36, 36), 'CONVERGED')
    """

    method: str
    names: tuple[str, ...]
    status: Status
    mean: FloatArray
    variance: FloatArray
    expected_error: float
    derived: Derived
    history: tuple[float, ...] = ()
    detail: str = ""
    l: FloatArray | None = None
    r: FloatArray | None = None
    alternatives: tuple[Inference, ...] = ()

    @cached_property
    def covariance(self) -> FloatArray | None:
        """(n, n) covariances, or None where the method has none."""
        return self.derived.covariance()

    @cached_property
    def log_partition(self) -> float | None:
        """ln Z, or None where the method has none."""
        return self.derived.log_partition()

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.mean.size

    @property
    def converged(self) -> bool:
        """Whether the method's own equations have the stable solution that this is."""
        return self.status in (Status.CONVERGED, Status.INACCURATE, Status.SEVERAL_MODES)

    @property
    def iterations(self) -> int:
        """Sweeps of all attempts together."""
        return len(self.history)

    @cached_property
    def second_moment(self) -> FloatArray:
        """(n,) <x_i²>."""
        return self.variance + self.mean**2

    @property
    def standard_deviation(self) -> FloatArray:
        """(n,) the square root of `variance`."""
        return np.sqrt(self.variance)

    @cached_property
    def correlation(self) -> FloatArray:
        """(n, n) covariance in units of the standard deviations; raises where the method has no covariance."""
        if self.covariance is None:
            raise ValueError(f"correlation: the method {self.method!r} has no covariance. Use 'susp' or another one.")
        sd = np.sqrt(np.diagonal(self.covariance))
        return self.covariance / np.outer(sd, sd)

    @cached_property
    def susceptibilities(self) -> Susceptibilities:
        """The paper's (M, V, L, R): derivatives of m, v, l, r by b."""
        found = self.derived.susceptibilities()
        if found is None:
            raise ValueError(
                f"susceptibilities: the method {self.method!r} has none here. Use 'susp' or 'isusp', and see status."
            )
        return found

    def label(self, site: int) -> str:
        """The variable's name, or x[site]."""
        return self.names[site] if self.names else f"x[{site}]"

    def __repr__(self) -> str:
        error = f", to {self.expected_error:.1g} sd" if np.isfinite(self.expected_error) else ""
        return f"Inference({self.method}, n={self.n}, {self.status.name.lower().replace('_', ' ')}{error})"

"""Hamiltonian sampling of auxiliary fields, from which the walls are integrated out: collective moves for any model.

Given fields l the variables are independent, q(x_i; l_i, D_i), and the fields' own density is smooth: nothing bounces
(`field_dynamics`). A sweep draws fields given x, moves them along a trajectory, accepts by Metropolis' rule, and draws
x given the fields. Such fields are old for spins (Hubbard 1959; Zhang, Sutton, Storkey & Ghahramani, Continuous
relaxations for discrete Hamiltonian Monte Carlo, 2012); here every site is integrated out exactly (EQ 2), ends and all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnbm.arrays import FloatArray, as_whole
from nnbm.model import NNBM
from nnbm.sampling.field_chain import FieldChain
from nnbm.sampling.field_tuning import tuned
from nnbm.sampling.protocol import Chain
from nnbm.stream import Seed, sequence, streams

__all__ = ["Fields"]


@dataclass(frozen=True)
class Fields:
    """Hamiltonian Monte Carlo in the fields; a sweep is one trajectory, some ten to a few hundred products with W.

    For any model: W need not be positive definite, ends may be any, W dense or sparse. Step size, masses of soft
    directions and length come from a pilot run, of less than a second, from the first chain's start; then they are
    frozen. length: about how many steps a trajectory takes, each of which costs one product; None leaves it to the
    pilot. `Samples.info` tells each chain's acceptance rate, step size, mean number of steps, and the largest speed-up
    of a soft direction.

    >>> from nnbm import gallery, sample
    >>> s = sample(gallery.orientation_tuning(36, epsilon=4.0), draws=1000, method=Fields(), seed=0)
    >>> bool((s.info["acceptance"] > 0.5).all())
    True
    """

    length: int | None = None
    name = "fields"

    def __post_init__(self) -> None:
        if self.length is not None and as_whole("length", self.length) < 2:
            raise ValueError(f"length: at least 2 steps, or None to leave it to a pilot, but length = {self.length}.")

    def chains(self, model: NNBM, starts: FloatArray, seed: Seed, threads: int) -> Sequence[Chain]:  # noqa: ARG002
        """One chain per row of `starts` (chains, n)."""
        for_pilot, for_chains = sequence(seed).spawn(2)
        pilot = tuned(model, starts[0], for_pilot, self.length)
        rows = streams(for_chains, starts.shape[0])
        return [FieldChain.of(pilot, x, row) for x, row in zip(starts, rows, strict=True)]

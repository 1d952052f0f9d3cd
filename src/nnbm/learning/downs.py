"""Downs 2001 in one shot: the second-order expansion around exponentials, solved for the parameters (EQ 10)."""

from __future__ import annotations

from nnbm.learning.moments import Moments
from nnbm.learning.parameters import Estimate, Parameters
from nnbm.site import HALF_LINE

__all__ = ["downs"]


def downs(moments: Moments) -> Estimate:
    """A_ij = -C_ij / (m_i² m_j²), A_ii = (2 m_i² - <x_i²>) / (2 m_i⁴), and b from the means' equation.

    Holds where every variable is close to an exponential (b well below 0). A_ii is negative where <x_i²> > 2 m_i²; the
    estimate is then returned as it is, and has no model. Refused for variables that do not live on x >= 0.
    """
    if moments.site is not HALF_LINE:
        raise ValueError(
            "method: downs expands around exponentials on x >= 0, but some variable has other ends. Use isusp, or "
            "pseudolikelihood."
        )
    m, e = moments.mean, moments.edges
    # in units of the means, where m = 1
    couplings = -(moments.covariance / m[e.i]) / m[e.j]
    diagonal = 0.5 - 0.5 * (moments.variance / m) / m
    bias = -1.0 + 2.0 * diagonal - 2.0 * diagonal**2 + e.sums(couplings - couplings**2)
    return Estimate("downs", Parameters(e, bias, diagonal, couplings).in_units(m), 1)

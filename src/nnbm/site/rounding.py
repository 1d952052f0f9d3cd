"""What a wall's place does to the log-density l x - r x²/2, rounded once (Dekker's product) instead of twice."""

from __future__ import annotations

import numpy as np

from nnbm.kernels import kernel

__all__ = ["log_density_at", "product", "slope_at", "tilt_and_slope"]

_VELTKAMP = 134217729.0  # 2^27 + 1


@kernel()
def product(a: float, b: float) -> tuple[float, float]:
    """The product of a and b as the unevaluated sum of two floats (Dekker); without the second beyond 1e300."""
    high = a * b
    a_shifted, b_shifted = _VELTKAMP * a, _VELTKAMP * b
    a_high, b_high = a_shifted - (a_shifted - a), b_shifted - (b_shifted - b)
    a_low, b_low = a - a_high, b - b_high
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    return high, low if -np.inf < low < np.inf else 0.0


@kernel()
def slope_at(place: float, l: float, r: float) -> float:
    """The log-density's slope there, l - r place."""
    high, low = product(r, place)
    return (l - high) - low


@kernel()
def log_density_at(place: float, l: float, r: float) -> float:
    """L place - r place²/2."""
    high, low = product(r, place)
    return place * ((l - 0.5 * high) - 0.5 * low)


@kernel()
def tilt_and_slope(place: float, l: float, r: float) -> tuple[float, float]:
    """L - r place/2, the mean slope from 0 to there, and l - r place."""
    high, low = product(r, place)
    return (l - 0.5 * high) - 0.5 * low, (l - high) - low

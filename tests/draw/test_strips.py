"""Pieces of equal area: they close, and each is found."""

import math

import numpy as np
import pytest

from nnbm.draw import strips


def test_the_strips_close_with_the_tails():
    """Every strip and both exponential tails have the same area: only then is choosing uniformly exact."""
    edges, tops = strips.EDGES, strips.TOPS
    np.testing.assert_allclose(np.diff(edges) * tops, strips._AREA, rtol=1e-11)
    reach = edges[-1]
    assert math.exp(-(reach**2) / 2) / reach == pytest.approx(strips._AREA, rel=1e-10)
    np.testing.assert_allclose(edges, -edges[::-1], atol=0)


def test_the_guide_finds_the_strip():
    edges = strips.EDGES
    inner = edges[:-1]
    for wall in np.concatenate([inner, np.nextafter(inner[1:], -9), np.linspace(edges[0], edges[-1] - 1e-9, 5000)]):
        strip = strips.strip_of(float(wall))
        assert edges[strip - 1] <= wall < edges[strip]

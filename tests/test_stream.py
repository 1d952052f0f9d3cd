"""Our own random streams: the published generator, independent, reproducible."""

import numpy as np
import pytest
from numba import njit

from nnbm.stream import exponential, load, next_bits, sequence, store, streams, uniform


@njit
def many_bits(row, count):
    stream = load(row)
    out = np.empty(count, np.uint64)
    for k in range(count):
        out[k], stream = next_bits(stream)
    store(stream, row)
    return out


@njit
def many(row, count):
    stream = load(row)
    u, e = np.empty(count), np.empty(count)
    for k in range(count):
        u[k], stream = uniform(stream)
        e[k], stream = exponential(stream)
    return u, e


def reference_xoshiro(state, count):
    """xoshiro256++ in Python integers, from the authors' description."""
    mask = 2**64 - 1
    rotate = lambda x, k: ((x << k) | (x >> (64 - k))) & mask  # noqa: E731
    s = [int(word) for word in state]
    out = []
    for _ in range(count):
        out.append((rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask)
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    return out


def test_bits_are_xoshiro256plusplus():
    row = np.array([1, 2, 3, 2**63 + 5], np.uint64)
    expected = reference_xoshiro(row, 1000)
    assert many_bits(row, 400).tolist() + many_bits(row, 600).tolist() == expected


def test_uniform_and_exponential_follow_their_laws():
    u, e = many(streams(3, 1)[0], 1_000_000)
    assert u.min() > 0
    assert u.max() <= 1
    for sorted_probability in (np.sort(u), np.sort(-np.expm1(-e))):
        distance = np.abs(sorted_probability - np.linspace(0, 1, u.size)).max()
        assert distance * np.sqrt(u.size) < 2.6  # p = 3e-6
    assert abs(np.corrcoef(u, e)[0, 1]) < 5e-3


def test_streams_do_not_depend_on_their_number_and_differ():
    few, many_streams = streams(7, 2), streams(7, 50)
    assert (few == many_streams[:2]).all()
    assert np.unique(many_streams, axis=0).shape[0] == 50
    assert (streams(8, 2) != few).any()


def test_seeds_of_every_kind():
    assert (streams(np.random.SeedSequence(7), 3) == streams(7, 3)).all()
    reused = np.random.SeedSequence(7)
    assert (streams(reused, 3) == streams(reused, 3)).all()
    generator = np.random.default_rng(1)
    first, second = streams(generator, 1), streams(generator, 1)
    assert (first != second).any()  # a Generator moves on, as everywhere
    assert (first == streams(np.random.default_rng(1), 1)).all()
    assert (streams(None, 1) != streams(None, 1)).any()
    with pytest.raises(ValueError, match="seed: a whole number >= 0"):
        sequence(-1)

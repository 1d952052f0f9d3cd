"""Random streams we own: xoshiro256++ states seeded through NumPy's SeedSequence.

A stream belongs to a chain (or a block of sites), never to a thread, so the same seed gives the same draws on any
number of threads. Reference: Blackman & Vigna, Scrambled linear pseudorandom number generators (2021).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import as_whole
from nnbm.kernels import kernel

__all__ = [
    "Seed",
    "Stream",
    "StreamArray",
    "exponential",
    "load",
    "next_bits",
    "sequence",
    "store",
    "streams",
    "uniform",
]

Seed = int | np.random.SeedSequence | np.random.Generator | None
StreamArray = NDArray[np.uint64]
Stream = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

_11, _17, _19, _23, _41, _45 = (np.uint64(k) for k in (11, 17, 19, 23, 41, 45))
_TO_UNIT = 2.0**-53


def streams(seed: Seed, count: int) -> StreamArray:
    """`count` independent generator states, (count, 4); the k-th does not depend on `count`.

    >>> bool((streams(1, 2)[0] == streams(1, 5)[0]).all())
    True
    """
    return np.stack([child.generate_state(4, np.uint64) for child in sequence(seed).spawn(count)])


def sequence(seed: Seed) -> np.random.SeedSequence:
    """The SeedSequence that a seed of any kind stands for."""
    if isinstance(seed, np.random.SeedSequence):
        # a copy: spawning from the caller's object would make the second call differ from the first
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence([int(word) for word in seed.integers(2**32, size=8)])
    if seed is None:
        return np.random.SeedSequence()
    number = as_whole("seed", seed)
    if number < 0:
        raise ValueError(f"seed: a whole number >= 0 (or a Generator) is needed, but seed = {number}.")
    return np.random.SeedSequence(number)


@kernel()
def load(row: StreamArray) -> Stream:
    """The state in one row of `streams`, as the tuple kernels pass by value (it then lives in registers)."""
    return row[0], row[1], row[2], row[3]


@kernel()
def store(stream: Stream, row: StreamArray) -> None:
    """Write the state back where `load` found it."""
    row[0], row[1], row[2], row[3] = stream


@kernel()
def next_bits(stream: Stream) -> tuple[np.uint64, Stream]:
    """64 random bits and the stream that goes on after them."""
    s0, s1, s2, s3 = stream
    mixed = s0 + s3
    bits = ((mixed << _23) | (mixed >> _41)) + s0
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    return bits, (s0, s1, s2, (s3 << _45) | (s3 >> _19))


@kernel()
def uniform(stream: Stream) -> tuple[float, Stream]:
    """A uniform draw from the multiples of 2^-53 in (0, 1]; never 0, so its logarithm is finite."""
    bits, stream = next_bits(stream)
    return (float(bits >> _11) + 1.0) * _TO_UNIT, stream


@kernel()
def exponential(stream: Stream) -> tuple[float, Stream]:
    """A draw from the unit exponential."""
    u, stream = uniform(stream)
    return -math.log(u), stream

"""Hamiltonian motion of auxiliary fields, as numba kernels: the walls are integrated out, so nothing bounces.

Write W = D - C with D diagonal and C = R'R (NOTATION 1.3). With z | x ~ N(R x, I) the x_i are independent given z,
x_i ~ q(l_i, D_i), l = b + R'z, and -ln p(z) = |z|²/2 - sum_i ln Z1(l_i; D_i) is smooth, of curvature at most 1. z
itself is never formed: y = R'z, its velocity v = R'ż and three inner products are enough, and a step costs one product
with C. Along k soft directions e_j of z-space the mass is 1/c_j; there alone coordinates of z are kept.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnbm.arrays import FloatArray
from nnbm.draw import box_draw, excess
from nnbm.kernels import kernel
from nnbm.sampling.products import SUM, dot
from nnbm.site.box_statistics import box_statistics
from nnbm.site.half_line import HALF_LINE
from nnbm.site.half_line_statistics import statistics
from nnbm.site.rounding import log_density_at
from nnbm.stream import Stream

__all__ = [
    "INNER_KICK",
    "INNER_MOVE",
    "OUTER_KICK",
    "OUTER_MOVE",
    "Soft",
    "Walls",
    "begin",
    "energy",
    "finish",
    "kick",
    "log_partition",
    "means_beside_walls",
    "move",
    "other_means",
    "walls_of",
]

# shares of a round of three steps: the scheme of Blanes, Casas & Sanz-Serna (2014) with the least error in energy
OUTER_KICK, OUTER_MOVE = 0.11888010966548, 0.29619504261126
INNER_KICK, INNER_MOVE = 0.5 - OUTER_KICK, 1.0 - 2.0 * OUTER_MOVE
# the tables' nodes; above them a mean is z to 15 digits
_START, _END, _PER_UNIT = -64.0, 8.0, 8.0
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class Walls(NamedTuple):
    """The sites q(l_i, D_i), (n,) each but for `others`: the sites that do not have exactly one end.

    A site with one end is x = place + gain u, u on the half line with r = 1 and z = gain l + shift; |gain| = 1/sqrt D.
    masses: Taylor coefficients (nodes, 9) of u's ln Z1, good to 1e-13. means: (nodes, 4) of its mean, good to 1e-7;
    that is enough, since any force that is a function of l keeps volume and can be run backwards.
    """

    curvature: FloatArray
    lower: FloatArray
    upper: FloatArray
    place: FloatArray
    gain: FloatArray
    shift: FloatArray
    others: NDArray[np.int32]
    masses: FloatArray
    means: FloatArray


class Soft(NamedTuple):
    """The directions e_j = R a_j with their own mass 1/c_j: a (k, n) with a_i'C a_j = delta_ij, C a (k, n), c (k,)."""

    a: FloatArray
    through: FloatArray
    speedup: FloatArray


def walls_of(curvature: FloatArray, lower: FloatArray, upper: FloatArray) -> Walls:
    """The sites of curvature D (n,) between these ends."""
    one = np.isfinite(lower) != np.isfinite(upper)
    place = np.where(one & np.isfinite(lower), lower, np.where(one, upper, 0.0))
    sign = np.where(one & np.isfinite(upper), -1.0, 1.0)
    gain = np.where(one, sign / np.sqrt(np.where(one, curvature, 1.0)), 0.0)  # a constant of the others
    shift = -gain * np.where(one, curvature, 0.0) * place
    others = np.flatnonzero(~one).astype(np.int32)
    return Walls(curvature, lower, upper, place, gain, shift, others, *_tables())


@functools.cache
def _tables() -> tuple[FloatArray, FloatArray]:
    """Of ln Z1 and of the mean of q(u; z, 1) on u >= 0, around z = _START, _START + 1/_PER_UNIT, ... _END."""
    z = _START + np.arange(round((_END - _START) * _PER_UNIT) + 1) / _PER_UNIT
    found, one = HALF_LINE.moments(z, 1.0), np.ones(z.size)
    sd = np.sqrt(found.variance)
    higher = HALF_LINE.higher_cumulants(z, one) * np.stack([sd**7, sd**8])
    slopes = np.concatenate([found.log_partition[None], found.cumulants, higher])
    factorials = np.cumprod(np.maximum(np.arange(9), 1.0))
    masses, means = slopes.T / factorials, slopes[1:5].T / factorials[:4]
    return np.ascontiguousarray(masses), np.ascontiguousarray(means)


@kernel(error_model="numpy", fastmath=SUM)
def means_beside_walls(
    table: FloatArray, l: FloatArray, place: FloatArray, gain: FloatArray, shift: FloatArray, out: FloatArray
) -> int:
    """Into out (n,): <x_i> given l_i of the sites with one end; how many lie below the table, or are NaN."""
    beyond = 0
    for i in range(l.size):
        z = gain[i] * l[i] + shift[i]
        beyond += 0 if z >= _START else 1  # NaN counts
        at = (z if _START <= z <= _END else _START) - _START
        node = int(at * _PER_UNIT + 0.5)
        d = at - node / _PER_UNIT
        u = table[node, 0] + d * (table[node, 1] + d * (table[node, 2] + d * table[node, 3]))
        out[i] = place[i] + gain[i] * (z if z > _END else u)
    return beyond


@kernel(error_model="numpy")
def other_means(l: FloatArray, walls: Walls, nodes: FloatArray, out: FloatArray) -> None:
    """The means in out (n,) that are left: those below the table, and between two ends or none."""
    for i in range(l.size):
        z = walls.gain[i] * l[i] + walls.shift[i]
        if not z >= _START:
            out[i] = walls.place[i] + walls.gain[i] * (statistics(z, 1.0).k1 if z < _START else np.nan)
    for i in walls.others:
        if -np.inf < l[i] < np.inf:
            out[i] = box_statistics(l[i], walls.curvature[i], walls.lower[i], walls.upper[i], nodes).k1
        else:
            out[i] = np.nan


@kernel(error_model="numpy", fastmath=SUM)
def _masses_beside_walls(table: FloatArray, l: FloatArray, gain: FloatArray, shift: FloatArray) -> tuple[float, int]:
    """sum_i ln Z1 of q(u; z_i, 1), those below the table as if at its end; how many those are."""
    total, beyond = 0.0, 0
    for i in range(l.size):
        z = gain[i] * l[i] + shift[i]
        beyond += 0 if z >= _START else 1  # NaN counts
        at = (z if _START <= z <= _END else _START) - _START
        node = int(at * _PER_UNIT + 0.5)
        d = at - node / _PER_UNIT
        u = table[node, 8]
        for j in range(7, -1, -1):
            u = u * d + table[node, j]
        total += 0.5 * z * z + _HALF_LOG_2PI if z > _END else u
    return total, beyond


@kernel(error_model="numpy")
def log_partition(l: FloatArray, walls: Walls, nodes: FloatArray) -> float:
    """sum_i ln Z1(l_i; D_i), but for a constant."""
    place, gain, shift, table = walls.place, walls.gain, walls.shift, walls.masses
    total, beyond = _masses_beside_walls(table, l, gain, shift)
    if beyond > 0:
        for i in range(l.size):
            z = gain[i] * l[i] + shift[i]
            if not z >= _START:
                total += (statistics(z, 1.0).log_partition if -np.inf < z < _START else np.nan) - table[0, 0]
    for i in range(l.size):
        if place[i] != 0.0:
            total += log_density_at(place[i], l[i], walls.curvature[i])
    for i in walls.others:
        if not abs(l[i]) < np.inf:
            return np.nan
        found = box_statistics(l[i], walls.curvature[i], walls.lower[i], walls.upper[i], nodes)
        total += found.log_partition
    return total


@kernel(error_model="numpy", fastmath=SUM)
def begin(
    bias: FloatArray, soft: Soft, x: FloatArray, first: FloatArray, second: FloatArray, y: FloatArray, v: FloatArray,
    l: FloatArray, inner: FloatArray, along: FloatArray,
) -> None:  # fmt: skip
    """Fields and velocities around x (n,), y being C x, from first = R' xi, second = R' eta, (xi, eta) normal.

    inner (3,): |xi|², xi'eta, |eta|² on entry; then |z|², z'ż, |ż|² across the soft directions. along (4, k): z_j, ż_j.
    """
    inner[0] += dot(x, y) + 2.0 * dot(x, first)
    inner[1] += dot(x, second)
    v[:] = second
    for j in range(soft.speedup.size):
        unit = dot(soft.a[j], second)
        along[0, j] = dot(soft.through[j], x) + dot(soft.a[j], first)
        along[1, j] = math.sqrt(soft.speedup[j]) * unit
        inner[0] -= along[0, j] * along[0, j]
        inner[1] -= along[0, j] * unit
        inner[2] -= unit * unit
        faster, row = along[1, j] - unit, soft.through[j]
        for i in range(v.size):
            v[i] += faster * row[i]
    for i in range(v.size):
        y[i] += first[i]
        l[i] = bias[i] + y[i]


@kernel(error_model="numpy")
def energy(l: FloatArray, walls: Walls, soft: Soft, inner: FloatArray, along: FloatArray, nodes: FloatArray) -> float:
    """The Hamiltonian, |z|²/2 + ż'Mż/2 - sum_i ln Z1."""
    total = 0.5 * (inner[0] + inner[2]) - log_partition(l, walls, nodes)
    for j in range(soft.speedup.size):
        total += 0.5 * (along[0, j] * along[0, j] + along[1, j] * along[1, j] / soft.speedup[j])
    return total


@kernel(error_model="numpy", fastmath=SUM)
def kick(
    through: FloatArray, speedup: FloatArray, size: float, m: FloatArray, force: FloatArray, y: FloatArray,
    v: FloatArray, inner: FloatArray, along: FloatArray,
) -> None:  # fmt: skip
    """Change the velocity by size M⁻¹(R m - z), m being the sites' means and force = C m."""
    my = mv = mf = 0.0
    for i in range(v.size):
        my += m[i] * y[i]
        mv += m[i] * v[i]
        mf += m[i] * force[i]
        v[i] += size * (force[i] - y[i])
    for j in range(speedup.size):
        row = through[j]
        pull = dot(row, m)
        my -= pull * along[0, j]
        mv -= pull * along[1, j]
        mf -= pull * pull
        push = size * (pull - along[0, j])
        along[1, j] += speedup[j] * push
        faster = (speedup[j] - 1.0) * push
        for i in range(v.size):
            v[i] += faster * row[i]
    inner[2] += 2.0 * size * (mv - inner[1]) + size * size * (mf - 2.0 * my + inner[0])
    inner[1] += size * (my - inner[0])


@kernel(fastmath=SUM)
def move(
    bias: FloatArray, step: float, y: FloatArray, v: FloatArray, l: FloatArray, inner: FloatArray, along: FloatArray
) -> None:
    """Change the fields by step times their velocity."""
    for i in range(y.size):
        y[i] += step * v[i]
        l[i] = bias[i] + y[i]
    inner[0] += 2.0 * step * inner[1] + step * step * inner[2]
    inner[1] += step * inner[2]
    for j in range(along.shape[1]):
        along[0, j] += step * along[1, j]


@kernel(error_model="numpy")
def finish(l: FloatArray, walls: Walls, x: FloatArray, stream: Stream) -> Stream:
    """Draw every x_i given its field l_i."""
    place, gain, shift, others = walls.place, walls.gain, walls.shift, walls.others
    if others.size < x.size:
        for i in range(x.size):
            over, stream = excess(-(gain[i] * l[i] + shift[i]), stream)
            x[i] = place[i] + gain[i] * over
    for i in others:
        x[i], stream = box_draw(l[i], walls.curvature[i], walls.lower[i], walls.upper[i], stream)
    return stream

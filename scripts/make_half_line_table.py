"""Compute the table behind `nnbm.site.HalfLine` with mpmath and write it to src/nnbm/site/half_line_table.npz.

Run with `.venv/bin/python scripts/make_half_line_table.py`; needs mpmath (a development dependency).
`tests/site/test_half_line_table.py` recomputes samples of it.

K_0(z) = ln int_0^inf exp(z x - x²/2) dx; its n-th derivative K_n(z) is the n-th cumulant at r = 1.
Two regions need a table (above z = 4 the closed forms lose nothing):

- `taylor[k, n] = K_n(z_k)` at z_k = -8 + k/8 up to 4: the Taylor coefficients (times n!) of every cumulant at once.
- below z = -8, in u = 1/z²: polynomials in t = 64 u of G_0 = ln(|z| Z1) / u, G_n = |z|^n K_n / (n-1)!,
  and `inverse`: u / g as a polynomial in g = 1 - variance/mean².
"""

from __future__ import annotations

from pathlib import Path

import mpmath as mp
import numpy as np

TAYLOR_FROM, TAYLOR_TO, STEP = -8, 4, mp.mpf(1) / 8
ORDERS = 7  # K_0 .. K_6 are served
TERMS = 13  # Taylor terms of each
TAIL_DEGREE = 15
TARGET = Path(__file__).resolve().parent.parent / "src" / "nnbm" / "site" / "half_line_table.npz"


def cumulants(z: mp.mpf, highest: int) -> list[mp.mpf]:
    """K_0 .. K_highest at z, from the Taylor recurrence of the hazard h' = -h (z + h)."""
    partition = mp.sqrt(mp.pi / 2) * mp.exp(z * z / 2) * mp.erfc(-z / mp.sqrt(2))
    taylor = [1 / partition]
    for n in range(highest):
        product = z * taylor[n] + (taylor[n - 1] if n else 0)
        product += mp.fsum(taylor[k] * taylor[n - k] for k in range(n + 1))
        taylor.append(-product / (n + 1))
    higher = [taylor[n - 1] * mp.factorial(n - 1) for n in range(3, highest + 1)]
    return [mp.log(partition), z + taylor[0], 1 + taylor[1], *higher]


def taylor_rows() -> np.ndarray:
    """(nodes, ORDERS + TERMS - 1) cumulants at the nodes, correctly rounded."""
    count = int((TAYLOR_TO - TAYLOR_FROM) / STEP) + 1
    rows = [cumulants(TAYLOR_FROM + k * STEP, ORDERS + TERMS - 2) for k in range(count)]
    return np.array([[float(x) for x in row] for row in rows])


def tail_functions(u: mp.mpf) -> list[mp.mpf]:
    """G_0 .. G_6 at u = 1/z² (see the module's head)."""
    a = 1 / mp.sqrt(u)
    k = cumulants(-a, ORDERS - 1)
    return [(k[0] + mp.log(a)) / u] + [a**n * k[n] / mp.factorial(n - 1) for n in range(1, ORDERS)]


def gap(u: mp.mpf) -> mp.mpf:
    """1 - variance / mean² at u = 1/z²."""
    k = cumulants(-1 / mp.sqrt(u), 2)
    return 1 - k[2] / k[1] ** 2


def interpolate(function, upper: mp.mpf, degree: int) -> list[mp.mpf]:
    """Coefficients, constant first, in x/upper of the Chebyshev interpolant of `function` on (0, upper]."""
    nodes = [(1 + mp.cos(mp.pi * (2 * k + 1) / (2 * degree + 2))) / 2 for k in range(degree + 1)]
    vandermonde = mp.matrix(degree + 1, degree + 1)
    for i, t in enumerate(nodes):
        for j in range(degree + 1):
            vandermonde[i, j] = t**j
    values = mp.matrix([function(upper * t) for t in nodes])
    return list(mp.lu_solve(vandermonde, values))


def main() -> None:
    mp.mp.dps = 120
    u_max = 1 / mp.mpf(TAYLOR_FROM) ** 2
    tail = [interpolate(lambda u, n=n: tail_functions(u)[n], u_max, TAIL_DEGREE) for n in range(ORDERS)]
    g_max = gap(u_max)
    inverse = interpolate(
        lambda g: mp.findroot(lambda u: gap(u) - g, (g / 2, g * mp.mpf("0.55"))) / g, g_max, TAIL_DEGREE
    )
    np.savez(
        TARGET,
        taylor=taylor_rows(),
        tail=np.array([[float(c) for c in row] for row in tail]),
        inverse=np.array([float(c) for c in inverse]),
        gap_limit=np.array(float(g_max)),
    )


if __name__ == "__main__":
    main()

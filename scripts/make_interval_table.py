"""Compute Gauss-Legendre rules on [0, 1] with mpmath and write them to src/nnbm/site/interval_table.npz.

Run with `.venv/bin/python scripts/make_interval_table.py`; needs mpmath (a development dependency).
`tests/site/test_interval_table.py` recomputes some of them. NumPy's own weights near the ends are off by 1e-12.

`starts[k]` is where the rule of `counts[k]` nodes begins in `nodes` and `weights`, all rules behind each other.
"""

from __future__ import annotations

from pathlib import Path

import mpmath as mp
import numpy as np

COUNTS = tuple(range(16, 68, 4))
DIGITS = 40
TARGET = Path(__file__).resolve().parent.parent / "src" / "nnbm" / "site" / "interval_table.npz"


def slope(count: int, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """The Legendre polynomial of this degree and its derivative at x."""
    before, here = mp.mpf(1), x
    for k in range(2, count + 1):
        before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
    return here, count * (before - x * here) / (1 - x * x)


def rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], correctly rounded: those near 0 keep all their digits."""
    nodes, weights = [], []
    for start in np.polynomial.legendre.leggauss(count)[0]:
        x = mp.mpf(float(start))
        for _ in range(4):
            value, derivative = slope(count, x)
            x -= value / derivative
        derivative = slope(count, x)[1]
        nodes.append((1 + x) / 2)
        weights.append(1 / ((1 - x * x) * derivative**2))
    return np.array([float(x) for x in nodes]), np.array([float(w) for w in weights])


def main() -> None:
    with mp.workdps(DIGITS):
        rules = [rule(count) for count in COUNTS]
    np.savez(
        TARGET,
        counts=np.array(COUNTS),
        starts=np.concatenate([[0], np.cumsum(COUNTS)[:-1]]),
        nodes=np.concatenate([nodes for nodes, _ in rules]),
        weights=np.concatenate([weights for _, weights in rules]),
    )


if __name__ == "__main__":
    main()

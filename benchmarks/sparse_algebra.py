"""Sparse algebra on the Hessian of a grid, two unknowns a site: factor and selected inverse against SciPy's SuperLU.

`python -m benchmarks.sparse_algebra 1000` measures one grid, by its side; a million sites take a minute and 3 GB.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from benchmarks.rows import Row
from nnbm.linalg.sparse import Symbolic, analyse, factor

SIDES = (100, 300)


def hessian(side: int) -> sparse.csr_array:
    """A positive definite matrix of 2 x 2 blocks on a square grid, (2 side²) rows."""
    at = np.arange(side * side).reshape(side, side)
    i = np.concatenate([at.ravel(), at[:-1].ravel(), at[:, :-1].ravel()])
    j = np.concatenate([at.ravel(), at[1:].ravel(), at[:, 1:].ravel()])
    rng = np.random.default_rng(0)
    rows, columns = [2 * i, 2 * i, 2 * i + 1, 2 * i + 1], [2 * j, 2 * j + 1, 2 * j, 2 * j + 1]
    values = rng.uniform(-0.5, 0.5, 4 * i.size)
    shape = (2 * side * side, 2 * side * side)
    half = sparse.csr_array((values, (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    return sparse.csr_array(half + half.T + 6.0 * sparse.eye_array(shape[0]))


@dataclass(frozen=True)
class Times:
    """CPU seconds: the least of a few, tasks taking turns."""

    symbolic: Symbolic
    analysis: float
    factor: float
    inverse: float
    solve: float
    superlu: float


def measure(side: int, repeats: int, *, superlu: bool) -> Times:
    """Every step on the grid of this side; SuperLU only where asked for, else infinity."""
    matrix = hessian(side)
    symbolic = analyse(matrix)
    found = symbolic.factor(matrix.data)
    assert found is not None  # noqa: S101 (it is definite; for the type checker)
    right = np.ones(symbolic.n)
    tasks: list[Callable[[], object]] = [
        lambda: analyse(matrix),
        lambda: symbolic.factor(matrix.data, replacing=found),  # as sweeps do
        found.selected_inverse,
        lambda: found.solve(right),
    ]
    if superlu:
        columns, options = matrix.tocsc(), {"SymmetricMode": True}
        tasks.append(lambda: splu(columns, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options))
    best = [np.inf] * 5
    for _ in range(repeats):
        for k, task in enumerate(tasks):
            started = time.process_time()
            task()
            best[k] = min(best[k], time.process_time() - started)
    return Times(symbolic, *best)


def rows() -> Iterator[Row]:
    """Factor and selected inverse at two sizes, how they grow, and what SuperLU takes for the factor alone."""
    factor(hessian(4))
    small, large = (measure(side, 5, superlu=side == max(SIDES)) for side in SIDES)
    symbolic = large.symbolic
    yield Row(
        "sparse LDL' of a 300 x 300 grid's Hessian", large.factor, "s",
        f"{symbolic.flops / large.factor / 1e9:.0f} Gflop/s", "<=", 0.48,
    )  # fmt: skip
    yield Row(
        "its selected inverse", large.inverse, "s",
        f"{symbolic.inverse_flops / large.inverse / 1e9:.0f} Gflop/s; solve {large.solve * 1e3:.0f} ms, "
        f"analysis {large.analysis:.2f} s", "<=", 0.8,
    )  # fmt: skip
    both = large.factor + large.inverse
    yield Row(
        "factor and selected inverse, speed-up over SuperLU's factor alone", large.superlu / both, "x",
        f"{both:.2f} against {large.superlu:.2f} s, minimum degree and no pivoting there", ">=", 1.0,
    )  # fmt: skip
    growth = np.log(both / (small.factor + small.inverse)) / np.log((SIDES[1] / SIDES[0]) ** 2)
    yield Row("growth of both with the number of sites n", growth, "power of n", "100 x 100 to 300 x 300", "<=", 1.3)
    yield Row("memory predicted for both", symbolic.bytes / 1e6, "MB", f"{8 * symbolic.entries / 1e6:.0f} MB of factor")


if __name__ == "__main__":
    factor(hessian(4))
    for name in sys.argv[1:]:
        found = measure(int(name), 2, superlu=False)
        print(
            f"{name} x {name}: analysis {found.analysis:.2f} s, factor {found.factor:.3f} s, selected inverse "
            f"{found.inverse:.3f} s, solve {found.solve:.4f} s; {found.symbolic.bytes / 1e9:.2f} GB"
        )

"""Learning: direct inverses, score matching and pseudo-likelihood beside L-BFGS in plain NumPy and graphical lasso."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special
from scipy.optimize import minimize
from sklearn.covariance import GraphicalLasso
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rows import Row, best_seconds
from nnbm import NNBM, gallery, sample
from nnbm.arrays import FloatArray
from nnbm.learning.ascent import ascent
from nnbm.learning.edges import EdgeSet
from nnbm.learning.inverse import inverse
from nnbm.learning.likelihood import likelihood
from nnbm.learning.moments import moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import pseudolikelihood
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import pseudolikelihood_errors
from nnbm.learning.score_matching import score_matching

ROWS = 10_000
MEMORY_SCRIPT = """
import resource, time
import numpy as np, nnbm
model = nnbm.gallery.orientation_tuning()
X = nnbm.sample(model, 250_000, chains=4, thin=1, seed=0, progress=False).flat
nnbm.NonnegativeBoltzmann().fit(X[:2000])  # imports and compilation are not counted
started = time.perf_counter()
est = nnbm.NonnegativeBoltzmann().fit(X)
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@dataclass(frozen=True, eq=False)
class Case:
    """A data set of one of the paper's models; bars in milliseconds: isusp, score matching, pseudo-likelihood."""

    name: str
    rows: Rows
    edges: EdgeSet
    bars: tuple[float, float, float]


def case(name: str, model: NNBM, bars: tuple[float, float, float]) -> Case:
    """N = 10,000 rows of the model."""
    table = sample(model, ROWS // 4, chains=4, thin=20, seed=0, progress=False).flat
    return Case(name, Rows.checked(table), EdgeSet(model.n, *model.edges), bars)


def rows() -> Iterator[Row]:
    """The issue's bars, and what the peers take."""
    cases = (
        case("grid, 60 edges", gallery.square_grid(6, 6), (3.0, 15.0, 40.0)),
        case("complete, n = 36", gallery.orientation_tuning(), (15.0, 60.0, 150.0)),
    )
    for one in cases:
        yield from _speed(one)
    yield _large_inverse()
    yield from _growth(cases[1])
    yield from _million()


def _speed(one: Case) -> Iterator[Row]:
    data = moments(one.rows, one.edges)
    direct, climb = best_seconds(partial(inverse, data), partial(ascent, data), repeats=5)
    said = f"after moments; the paper's climb to the same point {climb / direct:.0f}x as long"
    yield Row(f"I-SusP inverse, {one.name}", direct * 1e3, "ms", said, "<=", one.bars[0])
    matching, pseudo = best_seconds(
        partial(score_matching, one.rows, one.edges), partial(pseudolikelihood, one.rows, one.edges), repeats=7
    )
    yield Row(f"score matching, {one.name}", matching * 1e3, "ms", f"N = {ROWS:,}", "<=", one.bars[1])
    yield Row(
        f"pseudo-likelihood with its score matching, {one.name}",
        pseudo * 1e3,
        "ms",
        "Newton to 1e-8",
        "<=",
        one.bars[2],
    )
    found = pseudolikelihood(one.rows, one.edges).parameters
    errors, exact = best_seconds(
        partial(pseudolikelihood_errors, one.rows, found),
        partial(likelihood, one.rows, one.edges, threads=1),
        repeats=2,
    )
    yield Row(f"its standard errors, {one.name}", errors * 1e3, "ms", "sandwich")
    yield Row(f"likelihood, {one.name}", exact * 1e3, "ms", "from pseudo-likelihood, with standard errors")
    yield _plain_row(one, pseudo, found)
    yield _lasso_row(one, pseudo)


def _plain_row(one: Case, ours: float, found: Parameters) -> Row:
    started = time.perf_counter()
    plain = plain_pseudolikelihood(one.rows.columns.T, one.edges)
    seconds = time.perf_counter() - started
    apart = float(np.abs(plain - found.vector).max())
    said = f"{seconds:.1f} s; largest difference of a parameter {apart:.1g}"
    return Row(f"L-BFGS from zero in plain NumPy over our pseudo-likelihood, {one.name}", seconds / ours, "x", said)


def _lasso_row(one: Case, ours: float) -> Row:
    lasso = GraphicalLasso(alpha=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (seconds,) = best_seconds(partial(lasso.fit, one.rows.columns.T), repeats=2)
    said = f"{seconds * 1e3:.0f} ms, alpha = 0.01; it ignores the wall at 0 and gives no errors"
    return Row(f"scikit-learn's GraphicalLasso over our pseudo-likelihood, {one.name}", seconds / ours, "x", said)


def plain_pseudolikelihood(table: FloatArray, edges: EdgeSet) -> FloatArray:
    """(parameters,) maximum pseudo-likelihood by L-BFGS from b = 0, W = I, as anyone would write it in NumPy."""
    n = edges.n

    def cost(vector: FloatArray) -> tuple[float, FloatArray]:
        bias, diagonal = vector[:n], np.exp(vector[n : 2 * n])
        off = np.zeros((n, n))
        off[edges.i, edges.j] = off[edges.j, edges.i] = vector[2 * n :]
        l = bias - table @ off
        root = np.sqrt(diagonal)
        z = l / root
        log_partition = 0.5 * np.log(np.pi / (2 * diagonal)) + np.log(special.erfcx(-z / np.sqrt(2)))
        hazard = np.sqrt(2 / np.pi) / special.erfcx(-z / np.sqrt(2))
        m = (z + hazard) / root
        v = (1 + l * m) / diagonal
        rest = table - m
        value = (l * table - 0.5 * diagonal * table**2 - log_partition).sum(axis=1).mean()
        by_diagonal = 0.5 * diagonal * (v - table**2).mean(axis=0)
        cross = table.T @ rest / len(table)
        by_pair = -(cross + cross.T)[edges.i, edges.j]
        return -value, -np.concatenate([rest.mean(axis=0), by_diagonal, by_pair])

    found = minimize(
        cost, np.zeros(edges.parameters), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-6}
    )
    return np.concatenate([found.x[:n], np.exp(found.x[n : 2 * n]), found.x[2 * n :]])


def _large_inverse() -> Row:
    """n = 300, all 44,850 pairs."""
    n, rng = 300, np.random.default_rng(0)
    off = np.triu(rng.normal(size=(n, n)) * 0.2 / np.sqrt(n), 1)
    model = NNBM(rng.uniform(0.0, 1.0, n), off + off.T + 1.5 * np.eye(n))
    data = moments(
        Rows.checked(sample(model, ROWS // 4, chains=4, thin=2, seed=0, progress=False).flat), EdgeSet.complete(n)
    )
    (seconds,) = best_seconds(partial(inverse, data), repeats=3)
    said = f"{data.edges.parameters:,} parameters, {inverse(data).iterations} sweeps"
    return Row("I-SusP inverse, complete, n = 300", seconds, "s", said, "<=", 0.3)


def _growth(one: Case) -> Iterator[Row]:
    """Ten times the rows."""
    many = Rows(np.tile(one.rows.columns, 10))
    tasks: dict[str, Callable[[Rows], object]] = {
        "score matching": lambda table: score_matching(table, one.edges),
        "pseudo-likelihood": lambda table: pseudolikelihood(table, one.edges),
    }
    for name, task in tasks.items():
        few, more = best_seconds(partial(task, one.rows), partial(task, many), repeats=3)
        yield Row(f"{name}, {one.name}: time at 10 N over time at N", more / few, "x", f"N = {ROWS:,}", "<=", 12.0)


def _million() -> Iterator[Row]:
    done = subprocess.run([sys.executable, "-c", MEMORY_SCRIPT], capture_output=True, text=True, check=True)  # noqa: S603 (our own script)
    seconds, peak = map(float, done.stdout.split())
    said = "NonnegativeBoltzmann().fit, standard errors included, one core"
    yield Row("fit of a million rows x 36, all pairs: time", seconds, "s", said, "<=", 60.0)
    yield Row("the same: peak memory, the table included", peak / 2**30, "GiB", said, "<=", 2.0)

"""Accuracy of every inference method against exact answers or long Gibbs runs: `make accuracy`.

Prints a table (mean absolute error of means / of covariances; a letter marks a warning status) and another of ln Z,
against exact values or annealed importance sampling, writes accuracy.json and the figure accuracy.png (error against
coupling, with the Monte-Carlo noise of the reference as a band).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import nnbm
from nnbm import NNBM, Inference, Status, gallery
from nnbm.arrays import FloatArray

METHODS = ("naive", "susp", "tap3", "isusp", "isusp3", "ep", "epc", "pairs", "auto")
MARKS = {
    Status.CONVERGED: "",
    Status.INACCURATE: "i",
    Status.SEVERAL_MODES: "m",
    Status.UNSTABLE: "u",
    Status.NOT_CONVERGED: "n",
    Status.NO_SITE: "s",
}
FOLDER = Path(__file__).parent
DRAWS, THIN = 160_000, 5  # four chains each
LN_Z_ERROR = 0.003


@dataclass(frozen=True)
class Case:
    """A model with its family and its place on the family's axis."""

    family: str
    at: float
    model: NNBM


@dataclass(frozen=True)
class Score:
    """Mean absolute errors of one method on one case, and its status."""

    mean: float
    covariance: float
    status: str
    ln_z: float | None


@dataclass(frozen=True)
class Line:
    """All methods on one case; `noise` is the reference's own mean absolute error of a mean and of a covariance.

    sd: the variables' mean standard deviation. ln_z: the reference's value and its standard error; None where the
    annealing itself warns.
    """

    family: str
    at: float
    reference: str
    noise: tuple[float, float]
    sd: float
    scores: dict[str, Score]
    ln_z: tuple[float, float] | None = None

    @property
    def auto_ratio(self) -> float:
        """auto's error of the means over the best of all methods' that converged, or over the noise if that is more."""
        rivals = [score for name, score in self.scores.items() if name != "auto" and score.status in ("", "i")]
        if self.scores["auto"].status == "u" or not rivals:
            return float("nan")
        best = min(score.mean for score in rivals)
        return self.scores["auto"].mean / max(best, self.noise[0], 1e-12)


def least_squares(seed: int) -> NNBM:
    """The posterior of 20 amounts, half of them zero, from 60 measurements of noise 0.3."""
    rng = np.random.default_rng(seed)
    design = rng.uniform(size=(60, 20))
    truth = np.where(rng.uniform(size=20) < 0.5, 0.0, rng.exponential(size=20))
    return gallery.from_least_squares(design, design @ truth + 0.3 * rng.normal(size=60), 0.3)


def dense_random(strength: float, n: int = 30) -> NNBM:
    """Couplings N(0, strength²/n) between all pairs; the diagonal keeps W positive definite."""
    rng = np.random.default_rng(0)
    off = np.triu(rng.normal(size=(n, n)) * strength / np.sqrt(n), 1)
    off += off.T
    return NNBM(rng.uniform(-1.0, 2.0, n), off + np.eye(n) * (1.0 + max(0.0, -np.linalg.eigvalsh(off)[0] - 0.5)))


def binary_tree(coupling: float, n: int = 15) -> NNBM:
    """A complete binary tree of one coupling."""
    w = np.eye(n)
    for child in range(1, n):
        w[child, (child - 1) // 2] = w[(child - 1) // 2, child] = coupling
    return NNBM(np.random.default_rng(0).uniform(-0.4, 0.8, n), w)


def cases() -> Iterator[Case]:
    """Grids, orientation tuning, sparse and dense random models, least squares, trees."""
    for w in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 2.0):
        yield Case("grid 6x6", w, gallery.square_grid(6, 6, coupling=w))
    yield Case("grid 8x8", 0.9, gallery.square_grid(8, 8, coupling=0.9))
    for epsilon in (0.0, 1.0, 2.0, 2.5, 3.0, 4.0):
        yield Case("orientation n=36", epsilon, gallery.orientation_tuning(36, epsilon=epsilon))
    for strength in (0.5, 1.0, 1.5):
        yield Case("random graph n=40", strength, gallery.random_graph(40, strength=strength))
        yield Case("dense random n=30", strength, dense_random(strength))
    for seed in (0, 1, 2):
        yield Case("least squares n=20", seed, least_squares(seed))
    for w in (0.4, 0.8, 1.2):
        yield Case("binary tree n=15", w, binary_tree(w))


@dataclass(frozen=True)
class Reference:
    """Means and covariances to compare with, and their own errors."""

    kind: str
    mean: FloatArray
    covariance: FloatArray
    noise: tuple[float, float]
    ln_z: tuple[float, float] | None = None

    @property
    def sd(self) -> float:
        """The variables' mean standard deviation."""
        return float(np.sqrt(np.diagonal(self.covariance)).mean())


def annealed(model: NNBM) -> tuple[float, float] | None:
    """ln Z by sampling, and its standard error."""
    found = nnbm.log_partition(model, error=LN_Z_ERROR, seed=0, progress=False)
    return (found.value, found.error) if found.reliable else None


def reference(model: NNBM) -> Reference:
    """Exact for trees, a long Gibbs run with its Monte-Carlo errors otherwise."""
    if model.edges[0].size < model.n:
        found = nnbm.infer(model, "exact")
        assert found.covariance is not None  # noqa: S101 (exact always has one; for the type checker)
        return Reference("exact", found.mean, found.covariance, (1e-10, 1e-10), (found.log_partition or 0.0, 1e-10))
    samples = nnbm.sample(model, DRAWS, chains=4, thin=THIN, seed=0)
    batches = samples.draws.reshape(40, -1, model.n)
    products = np.array([np.cov(batch, rowvar=False) for batch in batches])
    spread = products.std(axis=0, ddof=1) / np.sqrt(len(batches))
    error = batches.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(len(batches))
    # the mean absolute value of a normal error is sqrt(2/pi) of its sd
    noise = (0.8 * float(error.mean()), 0.8 * float(spread.mean()))
    kind = f"{samples.method}, R-hat {samples.rhat().max():.3f}"
    return Reference(kind, samples.mean, samples.covariance, noise, annealed(model))


def score(result: Inference, truth: Reference) -> Score:
    """Errors of one result."""
    covariance = result.covariance if result.converged else None
    return Score(
        float(np.abs(result.mean - truth.mean).mean()),
        float("nan") if covariance is None else float(np.abs(covariance - truth.covariance).mean()),
        MARKS[result.status],
        result.log_partition if result.converged else None,
    )


def measure(case: Case) -> Line:
    """All methods on one case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nnbm.UnreliableWarning)
        truth = reference(case.model)
        scores = {name: score(nnbm.infer(case.model, name, throw=False), truth) for name in METHODS}
    return Line(case.family, case.at, truth.kind, truth.noise, truth.sd, scores, truth.ln_z)


def table(lines: list[Line]) -> Table:
    """One row a case."""
    found = Table(title="mean absolute error: means / covariances")
    for heading in ("family", "at", "reference", "noise", *METHODS, "auto/best", "auto/sd (noise)"):
        found.add_column(heading, justify="left" if heading == "family" else "right")
    for line in lines:
        cells = [
            f"{s.mean:.4f}/{s.covariance:.4f}{s.status}" if s.status in ("", "i") else f"({s.mean:.2f}){s.status}"
            for s in line.scores.values()
        ]
        found.add_row(
            line.family, f"{line.at:g}", line.reference, f"{line.noise[0]:.4f}/{line.noise[1]:.4f}", *cells,
            f"{line.auto_ratio:.2f}", f"{line.scores['auto'].mean / line.sd:.4f} ({line.noise[0] / line.sd:.4f})",
        )  # fmt: skip
    found.caption = "i: warns of inaccuracy, m: of several modes, u: no stable solution; (error of the partial result)"
    return found


def ln_z_table(lines: list[Line]) -> Table:
    """Errors of ln Z."""
    found = Table(title="error of ln Z")
    for heading in ("family", "at", "reference", *METHODS):
        found.add_column(heading, justify="left" if heading == "family" else "right")
    for line in lines:
        if line.ln_z is not None:
            errors = [None if score.ln_z is None else score.ln_z - line.ln_z[0] for score in line.scores.values()]
            cells = ("" if e is None else f"{e:+.4f}" for e in errors)
            found.add_row(line.family, f"{line.at:g}", f"{line.ln_z[0]:.4f} ± {line.ln_z[1]:.4f}", *cells)
    return found


def figure(lines: list[Line]) -> None:
    """Error of the means against the coupling, one panel a family that has an axis."""
    import matplotlib.pyplot as plt

    families = {"grid 6x6": "coupling w", "orientation n=36": "tuning strength", "random graph n=40": "strength"}
    styles = {"naive": "#8a8f98", "susp": "#2f9e6e", "tap3": "#8cc63f", "isusp": "#2f5d8a", "isusp3": "#5fb3e6"}
    styles |= {"ep": "#d9772b", "epc": "#b03a5b", "pairs": "#6b4fa0", "auto": "black"}
    canvas, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
    for panel, (family, label) in zip(axes, families.items(), strict=True):
        rows = [line for line in lines if line.family == family]
        at = [line.at for line in rows]
        panel.fill_between(at, 1e-5, [line.noise[0] for line in rows], color="#dddddd", label="noise of the reference")
        for name, color in styles.items():
            good = [(line.at, line.scores[name].mean) for line in rows if line.scores[name].status in ("", "i")]
            dashes = ":" if name == "auto" else "-"
            panel.plot(*zip(*good, strict=True), marker="o", ms=4, color=color, label=name, ls=dashes)
        panel.set(title=family, xlabel=label, yscale="log", ylim=(1e-4, 0.3), xlim=(min(at), max(at)))
    axes[0].set_ylabel("mean absolute error of the means")
    axes[2].legend(fontsize=8)
    canvas.suptitle("Where a line ends, the method has no stable solution and says so")
    canvas.savefig(FOLDER / "accuracy.png", dpi=110)


def main() -> int:
    """Measure, print, write."""
    lines = []
    for case in cases():
        Console(stderr=True).print(f"  {case.family} {case.at:g}", highlight=False)
        lines.append(measure(case))
    Console(width=None if sys.stdout.isatty() else 240).print(table(lines), ln_z_table(lines))
    written = [asdict(line) | {"auto_ratio": line.auto_ratio} for line in lines]
    (FOLDER / "accuracy.json").write_text(json.dumps(written, indent=1) + "\n")
    figure(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())

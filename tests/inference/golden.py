"""The golden table: every method on small graphs, in a text file that is reviewed like code.

`python tests/inference/golden.py` rewrites it; look at the difference before you commit it.
"""

import warnings
from pathlib import Path

import numpy as np

import nnbm
from nnbm import NNBM

TABLE = Path(__file__).with_name("golden.txt")
METHODS = ("exact", "naive", "tap", "susp", "tap3", "isusp", "isusp3", "ep", "epc", "pairs", "downs")


def models() -> dict[str, NNBM]:
    star = np.eye(5)
    star[0, 1:] = star[1:, 0] = 0.4
    return {
        "pair": NNBM([0.5, -0.3], [[1.0, 0.6], [0.6, 1.5]]),
        "cooperating pair": NNBM([0.2, 0.4], [[1.0, -0.5], [-0.5, 1.0]]),
        "trio": NNBM([0.2, 0.4, -0.5], [[1.0, 0.5, -0.3], [0.5, 1.2, 0.3], [-0.3, 0.3, 0.9]]),
        "star": NNBM([0.5, 0.1, -0.2, 0.3, 0.0], star),
        "path": nnbm.gallery.square_grid(1, 6, coupling=0.6, bias=(-0.4, 0.8), seed=1),
        "square": nnbm.gallery.square_grid(2, 2, coupling=0.5, seed=2),
        "grid 3x3": nnbm.gallery.square_grid(3, 3, coupling=0.6, seed=3),
        "ring of 8": nnbm.gallery.orientation_tuning(8, beta=5.0, epsilon=1.5),
        "exponentials": NNBM([-6.0, -5.0, -7.0], np.eye(3) + 0.3),
        "strong competition": nnbm.gallery.two_modes(competition=2.0, bias=(2.0, 2.1)),
    }


def rows() -> dict[tuple[str, str], tuple[str, list[float]]]:
    """(model, method) -> status and [ln Z, first mean, last variance, Cov(x_0, x_1)], nan where there is none."""
    found = {}
    for name, model in models().items():
        for method in METHODS:
            if method == "exact" and name in ("square", "grid 3x3", "ring of 8"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", nnbm.UnreliableWarning)
                r = nnbm.infer(model, method, throw=False)
            if not r.converged:
                found[name, method] = (r.status.name, [])
                continue
            ln_z = np.nan if r.log_partition is None else r.log_partition
            covariance = np.nan if r.covariance is None else r.covariance[0, 1]
            found[name, method] = (r.status.name, [ln_z, r.mean[0], r.variance[-1], covariance])
    return found


def render() -> str:
    lines = [f"{'model':20}{'method':8}{'status':15}{'ln Z':>13}{'<x_0>':>13}{'Var(x_n-1)':>13}{'Cov(x_0,x_1)':>14}"]
    for (name, method), (status, values) in rows().items():
        numbers = "".join(f"{value:>{13 + (k == 3)}.8f}" for k, value in enumerate(values))
        lines.append(f"{name:20}{method:8}{status:15}{numbers}".rstrip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(render())

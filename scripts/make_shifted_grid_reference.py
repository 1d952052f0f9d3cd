"""A very long run of the 6x6 grid with two unequal modes: tests/sampling/shifted_grid.json (a quarter of an hour).

Gibbs sampling, seven flips after each draw: independent of tempering in all but the random numbers.
"""

import json
from pathlib import Path

import nnbm

TARGET = Path(__file__).parents[1] / "tests" / "sampling" / "shifted_grid.json"

if __name__ == "__main__":
    grid = nnbm.gallery.square_grid(6, 6)
    model = nnbm.NNBM(grid.bias + 4.0, grid.coupling)
    gibbs = nnbm.Gibbs(cycle=("draw",) + 7 * ("flip",))
    found = nnbm.sample_moments(model, 10_000_000, chains=4, thin=20, burn_in=2_000_000, method=gibbs, seed=77)
    parts = {"mean": found.mean.tolist(), "mean_error": found.mean_error.tolist(), "variance": found.variance.tolist()}
    TARGET.write_text(json.dumps(parts, indent=1) + "\n")

"""The committed rules are what their script computes."""

import runpy
from importlib.resources import files
from pathlib import Path

import mpmath as mp
import numpy as np

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "make_interval_table.py"))


def test_rules_are_reproduced():
    stored = np.load(files("nnbm.site") / "interval_table.npz")
    np.testing.assert_array_equal(stored["counts"], SCRIPT["COUNTS"])
    for count, start in zip(stored["counts"], stored["starts"], strict=True):
        nodes, weights = (stored[name][start : start + count] for name in ("nodes", "weights"))
        np.testing.assert_allclose(nodes + nodes[::-1], 1.0, rtol=1e-15)
        for power in (0, 5, 2 * count - 1):
            np.testing.assert_allclose(weights @ nodes**power, 1.0 / (power + 1.0), rtol=1e-14)
    with mp.workdps(SCRIPT["DIGITS"]):
        nodes, weights = SCRIPT["rule"](20)
    np.testing.assert_array_equal(nodes, stored["nodes"][16:36])
    np.testing.assert_array_equal(weights, stored["weights"][16:36])

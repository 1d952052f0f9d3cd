"""The committed table is what its script computes."""

import runpy
from importlib.resources import files
from pathlib import Path

import mpmath as mp
import numpy as np

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "make_half_line_table.py"))


def test_taylor_rows_are_reproduced():
    table = np.load(files("nnbm.site") / "half_line_table.npz")["taylor"]
    with mp.workdps(80):
        for node in (0, 17, 64, 96):
            exact = SCRIPT["cumulants"](SCRIPT["TAYLOR_FROM"] + node * SCRIPT["STEP"], table.shape[1] - 1)
            np.testing.assert_allclose(table[node], [float(x) for x in exact], rtol=2e-16)


def test_tail_polynomials_fit_to_rounding():
    stored = np.load(files("nnbm.site") / "half_line_table.npz")
    with mp.workdps(120):
        for u in (mp.mpf("1e-12"), mp.mpf(1) / 300, mp.mpf(1) / 64):
            for row, exact in zip(stored["tail"], SCRIPT["tail_functions"](u), strict=True):
                assert abs(np.polynomial.polynomial.polyval(float(64 * u), row) / float(exact) - 1) < 1e-14
            g = float(SCRIPT["gap"](u))
            inverse = np.polynomial.polynomial.polyval(g / float(stored["gap_limit"]), stored["inverse"])
            assert abs(g * inverse / float(u) - 1) < 1e-13

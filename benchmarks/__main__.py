"""Run every benchmark, print a table, write results.json beside this file; exit code 1 if a bar was missed."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

# ratios of single-threaded work: BLAS must not help one side
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numba
import numpy as np
import scipy
from rich.console import Console
from rich.table import Table

from benchmarks import (
    collective,
    effective,
    gibbs,
    learning,
    mean_field,
    modes,
    one_variable,
    peers,
    sparse_algebra,
    streaming,
)
from benchmarks.rows import Row

MODULES = (
    one_variable, gibbs, effective, peers, collective, modes, streaming, mean_field, sparse_algebra, learning,
)  # fmt: skip
RESULTS = Path(__file__).with_name("results.json")


def table(rows: list[Row]) -> Table:
    """The rows, with the bar each was to reach."""
    found = Table(title="nnbm beside its peers, one run")
    for heading in ("what", "measured", "bar", "", "detail"):
        found.add_column(heading, justify="right" if heading in ("measured", "bar") else "left")
    marks = {True: "[green]met[/]", False: "[bold red]missed[/]", None: ""}
    for row in rows:
        bar = "" if row.target is None else f"{row.relation} {row.target:g}"
        found.add_row(row.name, f"{row.value:.3g} {row.unit}", bar, marks[row.met], row.detail)
    return found


def main() -> int:
    """Measure, print, write."""
    rows = []
    for module in MODULES:
        for row in module.rows():
            Console(stderr=True).print(f"  {row.name}: {row.value:.3g} {row.unit}", highlight=False)
            rows.append(row)
    Console(width=None if sys.stdout.isatty() else 160).print(table(rows))
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    run = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions | {"numba": numba.__version__},
        "machine": platform.machine(),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
    }
    RESULTS.write_text(json.dumps(run, indent=1) + "\n")
    return 1 if any(row.met is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

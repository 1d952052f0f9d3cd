"""What the terminal shows of a result: rich tables."""

from __future__ import annotations

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nnbm.sampling.result import Samples

__all__ = ["samples_table"]


def samples_table(samples: Samples, *, rows: int = 12) -> RenderableType:
    """Mean with its Monte-Carlo error, sd, ESS and R-hat; the `rows` least certain variables (lowest ESS) if more."""
    ess, rhat, error = samples.ess(), samples.rhat(), samples.mean_error
    shown = np.sort(np.argsort(ess, kind="stable")[:rows])
    chains, draws, n = samples.draws.shape
    table = Table(title=f"{n} variables, {chains} chains x {draws} draws, {samples.method}")
    for heading in ("variable", "mean", "± error", "sd", "ESS bulk", "R-hat"):
        table.add_column(heading, justify="left" if heading == "variable" else "right", no_wrap=True)
    for i in shown:
        table.add_row(
            Text(samples.label(int(i))),
            f"{samples.mean[i]:.4g}",
            f"{error[i]:.1g}",
            f"{np.sqrt(samples.variance[i]):.4g}",
            f"{ess[i]:,.0f}",
            Text(f"{rhat[i]:.3f}", style="" if rhat[i] <= 1.01 else "bold red"),
        )
    if shown.size < n:
        table.caption = f"the {shown.size} of lowest ESS; {n - shown.size} more"
    lowest = float(np.min(ess))
    verdict = Text.assemble(
        f"largest R-hat {np.max(rhat):.3f}, smallest ESS {lowest:,.0f} ",
        f"({lowest / samples.seconds:,.0f} per second), {samples.seconds:.2f} s of sampling",
    )
    return Group(table, verdict)

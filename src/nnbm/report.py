"""What the terminal shows of a result: rich tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nnbm.arrays import FloatArray, IntArray
from nnbm.inference.result import Inference
from nnbm.sampling import diagnostics
from nnbm.sampling.diagnostics import FEWEST_DRAWS, RHAT_LIMIT, LeastEss
from nnbm.sampling.moments import SampledMoments
from nnbm.sampling.result import Samples

if TYPE_CHECKING:
    from nnbm.estimator import NonnegativeBoltzmann  # scikit-learn takes a while to import

__all__ = ["fit_table", "inference_table", "moments_table", "samples_table"]

_MOST_JUDGED = 200  # variables; ESS and R-hat take some two milliseconds each


def samples_table(samples: Samples, *, rows: int = 12) -> RenderableType:
    """Mean with its Monte-Carlo error, sd, ESS and R-hat of at most `rows` variables: the least certain ones.

    Those are the ones of lowest ESS. Of more than 200 variables it is those of highest plain split R-hat, which is
    cheap, and only they are judged. Too few draws to judge anything leave a dash.
    """
    chains, draws, n = samples.draws.shape
    judged = draws >= FEWEST_DRAWS
    places = diagnostics.suspects(samples.draws, n if n <= _MOST_JUDGED else rows) if judged else np.arange(n)[:rows]
    part = samples.draws[:, :, places]
    unknown = np.full(places.size, np.nan)
    ess, rhat, error = (
        (diagnostics.ess(part), diagnostics.rhat(part), diagnostics.mean_error(part)) if judged else (unknown,) * 3
    )
    shown = np.sort(np.argsort(ess, kind="stable")[:rows])
    table = Table(title=f"{n} variables, {chains} chains x {draws} draws, {samples.method}")
    of_shown = part[:, :, shown]
    mean, sd = of_shown.mean(axis=(0, 1)), of_shown.std(axis=(0, 1))
    _add_rows(table, "ESS bulk", samples.label, places[shown], mean, error[shown], sd, ess[shown], rhat[shown])
    if shown.size < n:
        table.caption = f"{_choice(judged, places.size == n, shown.size)}; {n - shown.size} more are not shown"
    if judged and places.size == n:
        least = samples.least_ess()
        of_what = f" (mean of {_quantity(least, samples.label)})"
        verdict = _verdict(samples.seconds, np.array([least.value]), rhat, "", of_what)
    else:
        verdict = _verdict(samples.seconds, ess, rhat, " of these")
    return Group(table, verdict, *([Text(samples.detail)] if samples.detail else []))


def _quantity(least: LeastEss, label: Callable[[int], str]) -> str:
    """What the smallest ESS is of, with its variable's name."""
    if least.site is None:
        return f"the {least.what}"
    return label(least.site) + least.what.removeprefix("x")


def moments_table(moments: SampledMoments, *, rows: int = 12) -> RenderableType:
    """Mean with its Monte-Carlo error, sd, ESS and plain split R-hat of at most `rows` variables: those of lowest ESS.

    Too few draws to judge anything leave a dash.
    """
    n, ess, rhat = moments.n, moments.ess(), moments.rhat()
    shown = np.sort(np.argsort(ess, kind="stable")[:rows])
    draws = f"{len(moments.counts)} chains x {min(moments.counts)} draws"
    table = Table(title=f"{n} variables, {draws}, {moments.method}")
    _add_rows(
        table, "ESS mean", moments.label, shown, moments.mean[shown], moments.mean_error[shown],
        np.sqrt(moments.variance[shown]), ess[shown], rhat[shown],
    )  # fmt: skip
    if shown.size < n:
        table.caption = (
            f"{_choice(bool(np.isfinite(ess).any()), True, shown.size)}; {n - shown.size} more are not shown"
        )
    return Group(table, _verdict(moments.seconds, ess, rhat, ""))


def _add_rows(
    table: Table, kind: str, label: Callable[[int], str], places: IntArray, mean: FloatArray, error: FloatArray,
    sd: FloatArray, ess: FloatArray, rhat: FloatArray,
) -> None:  # fmt: skip
    for heading in ("variable", "mean", "± error", "sd", kind, "R-hat"):
        table.add_column(heading, justify="left" if heading == "variable" else "right", no_wrap=True)
    for k, i in enumerate(places):
        table.add_row(
            Text(label(int(i))),
            f"{mean[k]:.4g}",
            _or_dash(error[k], ".1g"),
            f"{sd[k]:.4g}",
            _or_dash(ess[k], ",.0f"),
            Text(_or_dash(rhat[k], ".3f"), style="" if rhat[k] <= RHAT_LIMIT else "bold red"),
        )


def _choice(judged: bool, all_judged: bool, shown: int) -> str:
    if not judged:
        return f"the first {shown}"
    return f"the {shown} of lowest ESS" if all_judged else f"the {shown} of highest plain R-hat"


def _verdict(taken: float, ess: FloatArray, rhat: FloatArray, of_these: str, of_what: str = "") -> Text:
    seconds = f"{taken:.2f} s of sampling"
    if not (np.isfinite(ess).any() and np.isfinite(rhat).any()):
        return Text(f"R-hat and ESS cannot be told from these draws; {seconds}")
    lowest = float(np.nanmin(ess))
    rate = f" ({lowest / taken:,.0f} per second)" if taken > 0 else ""
    return Text(f"smallest ESS {lowest:,.0f}{of_what}{rate}, largest R-hat{of_these} {np.nanmax(rhat):.3f}, {seconds}")


def _or_dash(value: float, form: str) -> str:
    return "–" if np.isnan(value) else format(value, form)


def inference_table(result: Inference, *, rows: int = 12, pairs: int = 6) -> RenderableType:
    """Mean and sd of the first `rows` variables, the `pairs` strongest correlations, ln Z and the verdict.

    Of a partial result only means and sd are shown: its correlations and ln Z would be those of weaker couplings.
    """
    table = Table(title=f"{result.n} variables, {result.method}")
    for heading in ("variable", "mean", "sd"):
        table.add_column(heading, justify="left" if heading == "variable" else "right", no_wrap=True)
    for i in range(min(rows, result.n)):
        table.add_row(Text(result.label(i)), f"{result.mean[i]:.4g}", f"{result.standard_deviation[i]:.4g}")
    if result.n > rows:
        table.caption = f"the first {rows}; {result.n - rows} more are not shown"
    parts: list[RenderableType] = [table]
    if result.converged and result.covariance is not None and result.n > 1:
        parts.append(_strongest(result, pairs))
    return Group(*parts, _inference_verdict(result))


def fit_table(fitted: NonnegativeBoltzmann, *, rows: int = 15) -> RenderableType:
    """The `rows` clearest couplings with standard errors and z, where the method has them, and what was done."""
    (i, j), names = fitted.edges_, fitted.get_feature_names_out()
    places, couplings, errors = fitted.clearest(rows)
    table = Table(title=f"the {places.size} clearest of {i.size} couplings", caption="above 0 suppress, below 0 excite")
    for heading in ("pair", "w", "± se", "z"):
        table.add_column(heading, justify="left" if heading == "pair" else "right", no_wrap=True)
    for row, (k, w) in enumerate(zip(places, couplings, strict=True)):
        pair = Text(f"{names[i[k]]} – {names[j[k]]}")
        if errors is None or not np.isfinite(errors[row]):
            table.add_row(pair, f"{w:+.4g}", "–", "–")
            continue
        digits = max(0, 1 - math.floor(math.log10(errors[row])))  # two of the error
        table.add_row(pair, f"{w:+.{digits}f}", f"{errors[row]:.{digits}f}", f"{w / errors[row]:+.1f}")
    return Group(table, Text(fitted.report_))


def _strongest(result: Inference, pairs: int) -> Table:
    i, j = np.triu_indices(result.n, 1)
    correlation = result.correlation[i, j]
    order = np.argsort(-np.abs(correlation).round(9), kind="stable")[:pairs]  # rounding must not order what is equal
    table = Table(title="strongest correlations")
    table.add_column("pair", no_wrap=True)
    table.add_column("correlation", justify="right")
    for k in order:
        table.add_row(Text(f"{result.label(int(i[k]))} – {result.label(int(j[k]))}"), f"{correlation[k]:+.3f}")
    return table


def _inference_verdict(result: Inference) -> Text:
    ln_z = result.log_partition if result.converged else None
    error = f"{result.expected_error:.1g} sd" if np.isfinite(result.expected_error) else "unknown"
    said = f"ln Z {'–' if ln_z is None else format(ln_z, '.6g')}, expected error {error}, {result.iterations} sweeps\n"
    if result.alternatives:
        said += f"other solutions: {len(result.alternatives)} by {result.alternatives[0].method}, in `alternatives`\n"
    status = (result.status.value, "" if result.status.reliable else "bold red")
    return Text.assemble(said, "status: ", status)

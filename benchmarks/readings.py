"""What the paper's learning tables can mean: readings of Downs, SusP and I-SusP on both of its models.

`python -m benchmarks.readings [--trials 10]` prints the mean absolute errors e_b / e_w of every reading beside the
paper's, and how far the worst of its four figures is from the paper's in standard errors (both averages' noise). The
paper's grid figures of SusP and I-SusP are also compared with the 2 x 2 block of their table transposed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq

from nnbm import NNBM, Inference, NotConverged, Options, UnreliableWarning, gallery, infer, sample
from nnbm.arrays import FloatArray
from nnbm.learning.downs import downs
from nnbm.learning.edges import EdgeSet
from nnbm.learning.inverse import inverse, sites_of
from nnbm.learning.moments import Moments, moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.rows import Rows

GRID, RING = "grid", "orientation"
DRAWS, CHAINS, THIN = 2_500, 4, 20
PAPER_TRIALS, ROUNDING = 50, 1e-3 / np.sqrt(12.0)
PAPER: Mapping[str, FloatArray] = {  # (model, e_b and e_w), the paper's tables 1 and 2
    "Downs": np.array([[0.515, 0.376], [10.772, 0.700]]),
    "SusP": np.array([[0.297, 0.095], [1.644, 0.151]]),
    "I-SusP": np.array([[0.153, 0.060], [0.480, 0.107]]),
}
FAR = 20  # standard errors, beyond which the number says nothing more
CLIMB_STEPS, CLIMB_RATE = 450, 0.2
CLAMPED_TIME = 20.0


@dataclass(frozen=True, eq=False)
class Data:
    """One data set: the truth, its moments on the edges, those of its first quarter, and the inverse covariance."""

    truth: Parameters
    moments: Moments
    quarter: Moments
    precision: FloatArray


def data_of(model: NNBM, seed: int) -> Data:
    """N = 10,000 rows of one model; the quarter is one of the chains."""
    table = sample(model, DRAWS, chains=CHAINS, thin=THIN, seed=seed, threads=1, progress=False).flat
    rows, few = Rows.checked(table), Rows.checked(table[:DRAWS])
    edges, pairs = EdgeSet(model.n, *model.edges), EdgeSet.complete(model.n)
    precision: FloatArray = np.asarray(np.linalg.inv(moments(rows, pairs).dense_covariance), dtype=np.float64)
    return Data(Parameters.of_model(model, edges), moments(rows, edges), moments(few, edges), precision)


def cases(trials: int) -> dict[str, list[Data]]:
    """The paper's two models, N rows each; the grid's biases are drawn anew in every trial."""
    return {
        GRID: [data_of(gallery.square_grid(6, 6, seed=k), k) for k in range(trials)],
        RING: [data_of(gallery.orientation_tuning(), k) for k in range(trials)],
    }


def with_bias(edges: EdgeSet, m: FloatArray, diagonal: FloatArray, couplings: FloatArray) -> Parameters:
    """EQ 10's b for any w: b_i = -1/m_i + 2 w_ii m_i + sum w_ij m_j - m_i sum w_ij² m_j² - 2 w_ii² m_i³."""
    reaction = m * edges.pulls(couplings**2, m * m)
    bias = -1.0 / m + 2.0 * diagonal * m + edges.pulls(couplings, m) - reaction - 2.0 * diagonal**2 * m**3
    return Parameters(edges, bias, diagonal, couplings)


def one_shot(data: Data) -> Parameters:
    """EQ 10: w_ij = -C_ij/(m_i² m_j²), w_ii = (2 m_i² - <x_i²>)/(2 m_i⁴), then b."""
    return downs(data.moments).parameters


def one_shot_plus(data: Data, constant: float = 1.0) -> Parameters:
    """EQ 10 with w_ii = 1 + (2 m_i² - <x_i²>)/(2 m_i⁴), and b from these w_ii."""
    found = one_shot(data)
    return with_bias(found.edges, data.moments.mean, found.diagonal + constant, found.couplings)


def one_shot_plus_scaled(data: Data) -> Parameters:
    """EQ 10 with a constant that has w's unit: w_ii = 1/(4 m_i²) + (2 m_i² - <x_i²>)/(2 m_i⁴), and b from these."""
    found, m = one_shot(data), data.moments.mean
    return with_bias(found.edges, m, found.diagonal + 0.25 / m**2, found.couplings)


def one_shot_plus_after(data: Data) -> Parameters:
    """EQ 10 with the same w_ii, but b from the w_ii before 1 is added."""
    found = one_shot(data)
    return replace(found, diagonal=found.diagonal + 1.0)


def diagonal_known(data: Data) -> Parameters:
    """EQ 10 with w_ii fixed at the truth, b from these w_ii."""
    return with_bias(data.moments.edges, data.moments.mean, data.truth.diagonal, one_shot(data).couplings)


def diagonal_first_order(data: Data) -> Parameters:
    """EQ 10 with the w_ii to first order only: b without -2 w_ii² m_i³."""
    found = one_shot(data)
    return replace(found, bias=found.bias + 2.0 * found.diagonal**2 * data.moments.mean**3)


def counted_once(data: Data) -> Parameters:
    """Lost factors of 2: w_ij = -2C_ij/(m_i² m_j²), w_ii = (2m_i² - <x_i²>)/(4m_i⁴), b_i = -1/m_i + sum_j w_ij m_j."""
    found, m = one_shot(data), data.moments.mean
    couplings, diagonal = 2.0 * found.couplings, 0.5 * found.diagonal
    return Parameters(found.edges, -1.0 / m + diagonal * m + found.edges.pulls(couplings, m), diagonal, couplings)


def clamped_climb(data: Data) -> Parameters:
    """EQ 10 as an ascent from W = I stopped at time t: w -> w* + (w(0) - w*) exp(-k t), k = m_i² m_j² and 2 m_i⁴."""
    found, m = one_shot(data), data.moments.mean
    e, square = found.edges, m * m
    couplings = found.couplings * -np.expm1(-CLAMPED_TIME * square[e.i] * square[e.j])
    diagonal = found.diagonal + (1.0 - found.diagonal) * np.exp(-2.0 * CLAMPED_TIME * square**2)
    return with_bias(e, m, diagonal, couplings)


def linear_response(data: Data) -> Parameters:
    """EQ 10's db/dm for C^{-1}: w_ij - 2 w_ij² m_i m_j = (C^{-1})_ij (smaller root), w_ii and b as in EQ 10."""
    found, m = one_shot(data), data.moments.mean
    e = found.edges
    product = m[e.i] * m[e.j]
    root = np.sqrt(np.maximum(1.0 - 8.0 * product * data.precision[e.i, e.j], 0.0))
    return with_bias(e, m, found.diagonal, (1.0 - root) / (4.0 * product))


def naive(data: Data) -> Parameters:
    """Naive mean field of truncated normals (l, r): w_ij = (C^{-1})_ij, w_ii = r_i, b_i = l_i + sum w_ij m_j."""
    m, e = data.moments.mean, data.moments.edges
    l, r = sites_of(data.moments)
    couplings = data.precision[e.i, e.j]
    return Parameters(e, l + e.pulls(couplings, m), r, couplings)


def susp(data: Data) -> Parameters:
    """SusP at its fixed point: m_i, v_i and M_ij on the edges equal the data's."""
    return inverse(data.moments, "susp").parameters


def susp_response(data: Data) -> Parameters:
    """SusP with M_ii + m_i² for v_i in the gradient of w_ii: m_i, M_ii and M_ij equal the data's."""
    target = data.moments.variance
    variance = target
    for _ in range(30):
        found = inverse(replace(data.moments, variance=variance), "susp").parameters
        gap = target - _covariance(infer(found.model(), "susp", throw=False)).diagonal()
        if np.abs(gap).max() < 1e-6 * target.max():
            return found
        variance = variance + gap
    raise NotConverged("M_ii did not reach the data's variances.", found)


def susp_climb(data: Data) -> Parameters:
    """SusP, the paper's plain climb stopped early."""
    return _climb(data, "susp")


def isusp(data: Data) -> Parameters:
    """I-SusP at its fixed point: m_i, v_i, M_ii and M_ij on the edges equal the data's."""
    return inverse(data.moments, "isusp").parameters


def isusp_printed_l(data: Data) -> Parameters:
    """I-SusP with the printed l_i, w_ij for w_ij²: b_i moves by m_i sum (w_ij - w_ij²) s_j."""
    found, m, s = isusp(data), data.moments.mean, data.moments.variance
    return replace(found, bias=found.bias + m * found.edges.pulls(found.couplings - found.couplings**2, s))


def isusp_printed_r(data: Data) -> Parameters:
    """I-SusP with the printed r_i, v_j for v_j - m_j²: w_ii moves by sum w_ij² m_j²."""
    found = isusp(data)
    return replace(found, diagonal=found.diagonal + found.edges.pulls(found.couplings**2, data.moments.mean**2))


def isusp_quarter(data: Data) -> Parameters:
    """I-SusP from a quarter of the rows, as draws that repeat each other would be worth."""
    return inverse(data.quarter, "isusp").parameters


def isusp_climb(data: Data) -> Parameters:
    """I-SusP, the paper's plain climb stopped early."""
    return _climb(data, "isusp")


def _climb(data: Data, method: str) -> Parameters:
    """From b = 0, W = I: b_i += rate (<x_i> - m_i), w_ii += rate (v_i - <x_i²>), w_ij += rate (M_ij + m_i m_j - ..)."""
    found, e = data.moments, data.moments.edges
    products = found.covariance + found.mean[e.i] * found.mean[e.j]
    here = Parameters(e, np.zeros(e.n), np.ones(e.n), np.zeros(e.size))
    for _ in range(CLIMB_STEPS):
        state = infer(here.model(), method, options=Options(tolerance=1e-5))
        by_pairs = _covariance(state)[e.i, e.j] + state.mean[e.i] * state.mean[e.j] - products
        step = np.concatenate([found.mean - state.mean, state.second_moment - found.second_moment, by_pairs])
        here = Parameters.from_vector(e, here.vector + CLIMB_RATE * step)
    return here


def _covariance(state: Inference) -> FloatArray:
    if state.covariance is None:
        raise NotConverged("the method has no covariances here.", state)
    return state.covariance


Reading = Callable[[Data], Parameters]
READINGS: Mapping[str, tuple[tuple[str, Reading], ...]] = {
    "Downs": (
        ("EQ 10, one shot", one_shot),
        ("EQ 10, w_ii + 1", one_shot_plus),
        ("EQ 10, w_ii + 1 once b is found", one_shot_plus_after),
        ("EQ 10, w_ii + 1/(4 m_i²)", one_shot_plus_scaled),
        ("EQ 10, w_ii known", diagonal_known),
        ("EQ 10, first order in w_ii", diagonal_first_order),
        ("EQ 10, factors of 2 lost", counted_once),
        ("EQ 10, climb from W = I stopped early", clamped_climb),
        ("EQ 10, w_ij by linear response", linear_response),
        ("naive, truncated normals", naive),
    ),
    "SusP": (
        ("fixed point", susp),
        ("M_ii + m_i² for v_i", susp_response),
        (f"{CLIMB_STEPS} steps of the plain climb", susp_climb),
    ),
    "I-SusP": (
        ("fixed point", isusp),
        ("l as printed", isusp_printed_l),
        ("r as printed", isusp_printed_r),
        ("a quarter of the rows", isusp_quarter),
        (f"{CLIMB_STEPS} steps of the plain climb", isusp_climb),
    ),
}


def errors(found: Parameters, truth: Parameters) -> tuple[float, float]:
    """The paper's e_b and e_w."""
    off = np.concatenate([found.diagonal - truth.diagonal, found.couplings - truth.couplings])
    return float(np.abs(found.bias - truth.bias).mean()), float(np.abs(off).mean())


def scores(reading: Reading, sets: Sequence[Data]) -> FloatArray:
    """(sets that it could learn from, 2) e_b and e_w."""
    rows = []
    for data in sets:
        try:
            rows.append(errors(reading(data), data.truth))
        except (ValueError, NotConverged):  # no such site, no fixed point, no model: the table counts the others
            continue
    return np.array(rows).reshape(-1, 2)


def averages(by_trial: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """(model, 2) averages, and the standard errors of their distance to averages over the paper's trials."""
    means = np.array([rows.mean(axis=0) for rows in by_trial])
    noise = [rows.var(axis=0, ddof=1) * (1.0 / len(rows) + 1.0 / PAPER_TRIALS) + ROUNDING**2 for rows in by_trial]
    return means, np.sqrt(noise)


def transposed(method: str) -> FloatArray | None:
    """The paper's figures of a method if SusP's and I-SusP's columns of the grid's table were its rows."""
    if method == "Downs":
        return None
    place = ("SusP", "I-SusP").index(method)
    grid = [PAPER["SusP"][0, place], PAPER["I-SusP"][0, place]]
    return np.array([grid, PAPER[method][1]])


def pair(values: FloatArray) -> str:
    """'e_b / e_w'."""
    return f"{values[0]:.3f} / {values[1]:.3f}"


def line(name: str, method: str, by_trial: Sequence[FloatArray], trials: int) -> tuple[str, ...]:
    """One reading's row of the table."""
    if min(len(rows) for rows in by_trial) < 2:
        return (f"  {name}", *("-" if len(rows) < 2 else pair(rows.mean(axis=0)) for rows in by_trial), "-", "")
    means, noise = averages(by_trial)
    other = transposed(method)
    counts = ["" if len(rows) == trials else f" ({len(rows)})" for rows in by_trial]
    cells = [pair(row) + count for row, count in zip(means, counts, strict=True)]
    away = [float(np.abs((means - paper) / noise).max()) for paper in (PAPER[method], other) if paper is not None]
    shown = [f"{value:.1f}" if value < FAR else f"> {FAR}" for value in away]
    return (f"  {name}", *cells, *shown, *([""] * (2 - len(shown))))


def table(sets: Mapping[str, Sequence[Data]], trials: int) -> Table:
    """All readings under the paper's figures."""
    found = Table(title=f"e_b / e_w, averages of {trials} data sets; off: worst figure's distance in standard errors")
    for heading in ("reading", GRID, RING, "off", "off, transposed"):
        found.add_column(heading, justify="left" if heading == "reading" else "right")
    for method, readings in READINGS.items():
        found.add_section()
        found.add_row(f"[bold]{method}, paper[/]", *(f"[bold]{pair(row)}[/]" for row in PAPER[method]))
        other = transposed(method)
        if other is not None:
            found.add_row(f"[bold]{method}, paper, transposed[/]", *(f"[bold]{pair(row)}[/]" for row in other))
        for name, reading in readings:
            found.add_row(*line(name, method, [scores(reading, sets[key]) for key in (GRID, RING)], trials))
    return found


def constants(sets: Mapping[str, Sequence[Data]]) -> list[str]:
    """Per figure of Downs in the paper, the c with which w_ii + c gives it, and its standard error."""
    found = []
    for row, key in enumerate((GRID, RING)):
        for column, name in enumerate(("e_b", "e_w")):

            def gap(c: float, key: str = key, row: int = row, column: int = column) -> float:
                by_trial = scores(lambda data: one_shot_plus(data, c), sets[key])[:, column]
                return float(by_trial.mean()) - float(PAPER["Downs"][row, column])

            try:
                c = brentq(gap, 0.7, 1.5, xtol=1e-4)
            except ValueError:
                found.append(f"{key} {name}: none")
                continue
            _, noise = averages([scores(lambda data, c=c: one_shot_plus(data, c), sets[key])])  # type: ignore[misc]
            slope = (gap(c + 0.01) - gap(c - 0.01)) / 0.02
            found.append(f"{key} {name}: {c:.3f} ± {noise[0, column] / abs(slope):.3f}")
    return found


def main() -> int:
    """Sample, learn, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10, help="data sets of each model, at least 2")
    trials = max(parser.parse_args().trials, 2)
    warnings.simplefilter("ignore", UnreliableWarning)
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    sets = cases(trials)
    console.print(table(sets, trials))
    console.print(f"Downs: the constant c with which w_ii + c gives the paper's figure: {'; '.join(constants(sets))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

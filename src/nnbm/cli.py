"""The command line: thin shells over the library. Exit codes: 0 done, 1 unreliable result, 2 wrong use."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nnbm.model import NNBM
    from nnbm.sampling.result import Samples

app = typer.Typer(
    name="nnbm",
    help="Nonnegative Boltzmann machines: sample them, infer them, learn them.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

Draws = Annotated[int, typer.Option(min=1, help="Draws kept per chain.")]
Chains = Annotated[int, typer.Option(min=1, help="Independent chains, spread over the cores.")]
Thin = Annotated[int, typer.Option(min=1, help="Sweeps between kept draws.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same draws.")]
FigureFile = Annotated[Path | None, typer.Option(help="Write a figure here (png, pdf, svg).", dir_okay=False)]
ModelFile = Annotated[Path, typer.Argument(help="A model saved by nnbm (npz).", exists=True, dir_okay=False)]
OutputFile = Annotated[Path | None, typer.Option(help="Write the draws here (npz).", dir_okay=False)]


@dataclass(frozen=True)
class _Request:
    """What `demo` and `sample` are asked for alike."""

    draws: int
    chains: int
    thin: int
    seed: int
    figure: Path | None
    output: Path | None
    method: str = "auto"


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"nnbm {version('nnbm')}")
        raise typer.Exit


@app.callback()
def _main(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example:  nnbm demo --epsilon 3 --figure bump.png")
def demo(
    n: Annotated[int, typer.Option("--n", min=4, help="Neurons on the ring.")] = 36,
    beta: Annotated[float, typer.Option(min=1e-3, help="Inverse temperature.")] = 10.0,
    epsilon: Annotated[float, typer.Option(min=0.0, help="Tuning strength: a bump forms above 2.")] = 2.0,
    draws: Draws = 10_000,
    chains: Chains = 4,
    thin: Thin = 5,
    seed: Seed = 0,
    figure: FigureFile = Path("orientation_tuning.png"),
    output: OutputFile = None,
    save_model: Annotated[Path | None, typer.Option(help="Write the model here (npz).", dir_okay=False)] = None,
) -> None:
    """Sample the paper's orientation-tuning network; print a table, draw a figure."""
    from nnbm import gallery, plots, store  # so that --help answers at once

    model = gallery.orientation_tuning(n, beta=beta, epsilon=epsilon)
    if save_model is not None:
        store.save_model(model, save_model)
    _sample(model, _Request(draws, chains, thin, seed, figure, output), plots.tuning_figure)


@app.command(epilog="Example:  nnbm demo --save-model ring.npz && nnbm sample ring.npz --figure ring.png")
def sample(
    model: Annotated[Path, typer.Argument(help="A model saved by nnbm (npz).", exists=True, dir_okay=False)],
    draws: Draws = 1_000,
    chains: Chains = 4,
    thin: Thin = 1,
    seed: Seed = 0,
    figure: FigureFile = None,
    output: OutputFile = None,
    method: Annotated[
        str, typer.Option(help="auto, gibbs, tempering (several modes), fields (slow moves) or hmc.")
    ] = "auto",
    to: Annotated[
        Path | None,
        typer.Option(
            help="Write the draws to this folder as they come, however many; the same command goes on with a folder "
            "that is not finished. Read it with nnbm.open_samples.",
            file_okay=False,
        ),
    ] = None,
) -> None:
    """Draw from a saved model; print a table of means, errors, ESS and R-hat."""
    from nnbm import plots, store

    if to is not None:
        if figure is not None or output is not None:
            raise ValueError(
                "to: --figure and --output need all draws in memory. Leave them out, and take what they need from "
                "nnbm.open_samples(folder).load(variables=..., every=...)."
            )
        _sample_to(to, store.load_model(model), _Request(draws, chains, thin, seed, None, None, method))
        return
    _sample(store.load_model(model), _Request(draws, chains, thin, seed, figure, output, method), plots.samples_figure)


@app.command(epilog="Example:  nnbm reproduce --quick")
def reproduce(
    experiment: Annotated[
        str, typer.Option(help="paper (both tables), hard (several modes), all, or one experiment, such as grid.")
    ] = "paper",
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials per experiment.", show_default="50; 10 if hard")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Five trials.")] = False,
    folder: Annotated[Path, typer.Option(help="Trials, figures and report.html go here.", file_okay=False)] = Path(
        "nnbm-reproduce"
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one per core")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished trials again.")] = False,
) -> None:
    """Reproduce the paper's tables: learn both of its models back with every estimator. A killed run goes on."""
    from rich.console import Console

    from nnbm.study import report, run, summary

    if quick and trials is not None:
        raise ValueError(f"trials: --quick means five, but --trials is {trials}. Leave one of them out.")
    names = run.names_of(experiment)
    console = Console()
    try:
        found = run.run_trials(names, folder, trials=5 if quick else trials, workers=workers, fresh=fresh)
    except KeyboardInterrupt as error:  # click would end it without a word
        raise typer.Exit(_told(error, 130)) from error
    if found.reused:
        console.print(f"finished before, in {folder}: {found.reused} trials (--fresh runs them again)", highlight=False)
    for name, outcomes in found.outcomes.items():
        table = summary.summarise(name, outcomes)
        console.print(report.summary_table(table))
        for remark in table.remarks:
            console.print(f"  {remark}", highlight=False, markup=False, style="dim")
    command = f"nnbm reproduce --experiment {experiment}" + (
        " --quick" if quick else f" --trials {trials}" * bool(trials)
    )
    page = report.write_report(found.outcomes, folder, command)
    console.print(f"report: {page}", highlight=False, markup=False)


def _sample(model: NNBM, request: _Request, draw_figure: Callable[[NNBM, Samples], Figure]) -> None:
    from rich.console import Console

    import nnbm
    from nnbm import report, store

    console = Console()
    with _unreliable_is_exit_1():
        samples = nnbm.sample(
            model, request.draws, chains=request.chains, method=request.method, thin=request.thin, seed=request.seed
        )
        console.print(repr(model), highlight=False)
        console.print(report.samples_table(samples))
        if request.output is not None:
            store.save_samples(samples, request.output)
            console.print(f"draws: {request.output}", highlight=False, markup=False)
        if request.figure is not None:
            draw_figure(model, samples).savefig(request.figure, dpi=150)
            console.print(f"figure: {request.figure}", highlight=False, markup=False)


def _sample_to(folder: Path, model: NNBM, request: _Request) -> None:
    from rich.console import Console

    import nnbm
    from nnbm import report

    console = Console()
    with _unreliable_is_exit_1():
        try:
            stored = nnbm.sample_to(
                folder, model, request.draws, chains=request.chains, method=request.method, thin=request.thin,
                seed=request.seed,
            )  # fmt: skip
        except KeyboardInterrupt as error:  # click would end it without a word
            raise typer.Exit(_told(error, 130)) from error
        console.print(repr(model), highlight=False)
        console.print(report.moments_table(stored.moments))
        console.print(f"draws: {folder}", highlight=False, markup=False)


@contextmanager
def _unreliable_is_exit_1() -> Iterator[None]:
    """Warnings of unreliable results are told on standard error when all is shown and written; exit code 1."""
    from rich.console import Console

    from nnbm.errors import UnreliableWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreliableWarning)
        yield
    notes = Console(stderr=True)
    for warning in caught:
        notes.print(f"warning: {warning.message}", style="bold red", highlight=False, markup=False)
    if caught:
        raise typer.Exit(1)


@app.command(epilog="Example:  nnbm demo --save-model ring.npz && nnbm infer ring.npz --method isusp --output ring.csv")
def infer(
    model: ModelFile,
    method: Annotated[
        str, typer.Option(help="auto, exact, pairs, epc, ep, isusp, isusp3, susp, tap, tap3, naive or downs.")
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option(help="Write the result here: npz (all of it) or csv (by variable).", dir_okay=False)
    ] = None,
) -> None:
    """Infer a saved model without sampling: means, sd, correlations, ln Z and how far to trust them."""
    from rich.console import Console

    import nnbm
    from nnbm import report, store

    console = Console()
    loaded = store.load_model(model)
    with _unreliable_is_exit_1():
        result = nnbm.infer(loaded, method, throw=False)
        console.print(repr(loaded), highlight=False)
        console.print(report.inference_table(result))
        if output is not None:
            store.save_inference(result, output)
            console.print(f"result: {output}", highlight=False, markup=False)


@app.command(
    epilog="Example:  nnbm fit table.csv --columns oak,ash,elm --figure couplings.png --save-model network.npz"
)
def fit(
    table: Annotated[
        Path,
        typer.Argument(
            help="Measurements, nonnegative or between --lower and --upper: csv, tsv, txt or npy.",
            exists=True,
            dir_okay=False,
        ),
    ],
    method: Annotated[
        str, typer.Option(help="auto, pseudolikelihood, score_matching, likelihood, isusp, ...")
    ] = "auto",
    columns: Annotated[str | None, typer.Option(help="Names of the columns to use, with commas.")] = None,
    ridge: Annotated[float, typer.Option(min=0.0, help="Pulls couplings towards 0: 0.01 is mild, 1 strong.")] = 0.0,
    lower: Annotated[float, typer.Option(help="Lower end of every column; -inf for none.")] = 0.0,
    upper: Annotated[float, typer.Option(help="Upper end of every column; inf for none.")] = float("inf"),
    seed: Seed = 0,
    figure: FigureFile = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the fit here, for NonnegativeBoltzmann.load (npz).", dir_okay=False)
    ] = None,
    save_model: Annotated[
        Path | None, typer.Option(help="Write the model here, for nnbm sample and infer (npz).", dir_okay=False)
    ] = None,
) -> None:
    """Learn the network behind a table: couplings with standard errors."""
    from rich.console import Console

    import nnbm
    from nnbm import data, plots, report, store

    console = Console()
    read = data.read_table(table, None if columns is None else [name.strip() for name in columns.split(",")])
    with _unreliable_is_exit_1():
        est = nnbm.NonnegativeBoltzmann(method, ridge=ridge, seed=seed, lower=lower, upper=upper)
        fitted = est.fit(read.values, names=read.names)
        console.print(report.fit_table(fitted))
        if output is not None:
            fitted.save(output)
            console.print(f"fit: {output}", highlight=False, markup=False)
        if save_model is not None:
            store.save_model(fitted.model_, save_model)
            console.print(f"model: {save_model}", highlight=False, markup=False)
        if figure is not None:
            plots.couplings_figure(fitted).savefig(figure, dpi=150)
            console.print(f"figure: {figure}", highlight=False, markup=False)


def main() -> None:
    """Run the program; a wrong input is one line, not a traceback."""
    try:
        app()
    except (ValueError, TypeError, OSError, MemoryError) as error:
        sys.exit(_told(error, 2))
    except (RuntimeError, ArithmeticError) as error:  # a method gave up, a chain ran away: nothing to rely on
        sys.exit(_told(error, 1))


def _told(error: BaseException, code: int) -> int:
    """The error with its notes on standard error; the exit code."""
    sys.stderr.write(" ".join([f"nnbm: {str(error) or 'interrupted.'}", *getattr(error, "__notes__", ())]) + "\n")
    return code

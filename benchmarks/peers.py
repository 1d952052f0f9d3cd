"""Samplers of other Python packages on our models, those of them that are installed: effective draws over plain Gibbs.

`pip install nutpie blackjax hopsy botorch` brings them all; none is needed for anything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec

import numpy as np

from benchmarks.effective import PLAIN, effective, paper_models, timed_draws
from benchmarks.rows import Row
from nnbm import NNBM
from nnbm.arrays import FloatArray
from nnbm.sampling.diagnostics import slowest_functional

__all__ = ["rows"]

_TUNING, _DRAWS, _CHAINS, _SEED = 1000, 4000, 2, 0
Drawn = tuple[FloatArray, float]  # draws (chains, draws, n), CPU seconds without tuning where that can be told apart


def _dense(model: NNBM) -> FloatArray:
    return model.coupling if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()


def _covariance(model: NNBM) -> FloatArray:
    """W's inverse, for the samplers that are of a truncated normal only."""
    w = _dense(model)
    if np.linalg.eigvalsh(w)[0] < 1e-9:
        raise ValueError("W is not positive definite")
    return np.asarray(np.linalg.inv(w), np.float64)


def blackjax_nuts(model: NNBM) -> Drawn:
    """NUTS in ln x, window adaptation."""
    import blackjax
    import jax

    jax.config.update("jax_enable_x64", True)
    b, w = model.bias, _dense(model)

    def log_density(y):  # type: ignore[no-untyped-def]
        x = jax.numpy.exp(y)
        return b @ x - 0.5 * x @ w @ x + y.sum()

    draws, seconds = [], 0.0
    for chain in range(_CHAINS):
        first, second = jax.random.split(jax.random.key(chain))
        warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, parameters), _ = warmup.run(first, np.zeros(model.n), num_steps=_TUNING)
        kernel = blackjax.nuts(log_density, **parameters)

        def step(state, key, kernel=kernel):  # type: ignore[no-untyped-def]
            state, _ = kernel.step(key, state)
            return state, state.position

        run = jax.jit(lambda state, keys, step=step: jax.lax.scan(step, state, keys)[1])
        keys = jax.random.split(second, _DRAWS)
        run(state, keys).block_until_ready()  # compile
        started = time.process_time()
        draws.append(np.exp(np.asarray(run(state, keys))))
        seconds += time.process_time() - started
    return np.array(draws), seconds


def nutpie_nuts(model: NNBM) -> Drawn:
    """NUTS in ln x with a compiled density; its tuning is in the time, as it does not tell it apart."""
    import nutpie
    from numba import njit
    from nutpie.compiled_pyfunc import from_pyfunc

    b, w = np.array(model.bias), np.array(_dense(model))

    @njit
    def log_density(y):  # type: ignore[no-untyped-def]
        x = np.exp(y)
        slope = b - w @ x
        return 0.5 * (b @ x + slope @ x) + y.sum(), slope * x + 1.0

    def expand(y, **_):  # type: ignore[no-untyped-def]
        return {"x": np.exp(y)}

    log_density(np.zeros(model.n))
    compiled = from_pyfunc(
        model.n, lambda: lambda y, **_: log_density(y), lambda *_: expand, [np.dtype(float)], [(model.n,)], ["x"]
    )
    settings = {"chains": _CHAINS, "cores": 1, "seed": _SEED, "progress_bar": False, "save_warmup": False}
    started = time.process_time()
    trace = nutpie.sample(compiled, draws=_DRAWS, tune=_TUNING, **settings)
    seconds = time.process_time() - started
    return np.asarray(trace.posterior["x"]), seconds * _DRAWS / (_DRAWS + _TUNING)


def hopsy_hamiltonian(model: NNBM) -> Drawn:
    """Exact Hamiltonian dynamics for truncated Gaussians (Pakman & Paninski 2014)."""
    import hopsy

    covariance = _covariance(model)
    density = hopsy.Gaussian(mean=covariance @ model.bias, covariance=covariance)
    problem = hopsy.Problem(-np.eye(model.n), np.zeros(model.n), density)
    draws, seconds = [], 0.0
    for chain in range(_CHAINS):
        markov = hopsy.MarkovChain(problem, hopsy.TruncatedGaussianProposal, starting_point=np.ones(model.n))
        generator = hopsy.RandomNumberGenerator(_SEED, chain)
        hopsy.sample(markov, generator, n_samples=_DRAWS // 10)
        started = time.process_time()
        draws.append(hopsy.sample(markov, generator, n_samples=_DRAWS)[1][0])
        seconds += time.process_time() - started
    return np.array(draws), seconds


def botorch_slices(model: NNBM) -> Drawn:
    """Elliptical slices that know linear walls (Gessner, Kanjilal & Hennig 2020)."""
    import torch
    from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler

    torch.set_num_threads(1)
    covariance = torch.as_tensor(_covariance(model))
    mean = covariance @ torch.tensor(model.bias)[:, None]
    walls = (-torch.eye(model.n, dtype=torch.float64), torch.zeros(model.n, 1, dtype=torch.float64))
    draws, seconds = [], 0.0
    for _ in range(_CHAINS):
        sampler = LinearEllipticalSliceSampler(
            inequality_constraints=walls, mean=mean, covariance_matrix=covariance, burnin=_DRAWS // 10
        )
        started = time.process_time()
        draws.append(sampler.draw(_DRAWS).numpy())
        seconds += time.process_time() - started
    return np.array(draws), seconds


PEERS: Mapping[str, Callable[[NNBM], Drawn]] = {
    "blackjax": blackjax_nuts,
    "nutpie": nutpie_nuts,
    "hopsy": hopsy_hamiltonian,
    "botorch": botorch_slices,
}


def rows() -> Iterator[Row]:
    """One row per model and peer that is installed and takes it; no bars."""
    installed = {name: draw for name, draw in PEERS.items() if find_spec(name) is not None}
    for model_name, model in paper_models().items() if installed else ():
        draws, seconds = timed_draws(PLAIN, model, 20_000)
        functional, truth = slowest_functional(draws), draws.mean(axis=(0, 1))
        plain = effective(draws, seconds, functional)
        for name, draw in installed.items():
            yield _row(name, model_name, draw, model, functional, truth, plain.values)


def _row(
    name: str, model_name: str, draw: Callable[[NNBM], Drawn], model: NNBM, functional: FloatArray, truth: FloatArray,
    plain: FloatArray,
) -> Row:  # fmt: skip
    title = f"{name}, {model_name}, bulk ESS of the worst x per CPU second over plain Gibbs"
    try:
        draws, seconds = draw(model)
    except ValueError as error:
        return Row(title, float("nan"), "x", f"refused: {error}")
    theirs = effective(draws, seconds, functional).values
    off = float(np.abs(draws.mean(axis=(0, 1)) - truth).max())
    return Row(
        title, theirs[0] / plain[0], "x",
        f"{theirs[0]:,.0f} a second; x² {theirs[2] / plain[2]:.3f}, slowest {theirs[3] / plain[3]:.3f}; "
        f"means within {off:.3f}",
    )  # fmt: skip

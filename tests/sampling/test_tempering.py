"""Tempering against exact integration, in several modes of unequal weight, with controls that must fail."""

import json
from pathlib import Path

import numpy as np
import pytest

import nnbm
from nnbm import NNBM, Gibbs, Tempering, gallery, sample
from nnbm.sampling.path import path_of
from nnbm.sampling.tempering import _Chain, _Rungs
from nnbm.stream import sequence, streams
from targets import box_models, integrate, small_models

MODELS, BOXES = small_models(), box_models()
# modes a wall apart that Gibbs does not cross in any run, of unequal weight
PAIR = gallery.two_modes(competition=6.0, bias=(6.0, 6.15))
SHIFTED = gallery.square_grid(6, 6, bias=(3.6, 4.4))


def moments_agree(samples, exact, width: float = 5.0) -> bool:
    """Means and second moments within `width` standard errors."""
    x = samples.draws
    products = np.einsum("cdi,cdj->cdij", x, x)[..., *np.triu_indices(samples.n)]
    found = np.concatenate([x, products], axis=2)
    second = (exact.covariance + np.outer(exact.mean, exact.mean))[np.triu_indices(samples.n)]
    error = nnbm.sampling.diagnostics.mean_error(found)
    return bool((np.abs(found.mean(axis=(0, 1)) - np.concatenate([exact.mean, second])) < width * error).all())


@pytest.mark.parametrize("name", MODELS)
def test_moments_against_exact_integration(name):
    model, upper = MODELS[name]
    assert moments_agree(sample(model, 5000, method="tempering", seed=3), integrate(model, upper))


@pytest.mark.parametrize("name", BOXES)
def test_moments_between_other_ends(name):
    model, low, high = BOXES[name]
    s = sample(model, 5000, method="tempering", seed=4)
    assert ((model.lower <= s.draws) & (s.draws <= model.upper)).all()
    assert moments_agree(s, integrate(model, high, lower=low))


def test_a_slightly_wrong_model_is_found_out():
    model, upper = MODELS["triple, mixed signs"]
    wrong = NNBM(model.bias + np.array([0.05, 0.0, 0.0]), model.coupling)
    assert not moments_agree(sample(wrong, 5000, method="tempering", seed=3), integrate(model, upper))


def test_unequal_modes_have_their_weights():
    exact = integrate(PAIR, 14.0, nodes=400)
    s = sample(PAIR, 20_000, method="tempering", seed=0)
    share = exact.mean[0] / exact.mean.sum()
    assert 0.1 < share < 0.4  # unequal
    assert abs(s.mean[0] / s.mean.sum() - share) < 0.01
    np.testing.assert_allclose(s.mean, exact.mean, rtol=0.02)
    np.testing.assert_allclose(s.covariance, exact.covariance, rtol=0.02, atol=0.02)
    assert s.rhat().max() < 1.01


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
@pytest.mark.parametrize("method", [Tempering(ladder=(1.0,)), Gibbs(cycle=("draw",))], ids=["one rung", "Gibbs"])
def test_without_swaps_the_weights_are_wrong(method):
    exact = integrate(PAIR, 14.0, nodes=400)
    s = sample(PAIR, 20_000, method=method, seed=0)
    assert abs(s.mean[0] / s.mean.sum() - exact.mean[0] / exact.mean.sum()) > 0.05
    assert s.rhat().max() > 1.1  # starts in both modes do not let it pass


def test_all_chains_from_one_mode_cross_to_the_other():
    s = sample(PAIR, 5000, method="tempering", seed=1, initial=[0.0, 6.0])
    exact = integrate(PAIR, 14.0, nodes=400)
    assert moments_agree(s, exact)
    assert (s.info["round_trips"] > 500).all()


def test_the_law_does_not_move_on_any_rung():
    """From draws of each rung's own law, a ladder's sweeps and swaps leave every rung's moments where they were."""
    model = NNBM([1.5, 1.2, 0.4], [[1.0, 1.6, -0.3], [1.6, 1.0, 0.5], [-0.3, 0.5, 1.0]])
    path, ladder = path_of(model, sequence(0)), np.array([0.0, 0.5, 1.0])
    chain = _Chain(path, _Rungs.filled(path, ladder, np.ones((3, 3))), streams(1, 1)[0])
    by_rung, out = np.empty((20_000, 3, 3)), np.empty((1, 3))
    for row in by_rung:
        chain.run(1, out)
        row[:] = chain.rungs.x[chain.rungs.at]
        assert (out[0] == row[2]).all()
    for rung, t in enumerate(ladder):
        log_p, x = grid_density(model, path, t)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        mean, second = p @ x, (p[:, None] * x**2).sum(axis=0)
        draws = by_rung[None, :, rung]
        found = np.concatenate([draws, draws**2], axis=2)
        error = nnbm.sampling.diagnostics.mean_error(found)
        assert (np.abs(found.mean(axis=(0, 1)) - np.concatenate([mean, second])) < 5 * error).all()


def grid_density(model: NNBM, path, t: float):
    """ln p_t (up to a constant) of EQ 14 on a grid of points (count, 3), written down anew."""
    nodes, _ = np.polynomial.legendre.leggauss(80)
    axis, weight = 4.0 * (nodes + 1.0), np.log(np.polynomial.legendre.leggauss(80)[1])
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    log_weight = np.add.outer(np.add.outer(weight, weight), weight).ravel()
    off = model.coupling - np.diag(model.diagonal)
    potential = 0.5 * ((x @ off) * x).sum(axis=1)[:, None] - x @ path.fields.T - path.constants
    mixed = np.logaddexp.reduce(path.log_shares + (1.0 - t) * potential, axis=1)
    return log_weight - model.energy(x) + mixed, x


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
def test_draws_do_not_depend_on_threads_or_slices():
    one, two = (sample(SHIFTED, 300, method="tempering", seed=5, threads=k).draws for k in (1, 3))
    assert (one == two).all()
    starts = np.ones((2, 36))
    whole, parts = (Tempering().chains(SHIFTED, starts, 7, 1) for _ in range(2))
    a, b = np.empty((1, 36)), np.empty((1, 36))
    for chain, other in zip(whole, parts, strict=True):
        chain.run(10, a)
        other.run(3, b)
        other.run(7, b)
        assert (a == b).all()


def test_scale_invariance():
    # powers of two scale every number exactly
    model = gallery.square_grid(3, 3, coupling=1.5, bias=(2.0, 3.0))
    scaled = NNBM(model.bias / 4.0, model.coupling / 16.0)
    a, b = (sample(m, 500, method="tempering", seed=2).draws for m in (model, scaled))
    np.testing.assert_allclose(b, 4.0 * a, rtol=1e-6)


def test_info_tells_of_ladder_swaps_and_trips():
    s = sample(SHIFTED, 1000, method="tempering", seed=0)
    ladder, rates = s.info["ladder"], s.info["swap_rates"]
    assert ladder.shape[0] == 4
    assert (ladder[:, 0] == 0.0).all()
    assert (ladder[:, -1] == 1.0).all()
    assert rates.shape == (4, ladder.shape[1] - 1)
    assert ((rates > 0.3) & (rates < 0.9)).all()  # equal shares of the barrier, about two rungs a unit
    assert (s.info["centres"] == 3).all()  # two modes, and the middle between them
    given = sample(SHIFTED, 1000, method=Tempering(ladder=(0.0, 0.4, 1.0)), seed=0, burn_in=0)
    assert (given.info["ladder"] == [0.0, 0.4, 1.0]).all()


@pytest.mark.parametrize("ladder", [(), (0.0, 0.5), (0.5, 0.2, 1.0), (-0.1, 1.0), (0.0, np.nan, 1.0), ((0.0, 1.0),)])
def test_a_ladder_rises_to_one(ladder):
    with pytest.raises(ValueError, match="ladder"):
        Tempering(ladder=ladder)


def test_the_modes_of_the_shifted_grid_have_their_weights():
    """One in some five hundred draws lies in the lesser mode (an hour of Gibbs: see the benchmark)."""
    s = sample(SHIFTED, 20_000, method="tempering", seed=1)
    assert s.rhat().max() < 1.01
    signs = 2 * (np.indices((6, 6)).sum(axis=0).ravel() % 2) - 1
    rare = (s.draws @ signs > 0).astype(float)[..., None]
    error = nnbm.sampling.diagnostics.mean_error(rare)[0]
    assert 0.001 < rare.mean() < 0.004
    assert error < 0.25 * rare.mean()


@pytest.mark.slow
def test_variances_of_the_shifted_grid_against_a_very_long_run():
    """800 million sweeps of overrelaxed Gibbs: scripts/make_shifted_grid_reference.py."""
    reference = {
        name: np.array(values)
        for name, values in json.loads((Path(__file__).parent / "shifted_grid.json").read_text()).items()
    }
    s = sample(SHIFTED, 800_000, method="tempering", seed=12)
    assert (np.abs(s.variance / reference["variance"] - 1.0) < 0.05).all()
    assert (np.abs(s.mean - reference["mean"]) < 5 * np.hypot(s.mean_error, reference["mean_error"])).all()


def test_two_bumps_of_unequal_bias():
    """Two bumps on the ring, opposite each other and one favoured: the density's two halves, against a long run."""
    ring = gallery.orientation_tuning(12, epsilon=4.0, beta=4.0)
    angle = 2 * np.pi * np.arange(12) / 12
    model = NNBM(ring.bias + 2.0 * np.cos(2 * angle) + 0.15 * np.cos(angle), ring.coupling)
    s = sample(model, 5000, method="tempering", seed=0)
    long = sample(model, 10_000, chains=4, thin=30, seed=1)
    assert s.rhat().max() < 1.01
    side, reference = (k.draws @ np.cos(angle) > 0 for k in (s, long))
    errors = [nnbm.sampling.diagnostics.mean_error(k[..., None].astype(float))[0] for k in (side, reference)]
    assert 0.55 < reference.mean() < 0.97
    assert abs(side.mean() - reference.mean()) < 5 * np.hypot(*errors)


@pytest.mark.slow
def test_strong_repulsion_on_a_larger_grid():
    model = gallery.square_grid(10, 10, coupling=3.0)
    s, long = sample(model, 20_000, method="tempering", seed=0), sample(model, 20_000, thin=10, seed=1)
    assert s.rhat().max() < 1.01
    assert (np.abs(s.mean - long.mean) < 5 * np.hypot(s.mean_error, long.mean_error)).all()
    np.testing.assert_allclose(s.variance, long.variance, rtol=0.1)


def test_sparse_and_dense_have_one_law():
    sparse = gallery.square_grid(3, 3, coupling=1.5, bias=(2.0, 3.0))
    dense = NNBM(sparse.bias, sparse.coupling.toarray())
    a, b = (sample(m, 5000, method="tempering", seed=k) for k, m in enumerate((sparse, dense)))
    assert (np.abs(a.mean - b.mean) < 5 * np.hypot(a.mean_error, b.mean_error)).all()

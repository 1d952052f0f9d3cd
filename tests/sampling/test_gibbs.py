"""Gibbs against exact integration, a law that must not move, a control that must fail, and determinism."""

import numpy as np
import pytest
from exact_pairs import PAIRS, drift, z_scores

import nnbm
from nnbm import NNBM, Gibbs, sample
from nnbm.sampling import diagnostics, gibbs
from targets import box_models, copies, integrate, small_models

FEW_DRAWS = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")  # too few to agree, enough to compare
PLAIN = ("draw",)
ORDERS = [Gibbs(order="sequential"), Gibbs(order="chromatic"), Gibbs(order="sequential", cycle=PLAIN)]
MODELS, BOXES = small_models(), box_models()


def many_chains(model: NNBM, starts: np.ndarray, sweeps: int, method: Gibbs, seed: int) -> np.ndarray:
    """Independent chains (count, n) after `sweeps` sweeps from `starts` (count, n)."""
    many = copies(model, starts.shape[0])
    chain = method.chains(many, starts.reshape(1, -1), seed, 1)[0]
    out = np.empty((1, many.n))
    chain.run(sweeps, out)
    return out.reshape(-1, model.n)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ORDERS, ids=lambda m: f"{m.order}-{len(m.cycle)}")
def test_moments_against_exact_integration(name, method):
    model, upper = MODELS[name]
    starts = np.random.default_rng(1).exponential(size=(40_000, model.n))
    x = many_chains(model, starts, 60, method, seed=2)
    assert np.abs(z_scores(model, upper, x)).max() < 5.0  # some 60 scores in all: a false alarm is a 3e-5 event


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("method", ORDERS, ids=lambda m: f"{m.order}-{len(m.cycle)}")
def test_moments_between_other_ends(name, method):
    model, low, high = BOXES[name]
    starts = np.clip(np.random.default_rng(1).normal(size=(40_000, model.n)), model.lower, model.upper)
    x = many_chains(model, starts, 60, method, seed=2)
    assert ((model.lower <= x) & (x <= model.upper)).all()
    assert np.abs(z_scores(model, high, x, low)).max() < 5.0


@pytest.mark.parametrize("name", [name for name in BOXES if "attracting" not in name])
def test_dense_kernel_between_other_ends(name):
    model, low, high = BOXES[name]
    s, exact = sample(model, 4000, chains=4, thin=20, seed=3), integrate(model, high, lower=low)
    assert (np.abs(s.mean - exact.mean) < 5 * s.mean_error).all()
    sd = np.sqrt(np.diag(exact.covariance))
    assert (np.abs(s.covariance - exact.covariance) < 0.06 * np.outer(sd, sd)).all()


@pytest.mark.parametrize("name", MODELS)
def test_dense_kernel_against_exact_integration(name):
    model, upper = MODELS[name]
    s = sample(model, 4000, chains=4, thin=20, seed=3)
    exact = integrate(model, upper)
    assert (np.abs(s.mean - exact.mean) < 5 * s.mean_error).all()
    sd = np.sqrt(np.diag(exact.covariance))
    assert (np.abs(s.covariance - exact.covariance) < 0.06 * np.outer(sd, sd)).all()


def moved(model: NNBM, method: Gibbs):
    """What three sweeps do to independent rows."""
    return lambda before: many_chains(model, before, 3, method, seed=6)


@pytest.mark.parametrize("pair", PAIRS, ids=["bimodal", "positive definite"])
@pytest.mark.parametrize("method", ORDERS, ids=lambda m: f"{m.order}-{len(m.cycle)}")
def test_no_drift(pair, method):
    """Start in the model's law, sweep: the law must not move."""
    assert drift(pair, moved(pair, method)) < 2.6


@pytest.mark.parametrize("pair", PAIRS, ids=["bimodal", "positive definite"])
def test_drift_of_a_slightly_wrong_model_is_seen(pair):
    """Negative control: a bias off by 0.05 must fail the test above."""
    wrong = NNBM(pair.bias + np.array([0.05, 0.0]), pair.coupling)
    assert drift(pair, moved(wrong, Gibbs())) > 2.6


def test_moment_scores_of_a_wrong_law_are_seen():
    """Negative control of the exact-integration test."""
    model, upper = MODELS["pair, not positive definite"]
    wrong = NNBM(model.bias + 0.1, model.coupling)
    x = many_chains(wrong, np.ones((40_000, 2)), 60, Gibbs(), seed=2)
    assert np.abs(z_scores(model, upper, x)).max() > 5.0


def test_orientation_tuning_is_symmetric():
    """Rotations and reflection of the ring leave the law alone: equal means, covariances by distance only."""
    s = sample(nnbm.gallery.orientation_tuning(24, beta=10.0, epsilon=1.5), 5000, chains=4, thin=5, seed=1)
    excess = (s.mean - s.mean.mean()) / s.mean_error
    # neighbours are correlated, so this is not a chi-square: bound the worst of 24
    assert np.abs(excess).max() < 4.5
    place = np.arange(24)
    for distance in range(1, 13):
        around = s.covariance[place, (place + distance) % 24]
        assert around.std() < 6 * s.variance.mean() / np.sqrt(s.ess().min())
    assert s.rhat().max() < 1.01


def test_disconnected_parts_do_not_speak():
    """A model of two unconnected pairs has no covariance between them, and each pair has its own law."""
    model = copies(PAIRS[1], 2)
    s = sample(model, 20_000, chains=2, thin=3, seed=9)
    exact = integrate(PAIRS[1], 16.0)
    assert (np.abs(s.mean - np.tile(exact.mean, 2)) < 5 * s.mean_error).all()
    sd = np.sqrt(np.diag(s.covariance))
    across = s.covariance[:2, 2:] / np.outer(sd[:2], sd[2:])
    assert np.abs(across).max() < 5 / np.sqrt(s.ess().min())


@FEW_DRAWS
@pytest.mark.parametrize("c", [2.0**-20, 2.0**30])
def test_scaling_x_scales_the_draws(c):
    """x -> c x turns (b, W) into (b/c, W/c²); by a power of two without any rounding."""
    model = PAIRS[0]
    plain = sample(model, 50, chains=2, seed=1).draws
    scaled = sample(NNBM(model.bias / c, model.coupling / c**2), 50, chains=2, seed=1).draws
    assert (scaled == c * plain).all()


@FEW_DRAWS
@pytest.mark.parametrize("method", ORDERS, ids=lambda m: f"{m.order}-{len(m.cycle)}")
@pytest.mark.parametrize("rows", [6, 300])
def test_threads_do_not_change_the_draws(method, rows):
    """300 x 300 sites make two blocks per colour, so the threaded path within a chain is taken, too."""
    model = nnbm.gallery.square_grid(rows, rows, coupling=0.2)
    chains = 1 if rows == 300 else 5
    runs = [sample(model, 8, chains=chains, burn_in=2, method=method, seed=5, threads=t).draws for t in (1, 2, 7)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2]).all()


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", ORDERS, ids=lambda m: m.order)
@pytest.mark.parametrize("rows", [4, 260])
def test_a_restored_chain_goes_on_to_the_last_bit(method, dense, rows):
    """260 x 260 sites make several blocks, and streams, per colour."""
    grid = nnbm.gallery.square_grid(rows, rows, coupling=0.2)
    model = NNBM(grid.bias, grid.coupling.toarray()) if dense and rows == 4 else grid
    chain, fresh = (method.chains(model, np.full((1, model.n), x), seed, 2)[0] for x, seed in ((1.0, 1), (3.0, 2)))
    out, again, other = (np.empty((3, model.n)) for _ in range(3))
    chain.run(2, out)
    noted = {name: value.copy() for name, value in chain.state().items()}
    chain.run(1, out)
    fresh.restore(noted)
    fresh.run(1, again)
    assert (again == out).all()
    fresh.restore(noted | {"streams": noted["streams"] + np.uint64(1)})  # negative control
    fresh.run(1, other)
    assert (other != out).any()


@FEW_DRAWS
def test_one_chain_does_not_depend_on_the_others():
    model = nnbm.gallery.square_grid(4, 4)
    few = sample(model, 20, chains=2, initial=np.ones(16), seed=3)
    more = sample(model, 20, chains=6, initial=np.ones(16), seed=3)
    assert (few.draws == more.draws[:2]).all()


@FEW_DRAWS
def test_dense_and_sparse_kernels_draw_the_same():
    """On a chain a field has two terms, whose sum does not depend on the order: equal to the last bit."""
    path, method = nnbm.gallery.square_grid(1, 16, coupling=0.5), Gibbs(order="sequential")
    dense = NNBM(path.bias, path.coupling.toarray())
    assert (sample(path, 30, method=method, seed=1).draws == sample(dense, 30, method=method, seed=1).draws).all()


def test_chromatic_blocks_cover_every_site_once():
    grid = nnbm.gallery.square_grid(300, 300, coupling=0.2)
    blocks = gibbs._by_color(grid.coupling)
    assert np.sort(blocks.sites).tolist() == list(range(grid.n))
    assert blocks.bounds[0] == 0
    assert blocks.bounds[-1] == grid.n
    i, j = grid.edges
    block_of = np.empty(grid.n, int)
    for k in range(blocks.bounds.size - 1):
        block_of[blocks.sites[blocks.bounds[k] : blocks.bounds[k + 1]]] = k
    assert (block_of[i] != block_of[j]).all()


def test_chromatic_on_a_dense_model():
    model, upper = MODELS["triple, mixed signs"]
    s = sample(model, 4000, thin=10, method=Gibbs(order="chromatic"), seed=1)
    assert (np.abs(s.mean - integrate(model, upper).mean) < 5 * s.mean_error).all()


def test_unknown_order_is_refused():
    with pytest.raises(ValueError, match='order: "sequential", "chromatic" or None is meant'):
        Gibbs(order="random")


@pytest.mark.parametrize("cycle", [(), ("flip",), ("draw", "jump"), "draw", ["draw"]])
def test_a_cycle_without_draws_or_of_unknown_moves_is_refused(cycle):
    with pytest.raises(ValueError, match="cycle: a tuple of 'draw', 'flip', 'shift' with at least one 'draw'"):
        Gibbs(cycle=cycle)


@FEW_DRAWS
@pytest.mark.parametrize("model", [nnbm.gallery.square_grid(4, 4), nnbm.gallery.orientation_tuning(8)])
def test_the_cycle_goes_on_where_a_slice_ended(model):
    """However a run is cut into slices, the draws are the same."""
    chains = [Gibbs().chains(model, np.ones((1, model.n)), 3, 1)[0] for _ in range(2)]
    at_once, in_parts = np.empty((7, model.n)), np.empty((7, model.n))
    chains[0].run(3, at_once)
    for k, row in enumerate(in_parts[:, None]):
        chains[1].run(1, row)
        chains[1].run(2, row)
        assert (row == at_once[k]).all()


@pytest.mark.parametrize("name", ["grid", "orientation"])
def test_overrelaxation_pays_off_sweep_by_sweep(name):
    """Effective draws of x, and of x² (never by ranks, or they were the same), at the same number of sweeps."""
    model = nnbm.gallery.square_grid(6, 6) if name == "grid" else nnbm.gallery.orientation_tuning(36)
    plain, over = (sample(model, 10_000, chains=2, seed=1, method=Gibbs(cycle=c)) for c in (PLAIN, Gibbs().cycle))
    assert over.ess("mean").min() > 2.0 * plain.ess("mean").min()
    assert diagnostics.ess(over.draws**2, "mean").min() > 1.3 * diagnostics.ess(plain.draws**2, "mean").min()

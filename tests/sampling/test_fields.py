"""Fields: the splitting, the motion, the law against exact integration, and what it is for: a bump that turns."""

import time

import numpy as np
import pytest
from exact_pairs import PAIRS, drift, z_scores
from scipy import sparse

import nnbm
from nnbm import NNBM, Fields, Gibbs, sample
from nnbm.sampling.diagnostics import ess
from nnbm.sampling.field_chain import FieldChain, trajectory
from nnbm.sampling.field_dynamics import Soft, begin, energy, log_partition, means_beside_walls, other_means, walls_of
from nnbm.sampling.field_tuning import tuned
from nnbm.sampling.split import product_with, split
from nnbm.site.interval_statistics import workspace
from nnbm.stream import streams
from targets import box_models, small_models

FEW_DRAWS = pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
MODELS, BOXES = small_models(), box_models()
ALL = {name: (model, 0.0, upper) for name, (model, upper) in MODELS.items()}
ALL |= {name: (model, low, high) for name, (model, low, high) in BOXES.items()}


def as_sparse(model: NNBM) -> NNBM:
    return NNBM(model.bias, sparse.csr_array(model.coupling), lower=model.lower, upper=model.upper)


def root_of(part) -> np.ndarray:
    """R, (rank, n)."""
    if part.matrix.size:
        return part.factor.T
    rows = np.zeros((part.i.size, part.curvature.size))
    rows[np.arange(part.i.size), part.i] = part.left
    rows[np.arange(part.i.size), part.j] = part.right
    return rows


SPLIT = [
    nnbm.gallery.orientation_tuning(12, epsilon=3.0),
    nnbm.gallery.square_grid(3, 4, coupling=0.9),
    nnbm.gallery.random_graph(30, strength=0.8, seed=3),
    NNBM([0.0, 0.0, 1.0], np.diag([1e-8, 1.0, 1e8]) + 0.3 * (np.ones((3, 3)) - np.eye(3))),
    BOXES["pair, attracting"][0],
    as_sparse(BOXES["pair, attracting"][0]),
]


@pytest.mark.parametrize("model", SPLIT, ids=repr)
def test_split_gives_the_coupling_back(model):
    part = split(model)
    c = product_with(part, np.eye(model.n))
    unit = np.sqrt(np.outer(part.curvature + part.own, part.curvature + part.own))
    w = np.asarray(model.coupling @ np.eye(model.n))
    assert (np.abs(np.diag(part.curvature) - c - w) <= 1e-14 * unit).all()
    root = root_of(part)
    assert (np.abs(root.T @ root - c) <= 1e-13 * unit).all()
    assert np.allclose(part.own, np.diagonal(c))


def test_noise_has_the_covariance_of_the_split():
    for model in (nnbm.gallery.orientation_tuning(6), nnbm.gallery.square_grid(2, 3)):
        part = split(model)
        x = part.noise_rows(50_000, streams(1, 1)[0])
        c = product_with(part, np.eye(model.n))
        error = np.sqrt((np.outer(np.diag(c), np.diag(c)) + c**2) / x.shape[0])
        assert (np.abs(x.T @ x / x.shape[0] - c) < 5 * error).all()


@pytest.mark.parametrize("scale", [0.5, 30.0, 1e3])
def test_means_are_the_slopes_of_the_log_partition(scale):
    """With every kind of end, in the table and far beyond it."""
    lower = np.array([0.0, -np.inf, 1.0, -np.inf, -1.0, 2.0])
    upper = np.array([np.inf, 3.0, np.inf, np.inf, 1.0, 2.5])
    walls = walls_of(np.array([1.0, 2.0, 0.5, 3.0, -1.0, 4.0]), lower, upper)
    nodes, out = workspace(), np.empty(6)
    for l in np.random.default_rng(0).normal(scale=scale, size=(20, 6)):
        means_beside_walls(walls.means, l, walls.place, walls.gain, walls.shift, out)
        other_means(l, walls, nodes, out)
        for i in range(6):
            h = 1e-3 * (1.0 + 0.01 * abs(l[i]))
            values = []
            for k in (-2, -1, 1, 2):
                moved = l.copy()
                moved[i] += k * h
                values.append(log_partition(moved, walls, nodes))
            slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
            noise = 4e-16 * (abs(values[0]) + np.abs(l * out).sum()) / h
            assert abs(slope - out[i]) < 1e-6 * (1.0 + abs(out[i])) + 10 * noise


def motion(model: NNBM, part, soft: Soft, seed: int):
    """A state in the middle of things: room, inner, along, and the z and velocity they stand for."""
    rng, root = np.random.default_rng(seed), root_of(part)
    xi, eta = rng.normal(size=(2, root.shape[0]))
    x = rng.exponential(size=model.n)
    room, inner, along = (
        np.empty((7, model.n)),
        np.array([xi @ xi, xi @ eta, eta @ eta]),
        np.empty((2, soft.speedup.size)),
    )
    room[0] = product_with(part, x)
    begin(model.bias, soft, x, root.T @ xi, root.T @ eta, room[0], room[1], room[2], inner, along)
    across = soft.a @ root.T  # rows e_j
    return room, inner, along, root @ x + xi, eta + ((np.sqrt(soft.speedup) - 1.0) * (across @ eta)) @ across


@pytest.mark.parametrize("model", [SPLIT[0], SPLIT[1]], ids=["dense", "sparse"])
def test_the_motion_is_that_of_z_with_its_masses(model):
    """Against the same integrator on z itself, with every inner product and energy; and back again to the start."""
    part = split(model)
    soft = tuned(model, np.ones(model.n), np.random.SeedSequence(1), 12).soft
    if not soft.speedup.size:
        soft = soft_pair(part)
    walls, nodes, root = walls_of(part.curvature, model.lower, model.upper), workspace(), root_of(part)
    room, inner, along, z, velocity = motion(model, part, soft, seed=5)
    across = soft.a @ root.T
    assert np.allclose(across @ across.T, np.eye(len(across)), atol=1e-10)
    inverse_mass = np.eye(root.shape[0]) + across.T @ np.diag(soft.speedup - 1.0) @ across

    def hamiltonian():
        field = model.bias + root.T @ z
        kinetic = 0.5 * velocity @ np.linalg.solve(inverse_mass, velocity)
        return 0.5 * z @ z + kinetic - log_partition(field, walls, nodes)

    assert np.isclose(energy(room[2], walls, soft, inner, along, nodes), hamiltonian(), rtol=1e-11)
    started, step, rounds = room[0].copy(), 0.4, 7
    trajectory(part, model.bias, walls, soft, step, rounds, room, inner, along, nodes)
    kicks, moves = [0.11888010966548, 0.38111989033452, 0.38111989033452], [0.29619504261126, 0.40760991477748]
    for k in range(3 * rounds + 1):
        force = root @ model.site.moments(model.bias + root.T @ z, part.curvature).mean - z
        share = kicks[k % 3] * (2.0 if k % 3 == 0 and 0 < k < 3 * rounds else 1.0)
        velocity = velocity + 3 * step * share * (inverse_mass @ force)
        if k < 3 * rounds:
            z = z + 3 * step * moves[k % 3 == 1] * velocity
    assert np.allclose(room[0], root.T @ z, rtol=1e-5, atol=1e-5)  # forces are from a table
    assert np.allclose(room[1], root.T @ velocity, rtol=1e-5, atol=1e-5)
    assert np.isclose(energy(room[2], walls, soft, inner, along, nodes), hamiltonian(), rtol=1e-5)
    room[1] *= -1.0
    along[1] *= -1.0
    inner[1] *= -1.0
    trajectory(part, model.bias, walls, soft, step, rounds, room, inner, along, nodes)
    assert np.abs(room[0] - started).max() < 1e-8


def soft_pair(part) -> Soft:
    """Two arbitrary directions, three and a half times as fast."""
    n = part.curvature.size
    a = np.random.default_rng(0).normal(size=(2, n))
    c = product_with(part, np.eye(n))
    lower = np.linalg.cholesky(a @ c @ a.T)
    a = np.linalg.solve(lower, a)
    return Soft(a, a @ c, np.array([3.5, 2.0]))


def test_energy_errors_fall_with_the_fourth_power_of_the_step():
    """At the same time passed; the scheme is of second order, so errors of H fall with the square at least."""
    model = SPLIT[0]
    part, nodes = split(model), workspace()
    walls = walls_of(part.curvature, model.lower, model.upper)
    soft, errors = soft_pair(part), []
    for rounds in (6, 12):
        room, inner, along, _, _ = motion(model, part, soft, seed=5)
        before = energy(room[2], walls, soft, inner, along, nodes)
        trajectory(part, model.bias, walls, soft, 1.2 / rounds, rounds, room, inner, along, nodes)
        errors.append(abs(energy(room[2], walls, soft, inner, along, nodes) - before))
    assert errors[1] < 0.3 * errors[0] + 1e-6


def many_draws(model: NNBM, starts: np.ndarray, sweeps: int, seed: int) -> np.ndarray:
    """Independent rows (count, n) after `sweeps` trajectories from `starts` (count, n), all by one plan."""
    plan = tuned(model, np.clip(1.0, model.lower, model.upper), np.random.SeedSequence(seed), None)
    chain, out = FieldChain.of(plan, starts[0], streams(seed + 1, 1)[0]), np.empty_like(starts)
    for k, start in enumerate(starts):
        chain.x[:] = start
        chain.run(sweeps, out[k : k + 1])
    return out


CASES = [("dense", name) for name in ALL] + [("sparse", name) for name in ALL if "triple" in name or "one" in name]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_moments_against_exact_integration(kind, name):
    model, low, high = ALL[name]
    starts = np.clip(np.random.default_rng(1).exponential(size=(3_000, model.n)), model.lower, model.upper)
    x = many_draws(as_sparse(model) if kind == "sparse" else model, starts, 12, seed=2)
    assert ((model.lower <= x) & (x <= model.upper)).all()
    assert np.abs(z_scores(model, high, x, low)).max() < 5.0  # some 150 scores in all: a false alarm is a 1e-4 event


def test_moment_scores_of_a_wrong_law_are_seen():
    """Negative control of the exact-integration test."""
    model, upper = MODELS["pair, not positive definite"]
    x = many_draws(NNBM(model.bias + 0.2, model.coupling), np.ones((6_000, 2)), 12, seed=2)
    assert np.abs(z_scores(model, upper, x)).max() > 5.0


@pytest.mark.parametrize("pair", PAIRS, ids=["bimodal", "positive definite"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_no_drift(pair, kind):
    """Start in the model's law, move: the law must stay."""
    model = as_sparse(pair) if kind == "sparse" else pair
    assert drift(pair, lambda before: many_draws(model, before, 2, seed=6), 60_000) < 2.6


@pytest.mark.parametrize("pair", PAIRS, ids=["bimodal", "positive definite"])
def test_drift_of_a_slightly_wrong_model_is_seen(pair):
    """Negative control: a bias off by 0.1 must fail the test above."""
    wrong = NNBM(pair.bias + np.array([0.1, 0.0]), pair.coupling)
    assert drift(pair, lambda before: many_draws(wrong, before, 2, seed=6), 60_000) > 2.6


def test_orientation_tuning_is_symmetric():
    """Rotations and reflection of the ring leave the law alone, bump or not, though soft directions break them."""
    s = sample(nnbm.gallery.orientation_tuning(24, beta=10.0, epsilon=3.0), 8000, chains=4, method="fields", seed=1)
    assert np.abs((s.mean - s.mean.mean()) / s.mean_error).max() < 4.5
    place = np.arange(24)
    for distance in range(1, 13):
        around = s.covariance[place, (place + distance) % 24]
        assert np.abs(around - around.mean()).max() < 0.12 * s.variance.mean()


def test_unconnected_parts_do_not_speak():
    model = NNBM([0.5, -0.3, 0.8, 0.4], sparse.block_diag([PAIRS[0].coupling, PAIRS[1].coupling]).tocsr())
    s = sample(model, 5000, method="fields", seed=1)
    a, b = (s.flat[:, k] - s.mean[k] for k in (0, 2))
    error = 1.0 / np.sqrt(ess((s.draws[:, :, [0]] - s.mean[0]) * (s.draws[:, :, [2]] - s.mean[2]), "mean")[0])
    assert abs((a * b).mean() / (a.std() * b.std())) < 5 * error


@FEW_DRAWS
@pytest.mark.parametrize("c", [2.0**-20, 2.0**30])
@pytest.mark.parametrize("make", [lambda m: m, as_sparse], ids=["dense", "sparse"])
def test_scaling_x_scales_the_draws(c, make):
    """x -> c x turns (b, W) into (b/c, W/c²): the same draws but for rounding."""
    model = PAIRS[0]
    plain = sample(make(model), 10, chains=2, seed=1, method="fields").draws
    scaled = sample(make(NNBM(model.bias / c, model.coupling / c**2)), 10, chains=2, seed=1, method="fields").draws
    assert np.allclose(scaled, c * plain, rtol=1e-6)


@FEW_DRAWS
@pytest.mark.parametrize("model", [nnbm.gallery.square_grid(5, 5), nnbm.gallery.orientation_tuning(10)], ids=repr)
def test_threads_and_other_chains_do_not_change_the_draws(model):
    runs = [sample(model, 20, chains=c, method="fields", initial=np.ones(model.n), seed=5, threads=t).draws
            for c, t in ((3, 1), (3, 2), (5, 7))]  # fmt: skip
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2][:3]).all()
    assert len(np.unique(runs[2][:, 0, 0])) == 5


def test_two_sweeps_are_one_sweep_twice():
    model = nnbm.gallery.square_grid(4, 4)
    one, other = (Fields().chains(model, np.ones((1, 16)), 3, 1)[0] for _ in range(2))
    a, b = np.empty((1, 16)), np.empty((2, 16))
    one.run(4, a)
    other.run(2, b)
    assert (a[0] == b[1]).all()
    assert one.info() == other.info()


def test_a_chain_that_is_not_finite_stays_so():
    model = nnbm.gallery.square_grid(2, 2)
    chain, out = Fields().chains(model, np.ones((1, 4)), 3, 1)[0], np.empty((3, 4))
    chain.x[0] = np.nan
    chain.run(1, out)
    assert np.isnan(out).all()


def test_a_chain_that_runs_away_is_seen():
    """Z is infinite: as if copositivity had been unproven, and wrongly hoped for."""
    model = NNBM([0.5, 0.5], [[1.0, -0.9], [-0.9, 1.0]])
    object.__setattr__(model, "coupling", np.array([[1.0, -1.3], [-1.3, 1.0]]))
    with pytest.raises(OverflowError, match="a chain ran away"):
        sample(model, 20_000, chains=2, method="fields", seed=1)


def test_it_comes_back_from_far_away():
    s = sample(nnbm.gallery.orientation_tuning(16), 1000, chains=2, method="fields", initial=np.full(16, 1e4), seed=1)
    assert s.rhat().max() < 1.01


def test_variables_without_couplings_are_drawn_independently():
    model = NNBM([1.0, -2.0, 0.5], np.diag([1.0, 2.0, 3.0]))
    for each in (model, as_sparse(model)):
        s = sample(each, 5000, chains=2, method="fields", seed=1)
        exact = model.site.moments(model.bias, model.diagonal)
        assert (np.abs(s.mean - exact.mean) < 5 * np.sqrt(exact.variance / 10_000)).all()
        assert (s.ess("mean") > 8_000).all()


@FEW_DRAWS
def test_what_a_chain_tells():
    s = sample(nnbm.gallery.orientation_tuning(24, epsilon=4.0), 200, chains=3, method=Fields(length=30), seed=0)
    assert set(s.info) == {"acceptance", "step", "steps", "speedup"}
    assert ((s.info["acceptance"] > 0.7) & (s.info["acceptance"] <= 1.0)).all()
    assert (np.abs(s.info["steps"] - 30) < 4).all()
    assert (s.info["speedup"] > 1.5).all()


@pytest.mark.parametrize(("length", "error"), [(1, ValueError), (0, ValueError), (2.5, TypeError)])
def test_bad_lengths_are_named(length, error):
    with pytest.raises(error, match="length: "):
        Fields(length=length)


@pytest.mark.slow
def test_a_bump_turns_twenty_times_as_fast_as_by_gibbs():
    """ESS of the bump's angle a CPU second on the smallest model; benchmarks/collective.py has all three."""
    model, angle = nnbm.gallery.orientation_tuning(25, beta=50.0, epsilon=4.0), np.exp(2j * np.pi * np.arange(25) / 25)
    rates = []
    for method, sweeps, count in ((Gibbs(cycle=("draw",)), 100, 80_000), (Fields(), 1, 80_000)):
        chain, draws = method.chains(model, np.ones((1, 25)), 1, 1)[0], np.empty((count, 25))
        chain.run(sweeps, draws[:100])
        started = time.thread_time()
        chain.run(sweeps, draws)
        seconds = time.thread_time() - started
        population = draws @ angle
        rates.append(ess((population.real / np.abs(population)).reshape(2, -1, 1), "mean")[0] / seconds)
    assert rates[1] > 20 * rates[0]  # measured 37 to 46

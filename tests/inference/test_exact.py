"""Reference answers against references of their own: closed forms, mpmath, tensor rules, derivatives, symmetries."""

import importlib
import itertools
import math
import string

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate as quad
from scipy import sparse

from nnbm import NNBM
from nnbm.inference.exact import Exact, exact
from nnbm.site import HALF_LINE
from targets import integrate, small_models

# the package may export the function under the module's name
quadrature = importlib.import_module("nnbm.inference.exact")
MODELS = small_models()
PROMISE = 1e-10


def assert_agree(found: Exact, log_partition: float, mean, covariance, tolerance: float = PROMISE) -> None:
    """ln Z absolutely, means relative to sd_i, covariances to sd_i sd_j."""
    sd = np.sqrt(found.variance)
    assert abs(found.log_partition - log_partition) <= tolerance
    assert (np.abs(found.mean - mean) <= tolerance * sd).all()
    assert (np.abs(found.covariance - covariance) <= tolerance * np.outer(sd, sd)).all()
    np.testing.assert_array_equal(found.variance, np.diagonal(found.covariance))
    np.testing.assert_array_equal(found.covariance, found.covariance.T)


def tree_coupling(n: int, parents, couplings) -> np.ndarray:
    """(n, n) with unit diagonal; variable i >= 1 hangs on parents[i - 1]."""
    w = np.eye(n)
    children = np.arange(1, n)
    w[children, parents] = w[parents, children] = couplings
    return w


def chain(n: int, couplings) -> np.ndarray:
    return tree_coupling(n, np.arange(n - 1), couplings)


def contract(model: NNBM, upper: float, panels: int = 4, order: int = 40) -> tuple[float, np.ndarray, np.ndarray]:
    """The whole tree as one einsum over a fixed Gauss rule on [0, upper]: no logarithms, no messages, no adaptation."""
    points, weights = np.polynomial.legendre.leggauss(order)
    width = upper / panels
    x = np.concatenate([width * (k + 0.5 * (points + 1)) for k in range(panels)])
    weight = np.tile(0.5 * width * weights, panels)
    letters = string.ascii_letters[: model.n]
    i, j = model.edges
    pairs = [np.exp(-w * np.outer(x, x)) for w in model.edge_couplings]
    singles = [weight * np.exp(b * x - 0.5 * w * x * x) for b, w in zip(model.bias, model.diagonal, strict=True)]
    subscripts = ",".join([letters[a] + letters[b] for a, b in zip(i, j, strict=True)] + list(letters)) + "->"
    path = np.einsum_path(subscripts, *pairs, *singles, optimize="greedy")[0]

    def total(*extra: tuple[int, np.ndarray]) -> float:
        factors = list(singles)
        for k, f in extra:
            factors[k] = factors[k] * f
        return float(np.einsum(subscripts, *pairs, *factors, optimize=path))

    z = total()
    mean = np.array([total((k, x)) for k in range(model.n)]) / z
    covariance = np.empty((model.n, model.n))
    for a in range(model.n):
        for b in range(a, model.n):
            covariance[a, b] = covariance[b, a] = total((a, x - mean[a]), (b, x - mean[b])) / z
    return math.log(z), mean, covariance


# one variable, no edges


@pytest.mark.parametrize("r", [1e-12, 1.0, 1e12])
def test_one_variable_is_its_site(r):
    for z in [-1e3, -50.0, -3.0, 0.0, 0.7, 5.0, 1e3]:
        l = z * math.sqrt(r)
        site = HALF_LINE.moments(l, r)
        tolerance = 1e-12 + 1e-15 * abs(float(site.log_partition))
        found = exact(NNBM([l], [[r]]))
        assert_agree(found, float(site.log_partition), site.mean, np.array([[site.variance]]), tolerance)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_no_edges_no_covariance(kind):
    bias, diagonal = np.array([-30.0, -1.0, 0.0, 2.0, 100.0]), np.array([2.0, 1.0, 1e-3, 5.0, 1.0])
    sites = HALF_LINE.moments(bias, diagonal)
    found = exact(NNBM(bias, kind(np.diag(diagonal))))
    assert_agree(found, float(sites.log_partition.sum()), sites.mean, np.diag(sites.variance), 2e-12)


# two and three variables, several modes included


def pair_by_mpmath(model: NNBM, ends: list[float]) -> tuple[float, np.ndarray, np.ndarray]:
    """A pair to all digits: one integral over x_0, the one over x_1 by erfc; `ends` are the panels' ends."""
    with mp.workdps(60):
        b0, b1 = (mp.mpf(float(b)) for b in model.bias)
        w00, w01, w11 = (mp.mpf(float(w)) for w in model.coupling[[0, 0, 1], [0, 1, 1]])
        nodes = [
            (x0 + (x1 - x0) * (1 + p) / 2, w * (x1 - x0) / 2)
            for x0, x1 in itertools.pairwise(map(mp.mpf, ends))
            for p, w in zip(*(map(mp.mpf, a) for a in gauss_legendre_polished()), strict=True)
        ]
        rows = []
        for x, weight in nodes:
            z = (b1 - w01 * x) / mp.sqrt(w11)
            inner = mp.sqrt(mp.pi / 2) * mp.exp(z * z / 2) * mp.erfc(-z / mp.sqrt(2))
            first = z + 1 / inner
            mass = weight * mp.exp(b0 * x - w00 * x * x / 2) * inner / mp.sqrt(w11)
            rows.append((mass, x, first / mp.sqrt(w11), (1 + z * first) / w11))
        total = mp.fsum(m for m, *_ in rows)
        m0, m1 = mp.fsum(m * x for m, x, _, _ in rows) / total, mp.fsum(m * y for m, _, y, _ in rows) / total
        c00 = mp.fsum(m * (x - m0) ** 2 for m, x, _, _ in rows) / total
        c01 = mp.fsum(m * (x - m0) * (y - m1) for m, x, y, _ in rows) / total
        c11 = mp.fsum(m * (v - 2 * m1 * y + m1 * m1) for m, _, y, v in rows) / total
        return float(mp.log(total)), np.array([m0, m1], float), np.array([[c00, c01], [c01, c11]], float)


def gauss_legendre_polished(order: int = 40) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """NumPy's points, polished by Newton's method."""
    points, weights = [], []
    for start in np.polynomial.legendre.leggauss(order)[0]:
        x = mp.mpf(float(start))
        for _ in range(2):
            p, q = mp.legendre(order, x), mp.legendre(order - 1, x)
            slope = order * (q - x * p) / (1 - x * x)
            x -= p / slope
        points.append(x)
        weights.append(2 / ((1 - x * x) * (order * mp.legendre(order - 1, x) / (1 - x * x)) ** 2))
    return points, weights


HARD_PAIRS = {
    "narrow ridge": (NNBM([0.5, -0.3], [[1, -0.999], [-0.999, 1]]), list(range(0, 460, 20))),
    "two far modes": (NNBM([30, 29.9], [[1, 3], [3, 1]]), [0, 0.05, 0.15, 0.4, 1, 16, 22, 26, 30, 34, 38, 44]),
    "both far in the tail": (NNBM([-50, -40], [[1, -0.5], [-0.5, 2]]), [0, 0.1, 0.3, 0.6, 1.2, 2.5]),
    "one in the tail, one far": (NNBM([-1000, 200], [[1, 0.5], [0.5, 1]]), [0, 0.003, 0.01, 0.03, 0.06]),
    "one mode rules": (NNBM([60, 61], [[1, 40], [40, 1]]), [0, 2e-4, 6e-4, 2e-3, 6e-3, 0.02, 0.1]),
    "barely not positive definite": (NNBM([-3, 2], [[1, 1], [1, 1]]), [0, 0.3, 1, 2, 4, 7, 10]),
    "violent competition": (NNBM([1, 2], [[1, 1e6], [1e6, 1]]), [0, *(2e-6 * 3.0 ** np.arange(13)), 2, 4, 7, 11]),
}


@pytest.mark.parametrize("name", HARD_PAIRS)
def test_hard_pairs_against_mpmath(name):
    model, ends = HARD_PAIRS[name]
    assert_agree(exact(model), *pair_by_mpmath(model, ends), tolerance=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_small_models_against_a_tensor_rule(name):
    model, upper = MODELS[name]
    reference = integrate(model, upper, nodes=112)
    assert_agree(exact(model), reference.log_partition, reference.mean, reference.covariance)


@pytest.mark.parametrize(
    ("bias", "coupling"),
    [
        ([3.0, 3.2, 2.9], [[1, 2.5, 2.5], [2.5, 1, 2.5], [2.5, 2.5, 1]]),  # three modes
        ([0.2, 0.4, 0.5], [[1, 2, -0.8], [2, 1, -0.8], [-0.8, -0.8, 1]]),  # no bound but the faces'
        ([1.0, 2.0, -1.0], [[1, 1.5, 0], [1.5, 1, -0.6], [0, -0.6, 1]]),  # a path with two modes
    ],
)
def test_triples_of_several_modes(bias, coupling):
    model = NNBM(bias, coupling)
    reference = integrate(model, 16.0, nodes=112)
    assert_agree(exact(model), reference.log_partition, reference.mean, reference.covariance)


def test_pair_against_scipy():
    model = NNBM([0.8, 0.5], [[1.0, 2.5], [2.5, 2.0]])

    def moment(f) -> float:
        integrand = lambda y, x: f(x, y) * math.exp(-float(model.energy([x, y])))  # noqa: E731
        return quad.dblquad(integrand, 0, 9, 0, 7, epsabs=1e-9, epsrel=1e-9)[0]

    z, found = moment(lambda x, y: 1.0), exact(model)
    assert found.log_partition == pytest.approx(math.log(z), abs=1e-8)
    product = moment(lambda x, y: x * y) / z
    assert found.covariance[0, 1] == pytest.approx(product - found.mean[0] * found.mean[1], abs=1e-8)


@pytest.mark.parametrize("bias", [[0.3, -0.4, 1.0], [-50.0, 2.0, -3.0], [40.0, -5.0, 20.0]])
@pytest.mark.parametrize("couplings", [(0.6, -0.7), (-0.69, -0.7), (2.0, 1.5), (-0.8, 15.0)])
def test_a_path_is_a_triangle_with_a_coupling_of_zero(bias, couplings):
    """The same three variables by messages, and with the last one integrated out at every pair of nodes."""
    w = chain(3, couplings)
    piece = quadrature._Piece(np.array(bias), w, np.zeros(3), np.full(3, np.inf), sparse.csr_array(w != 0))
    as_triangle = quadrature._integrated(piece, quadrature._triangle)
    rounding = 1e-15 * abs(as_triangle.log_partition)
    assert_agree(exact(NNBM(bias, w)), *as_triangle, tolerance=1e-11 + rounding)


# trees


BINARY = (np.arange(1, 15) - 1) // 2
STAR = np.zeros(10, int)
RNG = np.random.default_rng(20)
TREES = {
    "chain": (NNBM(RNG.normal(size=20), chain(20, RNG.uniform(-0.45, 0.6, 19))), 16.0),
    "chain, not positive definite": (NNBM(RNG.normal(size=12) + 1, chain(12, RNG.uniform(0.8, 2.5, 11))), 12.0),
    "chain, far tail": (NNBM(np.full(8, -50.0), chain(8, -0.4)), 1.5),
    "star": (NNBM(RNG.normal(size=11), tree_coupling(11, STAR, RNG.uniform(-0.3, 0.3, 10))), 24.0),
    "star, two modes": (NNBM(np.full(11, 1.5), tree_coupling(11, STAR, 0.9)), 12.0),
    "binary tree": (NNBM(RNG.normal(size=15), tree_coupling(15, BINARY, RNG.uniform(-0.35, 0.35, 14))), 16.0),
    "binary tree, competing": (NNBM(np.full(15, 1.0), tree_coupling(15, BINARY, 1.3)), 12.0),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_against_one_contraction(name):
    model, upper = TREES[name]
    assert_agree(exact(model), *contract(model, upper))


def test_far_from_the_wall_all_is_gaussian():
    """Means of 12 standard deviations or more: what the wall cuts off is below 1e-32."""
    for n, w in (
        (40, chain(40, -0.45)),
        (11, tree_coupling(11, STAR, -0.28)),
        (15, tree_coupling(15, BINARY, 0.3)),
        (3, np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.4], [-0.3, 0.4, 1.0]])),
    ):
        covariance = np.linalg.inv(w)
        mean = np.linspace(12, 1000, n) * np.sqrt(covariance.diagonal())
        bias = w @ mean
        log_partition = 0.5 * (mean @ bias + n * math.log(2 * math.pi) - np.linalg.slogdet(w)[1])
        found, rounding = exact(NNBM(bias, w)), 1e-15 * log_partition
        assert_agree(found, log_partition, mean, covariance, tolerance=1e-11 + rounding)


def test_a_chain_is_its_halves_weighed_at_the_cut():
    """Given the middle variable the two halves are independent: Z = int exp(b x - w x²/2) Z_left(x) Z_right(x) dx."""
    n, cut = 21, 10
    bias, w = np.random.default_rng(3).normal(size=n), chain(n, -0.3)
    points, weights = np.polynomial.legendre.leggauss(32)
    x = 6.0 * (points + 1)

    def half(side: slice, near: int) -> np.ndarray:
        pulls = np.zeros((x.size, n))
        pulls[:, near] = -w[near, cut] * x
        return np.array([exact(NNBM((bias + pull)[side], w[side, side])).log_partition for pull in pulls])

    log_mass = half(slice(0, cut), cut - 1) + half(slice(cut + 1, n), cut + 1) + bias[cut] * x - 0.5 * x * x
    top = log_mass.max()
    mass = 6.0 * weights * np.exp(log_mass - top)
    whole = exact(NNBM(bias, w))
    assert whole.log_partition == pytest.approx(math.log(mass.sum()) + top, abs=PROMISE)
    assert whole.mean[cut] == pytest.approx(mass @ x / mass.sum(), abs=PROMISE)


def test_a_hundred_variables():
    n = 100
    bias = np.random.default_rng(4).normal(size=n)
    dense = exact(NNBM(bias, chain(n, -0.45)))
    found = exact(NNBM(bias, sparse.csr_array(chain(n, -0.45))))
    assert_agree(found, dense.log_partition, dense.mean, dense.covariance, 1e-13)
    assert np.linalg.eigvalsh(found.covariance)[0] > 0
    assert (found.covariance > -1e-16).all()  # attraction only


# identities


def several() -> dict[str, NNBM]:
    rng = np.random.default_rng(7)
    return {
        "tree": NNBM(rng.normal(size=7), tree_coupling(7, [0, 0, 1, 1, 2, 5], rng.uniform(-0.45, 1.5, 6))),
        "triangle": MODELS["triple, not positive definite"][0],
        "forest": NNBM(rng.normal(size=4), sparse.block_diag([chain(2, 1.7), [[2.0]], [[0.3]]])),
    }


@pytest.mark.parametrize("name", several())
def test_labels_do_not_matter(name):
    model = several()[name]
    order = np.random.default_rng(1).permutation(model.n)
    w = model.coupling.toarray() if sparse.issparse(model.coupling) else model.coupling
    plain, moved = exact(model), exact(NNBM(model.bias[order], w[np.ix_(order, order)]))
    assert_agree(moved, plain.log_partition, plain.mean[order], plain.covariance[np.ix_(order, order)], 1e-12)


@pytest.mark.parametrize("c", [1e-6, 0.3, 1e6])
@pytest.mark.parametrize("name", several())
def test_units_do_not_matter(name, c):
    model = several()[name]
    plain, scaled = exact(model), exact(NNBM(model.bias / c, model.coupling / c**2))
    shift = model.n * math.log(c)
    assert_agree(scaled, plain.log_partition + shift, c * plain.mean, c * c * plain.covariance, 1e-12)


def test_disconnected_parts_add_up():
    parts = [NNBM([1.0, 1.5], [[1, 2], [2, 1]]), NNBM([-3.0], [[0.5]]), NNBM([0.1, 0.2, -0.3], chain(3, -0.6))]
    found = [exact(part) for part in parts]
    whole = NNBM(np.concatenate([p.bias for p in parts]), sparse.block_diag([p.coupling for p in parts]))
    covariance = sparse.block_diag([f.covariance for f in found]).toarray()
    assert_agree(exact(whole), sum(f.log_partition for f in found), np.concatenate([f.mean for f in found]), covariance,
                 1e-13)  # fmt: skip


def derivative(f, h: float):
    """Central difference of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def check_derivatives(model: NNBM, tolerance: float) -> None:
    """By b_i: d ln Z = <x_i>, d <x_j> = Cov. By w_ij: d ln Z = -<x_i x_j>, halved on the diagonal."""
    found = exact(model)
    sd = np.sqrt(found.variance)
    w = model.coupling.toarray() if sparse.issparse(model.coupling) else model.coupling
    for i in range(model.n):
        step = np.eye(model.n)[i]
        h = 0.01 / sd[i]
        moved = {k: exact(NNBM(model.bias + k * h * step, w)) for k in (-2, -1, 1, 2)}
        slope = derivative(lambda t, h=h, moved=moved: moved[round(t / h)].log_partition, h)
        assert abs(slope - found.mean[i]) <= tolerance * sd[i]
        slopes = derivative(lambda t, h=h, moved=moved: moved[round(t / h)].mean, h)
        assert (np.abs(slopes - found.covariance[i]) <= tolerance * sd[i] * sd).all()
    i, j = (int(k[-1]) for k in model.edges) if model.edges[0].size else (0, 0)
    second = found.covariance[i, j] + found.mean[i] * found.mean[j]
    bump = np.zeros_like(w)
    bump[i, j] = bump[j, i] = 1.0
    slope = derivative(lambda t: exact(NNBM(model.bias, w + t * bump)).log_partition, 0.002 / (second + 1))
    assert abs(slope + (second if i != j else 0.5 * second)) <= tolerance * (second + 1)


@pytest.mark.parametrize("name", several())
def test_derivatives(name):
    check_derivatives(several()[name], 1e-7)


@st.composite
def random_trees(draw) -> NNBM:
    n = draw(st.integers(1, 6))
    parents = [draw(st.integers(0, i)) for i in range(n - 1)]
    strong = draw(st.booleans())
    couplings = [draw(st.floats(-0.4, 3.0 if strong else 0.4)) for _ in range(n - 1)]
    w = tree_coupling(n, np.array(parents, int), np.array(couplings))
    lowest = np.linalg.eigvalsh(np.minimum(w, 0))[0] if n > 1 else 1.0
    w[np.diag_indices(n)] += max(0.0, 0.05 - lowest)
    bias = [draw(st.floats(-5, 5)) for _ in range(n)]
    scale = 10.0 ** np.array([draw(st.integers(-3, 3)) for _ in range(n)])
    return NNBM(bias * scale, w * np.outer(scale, scale))


@settings(max_examples=15)
@given(random_trees())
def test_any_small_tree(model):
    found = exact(model)
    sd = np.sqrt(found.variance)
    assert (found.mean > 0).all()
    assert (found.variance > 0).all()
    assert np.linalg.eigvalsh(found.covariance / np.outer(sd, sd))[0] > -1e-12
    back = exact(NNBM(model.bias[::-1], model.coupling[::-1, ::-1]))
    assert_agree(back, found.log_partition, found.mean[::-1], found.covariance[::-1, ::-1], 1e-11)
    slope = derivative(lambda t: exact(NNBM(model.bias + t * np.eye(model.n)[0], model.coupling)).log_partition,
                       0.01 / sd[0])  # fmt: skip
    assert abs(slope - found.mean[0]) <= 1e-6 * sd[0]


# other domains


TRIPLES = [chain(3, (0.7, -0.6)), chain(3, (1.8, 1.2)), np.array([[1, 1.6, 0.9], [1.6, 2, -0.4], [0.9, -0.4, 1]])]


@pytest.mark.parametrize("w", TRIPLES)
@pytest.mark.parametrize("ends", [(-1.0, 2.0), (0.5, 0.6), (0.5, 12.0)])
def test_an_interval_against_a_tensor_rule(w, ends):
    (lower, upper), bias = ends, np.array([0.5, 2.0, -1.0])
    points, weights = np.polynomial.legendre.leggauss(64)
    x, weight = lower + 0.5 * (upper - lower) * (points + 1), 0.5 * (upper - lower) * weights
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.einsum("i,j,k->ijk", weight, weight, weight).ravel()
    mass *= np.exp(grid @ bias - 0.5 * np.einsum("ki,ij,kj->k", grid, w, grid))
    mean = mass @ grid / mass.sum()
    covariance = (mass[:, None] * (grid - mean)).T @ (grid - mean) / mass.sum()
    assert_agree(exact(NNBM(bias, w, lower=lower, upper=upper)), math.log(mass.sum()), mean, covariance)


@pytest.mark.parametrize("w", TRIPLES)
def test_a_shifted_wall_is_a_shifted_model(w):
    bias, wall = np.array([0.5, 2.0, -1.0]), np.full(3, -1.5)
    moved = exact(NNBM(bias - w @ wall, w))
    log_partition = moved.log_partition + bias @ wall - 0.5 * wall @ w @ wall
    assert_agree(exact(NNBM(bias, w, lower=-1.5)), log_partition, moved.mean + wall, moved.covariance, 1e-12)


# the machinery, and what is refused


def test_couplings_that_are_next_to_nothing():
    site = HALF_LINE.moments([1.0, -1.0], [1e6, 2e6])
    for w in (5e-324, 1e-121, 1e-9):
        found = exact(NNBM([1.0, -1.0], [[1e6, w], [w, 2e6]]))
        assert_agree(found, float(site.log_partition.sum()), site.mean, np.diag(site.variance), 1e-12)


@pytest.mark.parametrize("name", ["chain", "binary tree"])
def test_a_box_too_small_is_enlarged(name, monkeypatch):
    model, _ = TREES[name]
    plain = exact(model)
    monkeypatch.setattr(quadrature, "_REACH", 0.5)
    enlarged = exact(model)
    assert_agree(enlarged, plain.log_partition, plain.mean, plain.covariance, 1e-12)


def test_the_mode_that_numbers_start_from_does_not_matter(monkeypatch):
    """From the wrong one, the spike of x_0 at the wall would be the rounded difference of two far places."""
    model, ends = HARD_PAIRS["one mode rules"]
    monkeypatch.setattr(quadrature, "_mode", lambda piece: np.array([60.0, 0.0]))
    assert_agree(exact(model), *pair_by_mpmath(model, ends), tolerance=1e-12)


def test_too_few_nodes_are_noticed(monkeypatch):
    model = MODELS["pair, positive definite"][0]
    plain = exact(model)
    monkeypatch.setattr(quadrature, "_REFINE", 10)
    monkeypatch.setattr(quadrature, "_GOALS", (1e-2,))
    with pytest.raises(RuntimeError, match="model: two levels of quadrature must agree to 1e-10, but differ by"):
        exact(model)
    monkeypatch.setattr(quadrature, "_GOALS", (1e-2, 1e-14))
    found = exact(model)
    assert_agree(found, plain.log_partition, plain.mean, plain.covariance, 1e-12)


def test_what_cannot_be_resolved_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"model: exact moments may take 30000000 pairs of nodes, but \d+ are needed"):
        exact(NNBM([1.0, 1.0], [[1.0, -0.99999], [-0.99999, 1.0]]))
    monkeypatch.setattr(quadrature, "_ROUNDS", 1)
    with pytest.raises(RuntimeError, match=r"1 halvings .* do not resolve it"):
        exact(HARD_PAIRS["two far modes"][0])
    monkeypatch.setattr(quadrature, "_REACH", 0.1)
    with pytest.raises(RuntimeError, match=r"1 enlargements .* do not hold its mass"):
        exact(TREES["chain"][0])


def test_cycles_of_more_than_three_variables_are_refused():
    ring = chain(4, 0.3)
    ring[0, 3] = ring[3, 0] = 0.3
    with pytest.raises(
        ValueError, match=r"without cycles or at most 3 variables, but there are 4 variables and 4 edges, 1 "
    ):
        exact(NNBM(np.zeros(4), ring))
    with pytest.raises(ValueError, match="Use another method or sample"):
        exact(NNBM(np.zeros(4), sparse.block_diag([TRIPLES[2], [[1.0]]])))


def test_a_variable_without_ends_that_is_not_normal_is_refused():
    w = chain(3, (0.5, 2.0))
    with pytest.raises(ValueError, match="positive definite coupling matrix"):
        exact(NNBM(np.zeros(3), w, lower=[-math.inf, 0.0, 0.0]))

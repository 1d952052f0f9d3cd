"""Copositivity: exact rational brute force, known matrices, invariances, and a check of every witness."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from nnbm.copositive import Copositivity, Verdict, definite, descent, examine, examine_in_box

FINITE = (Verdict.POSITIVE_DEFINITE, Verdict.COPOSITIVE)
SEEDS = st.integers(0, 2**32 - 1)
HORN = np.array([[1, -1, 1, 1, -1], [-1, 1, -1, 1, 1], [1, -1, 1, -1, 1], [1, 1, -1, 1, -1], [-1, 1, 1, -1, 1]], float)


def circulant(row):
    row = np.asarray(row, float)
    return np.array([np.roll(row, k) for k in range(row.size)])


HOFFMAN_PEREIRA = circulant([1, -1, 1, 0, 0, 1, -1])


def orientation(n, beta, eps):
    """The coupling of a ring of n neurons tuned to orientations, of the paper's family."""
    angle = 2 * np.pi * np.arange(n) / n
    return beta * (np.eye(n) + 1 / n - eps / n * np.cos(angle[:, None] - angle))


def grid(side, coupling):
    line = sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    one = sparse.eye_array(side)
    return sparse.csr_array(sparse.kron(one, one) + coupling * (sparse.kron(line, one) + sparse.kron(one, line)))


def judge(coupling) -> Copositivity:
    """`examine`, and everything that must hold whatever the matrix is."""
    found = examine(coupling)
    assert found.certificate
    assert (found.witness is not None) == (found.verdict is Verdict.NOT_COPOSITIVE)
    if found.witness is not None:
        x = found.witness
        assert x.min() >= 0
        assert x.sum() == pytest.approx(1, abs=1e-12)
        rounding = 20 * np.finfo(float).eps * x.size * (x @ (coupling.diagonal() * x))
        assert x @ (coupling @ x) <= rounding
    if found.verdict is Verdict.POSITIVE_DEFINITE and coupling.shape[0] <= 500:
        dense = coupling if isinstance(coupling, np.ndarray) else coupling.toarray()
        root = np.sqrt(dense.diagonal())
        assert np.linalg.eigvalsh(dense / root[:, None] / root)[0] > 0
    return found


def determinant(rows):
    """Exact, by fraction elimination."""
    rows, product = [list(row) for row in rows], Fraction(1)
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot], product = rows[pivot], rows[k], -product
        product *= rows[k][k]
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return product


def strictly_copositive(matrix) -> bool:
    """Keller's criterion, exactly: no principal submatrix has a last row of cofactors > 0 but det <= 0."""
    exact = [[Fraction(float(value)) for value in row] for row in matrix]
    for size in range(1, len(exact) + 1):
        for members in itertools.combinations(range(len(exact)), size):
            rows = [[exact[i][j] for j in members] for i in members]
            if determinant(rows) > 0:
                continue
            minors = [[row[:j] + row[j + 1 :] for row in rows[:-1]] for j in range(size)]
            if all((-1) ** (size - 1 + j) * determinant(minor) > 0 for j, minor in enumerate(minors)):
                return False
    return True


@st.composite
def couplings(draw, diagonal, entries, largest):
    """A symmetric matrix of 2 to `largest` variables with these strategies for its entries."""
    n = draw(st.integers(2, largest))
    matrix = np.diag(np.array(draw(st.lists(diagonal, min_size=n, max_size=n)), float))
    upper = np.triu_indices(n, 1)
    matrix[upper] = draw(st.lists(entries, min_size=upper[0].size, max_size=upper[0].size))
    return matrix + np.triu(matrix, 1).T


def random_coupling(rng, n):
    """Unit diagonal, and one of four kinds of off-diagonals: Gaussian, signs, few, mostly positive."""
    kind = rng.integers(4)
    entries = rng.choice([-1.0, 1.0], (n, n)) if kind == 1 else rng.normal(size=(n, n))
    if kind == 2:
        entries *= rng.random((n, n)) < 0.4
    upper = np.triu(entries + (kind == 3), 1)
    return upper + upper.T


# The judge itself -------------------------------------------------------------------------------------------


def test_brute_force_tells_the_known_cases_apart():
    assert strictly_copositive(np.eye(4))
    assert not strictly_copositive(HORN)
    assert strictly_copositive(HORN + 1e-9 * np.eye(5))
    assert not strictly_copositive([[1, -1], [-1, 1]])


@given(SEEDS)
@settings(max_examples=30)
def test_what_is_not_positive_definite_plus_nonnegative_gets_no_such_certificate(seed):
    """The Horn matrix and a little beyond it is not; the points tried include near minimisers."""
    coupling = HORN + 1e-3 * np.eye(5)
    rng = np.random.default_rng(seed)
    point = np.array([0.5, 0.5, 0, 0, 0]) + rng.uniform(0, 0.5) * rng.dirichlet(np.ones(5))
    assert not descent.slope_certifies(coupling, point / point.sum())
    assert not definite.has_positive_definite_part(coupling)


# Known matrices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_identity(n):
    assert judge(np.eye(n)).verdict is Verdict.POSITIVE_DEFINITE


def test_pair_on_the_boundary_is_refused():
    found = judge(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert found.verdict is Verdict.NOT_COPOSITIVE
    assert found.witness.tolist() == [0.5, 0.5]


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_scaled_pair_on_the_boundary_is_refused(a, b):
    found = judge(np.array([[a, -np.sqrt(a) * np.sqrt(b)], [-np.sqrt(a) * np.sqrt(b), b]]))
    assert found.verdict is Verdict.NOT_COPOSITIVE


@pytest.mark.parametrize("matrix", [HORN, HOFFMAN_PEREIRA], ids=["Horn", "Hoffman-Pereira"])
@given(seed=SEEDS)
@settings(max_examples=30)
def test_copositive_but_not_strictly(matrix, seed):
    """On the boundary, not positive definite plus nonnegative beyond it, in any order and at any scale."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(matrix))
    scale = np.exp(rng.normal(size=len(matrix), scale=3))
    boundary = matrix[np.ix_(order, order)]
    for shift, finite in [(-1e-3, False), (0.0, False), (1e-9, True), (1e-3, True)]:
        shifted = (boundary + shift * np.eye(len(matrix))) * np.outer(scale, scale)
        found = judge(shifted)
        assert (found.verdict is Verdict.COPOSITIVE) == finite
        assert (found.verdict is Verdict.NOT_COPOSITIVE) != finite
        if shift == 1e-9:
            assert "exhaustive" in found.certificate


@pytest.mark.parametrize(
    ("n", "beta", "eps"),
    [(36, 10, 2), (36, 10, 3), (36, 10, 4), (25, 50, 4), (100, 50, 4), (36, 10, 5), (200, 1, 5)],
)
def test_orientation_family_is_certified(n, beta, eps):
    """At eps = 2 it is singular, beyond it indefinite; at eps = 5 dropping positive couplings fails."""
    coupling = orientation(n, beta, eps)
    assert np.linalg.eigvalsh(coupling)[0] < 1e-9 * beta
    assert judge(coupling).verdict is Verdict.COPOSITIVE


def test_orientation_beyond_every_split_is_searched():
    found = judge(orientation(25, 10, 5.5))
    assert found.verdict is Verdict.COPOSITIVE
    assert "exhaustive" in found.certificate


@pytest.mark.parametrize("n", [12, 36, 100, 600])
def test_orientation_with_a_strong_modulation_is_refused(n):
    assert judge(orientation(n, 10, 8)).verdict is Verdict.NOT_COPOSITIVE


@pytest.mark.parametrize("n", [3, 6, 12, 20, 60])
def test_a_violation_that_needs_every_variable(n):
    """I - c (11' - I) / (n - 1): of its proper principal submatrices none can tell c < 1 from c = 1."""
    for c, finite in [(1 - 1e-7, True), (1, False), (1 + 1e-7, False)]:
        share = c / (n - 1)
        coupling = (1 + share) * np.eye(n) - share
        found = judge(coupling)
        assert found.verdict is (Verdict.POSITIVE_DEFINITE if finite else Verdict.NOT_COPOSITIVE)
        if not finite:
            assert np.count_nonzero(found.witness) == n


@pytest.mark.parametrize(
    ("across", "expected"),
    [(0.59, Verdict.NOT_COPOSITIVE), (0.6, Verdict.NOT_COPOSITIVE), (0.61, Verdict.POSITIVE_DEFINITE)],
)
def test_four_together_where_triples_pass(across, expected):
    ring = circulant([1, -0.8, across, -0.8])
    assert judge(ring[:3, :3]).verdict is Verdict.POSITIVE_DEFINITE
    assert judge(ring).verdict is expected


def test_nonnegative_couplings_however_large():
    coupling = np.full((30, 30), 1e200)
    np.fill_diagonal(coupling, 1e-200)
    assert judge(coupling).verdict is Verdict.COPOSITIVE
    coupling[3, 7] = coupling[7, 3] = -1e200
    assert judge(coupling).verdict is Verdict.NOT_COPOSITIVE


@given(st.integers(21, 60), SEEDS)
@settings(max_examples=20)
def test_fewer_measurements_than_unknowns(n, seed):
    """F'F is strictly copositive iff Fx = 0 has no solution x >= 0 but 0; both kinds, both singular."""
    features = np.random.default_rng(seed).normal(size=(n // 3, n))
    features[0] = 0.1 + np.abs(features[0])
    assert judge(features.T @ features).verdict is Verdict.COPOSITIVE
    features[:, 3] = -features[:, :3] @ np.array([0.5, 1.0, 2.0])
    assert judge(features.T @ features).verdict is Verdict.NOT_COPOSITIVE


# Against brute force, exactly -------------------------------------------------------------------------------


@given(couplings(st.integers(1, 4), st.integers(-3, 3), 6))
@example(HORN)
@example(HOFFMAN_PEREIRA[:6, :6])
@settings(max_examples=250)
def test_small_integers_against_exact_determinants(coupling):
    assert (judge(coupling).verdict in FINITE) == strictly_copositive(coupling)


@given(couplings(st.just(1), st.sampled_from([-1, 0, 1]), 6))
@settings(max_examples=150)
def test_signs_against_exact_determinants(coupling):
    assert (judge(coupling).verdict in FINITE) == strictly_copositive(coupling)


@given(couplings(st.floats(0.01, 3), st.floats(-3, 3), 5))
@settings(max_examples=120)
def test_any_small_matrix_against_exact_determinants(coupling):
    """Beyond rounding of the boundary the answer must be the exact one; at it, it must still be an answer."""
    margin = 1e-11 * np.diag(np.diag(coupling))
    found = judge(coupling).verdict
    assert found is not Verdict.UNPROVEN
    if strictly_copositive(coupling - margin):
        assert found in FINITE
    elif not strictly_copositive(coupling + margin):
        assert found is Verdict.NOT_COPOSITIVE


# Larger ones, at the boundary -------------------------------------------------------------------------------


def threshold(pattern) -> float:
    """The least s > 0 for which I + s G is not strictly copositive, from all principal submatrices of G.

    x'Gx / x'x has its minimum over x >= 0 at the lowest eigenvector, of one sign, of some G_SS (Kaplan 2000).
    """
    lowest = 0.0
    for size in range(2, len(pattern) + 1):
        members = np.array(list(itertools.combinations(range(len(pattern)), size)))
        values, vectors = np.linalg.eigh(pattern[members[:, :, None], members[:, None, :]])
        first = vectors[:, :, 0]
        one_sign = (first > -1e-9).all(axis=1) | (first < 1e-9).all(axis=1)
        lowest = min(lowest, values[one_sign, 0].min(initial=0.0))
    return -1 / lowest if lowest < 0 else np.inf


@given(st.integers(6, 11), SEEDS)
@settings(max_examples=80)
def test_up_to_eleven_variables_against_all_principal_submatrices(n, seed):
    pattern = random_coupling(np.random.default_rng(seed), n)
    limit = min(threshold(pattern), 1e6)
    assert judge(np.eye(n) + limit * (1 - 1e-9) * pattern).verdict in FINITE
    if limit < 1e6:
        assert judge(np.eye(n) + limit * (1 + 1e-9) * pattern).verdict is Verdict.NOT_COPOSITIVE


@given(st.integers(12, 20), SEEDS)
@settings(max_examples=20)
def test_up_to_twenty_variables_the_boundary_is_sharp(n, seed):
    """I + s G has one threshold in s (none if G >= 0). Both sides of it are decided, to a relative 1e-9."""
    pattern = random_coupling(np.random.default_rng(seed), n)
    low, high = 0.0, 100.0
    for _ in range(45):
        middle = (low + high) / 2
        verdict = judge(np.eye(n) + middle * pattern).verdict
        assert verdict is not Verdict.UNPROVEN
        low, high = (middle, high) if verdict in FINITE else (low, middle)
    for step in np.random.default_rng(seed).random(10):
        assert judge(np.eye(n) + low * (1 - 1e-9) * step * pattern).verdict in FINITE
        if high < 100.0:
            assert judge(np.eye(n) + (high + 3 * step) * (1 + 1e-9) * pattern).verdict is Verdict.NOT_COPOSITIVE


@given(st.integers(21, 90), SEEDS)
@settings(max_examples=25)
def test_positive_definite_plus_nonnegative_is_certified(n, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, n // 2))
    nonnegative = np.triu(rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.5), 1)
    coupling = factor @ factor.T / n + 0.05 * np.eye(n) + 0.2 * (nonnegative + nonnegative.T)
    assert judge(coupling).verdict in FINITE


@given(st.integers(21, 90), SEEDS)
@settings(max_examples=25)
def test_a_planted_violation_is_found(n, seed):
    """A positive definite matrix, changed along one x >= 0 until x'Wx = -0.01 there and Wx points along x."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, 2 * n))
    coupling = factor @ factor.T / n
    x = rng.uniform(0.5, 1, n) * (np.arange(n) % 3 == 0)
    x /= np.linalg.norm(x)
    slope = coupling @ x
    coupling += (x @ slope - 0.01) * np.outer(x, x) - np.outer(slope, x) - np.outer(x, slope)
    coupling = (coupling + coupling.T) / 2
    assert x @ coupling @ x < 0 < coupling.diagonal().min()
    assert judge(coupling).verdict is Verdict.NOT_COPOSITIVE


def test_what_is_not_known_is_said_to_be_unproven():
    found = judge(orientation(520, 10, 5))
    assert found.verdict is Verdict.UNPROVEN
    assert "520 variables" in found.certificate


@pytest.mark.slow
def test_the_exact_search_keeps_to_its_budget():
    start = time.perf_counter()
    found = judge(orientation(60, 10, 5.5))
    assert time.perf_counter() - start < 60
    assert found.verdict is Verdict.UNPROVEN
    assert "budget" in found.certificate


# Invariances ------------------------------------------------------------------------------------------------


@given(st.integers(3, 30), st.floats(0.1, 1.5), SEEDS)
@settings(max_examples=60)
def test_neither_scale_nor_order_matters(n, strength, seed):
    rng = np.random.default_rng(seed)
    coupling = np.eye(n) + strength / np.sqrt(n) * random_coupling(rng, n)
    scale = 2.0 ** rng.integers(-40, 40, n)
    order = rng.permutation(n)
    moved = (coupling * np.outer(scale, scale))[np.ix_(order, order)]
    assert judge(moved).verdict is judge(coupling).verdict


@given(st.lists(st.sampled_from(["good", "free", "Horn", "ring"]), min_size=1, max_size=6), SEEDS)
@settings(max_examples=60)
def test_parts_that_only_positive_couplings_join(names, seed):
    """A matrix of parts is as good as its worst part, whatever nonnegative couplings run between them."""
    rng = np.random.default_rng(seed)
    kinds = {
        "good": HORN + 0.01 * np.eye(5),
        "free": np.ones((3, 3)),
        "Horn": HORN,
        "ring": circulant([1, -0.8, 0, -0.8]),
    }
    parts = sparse.block_diag([kinds[name] for name in names]).toarray()
    group = np.repeat(np.arange(len(names)), [len(kinds[name]) for name in names])
    across = np.triu(rng.exponential(size=parts.shape) * (group[:, None] != group))
    order = rng.permutation(len(parts))
    found = judge((parts + across + across.T)[np.ix_(order, order)])
    if {"Horn", "ring"} & set(names):
        assert found.verdict is Verdict.NOT_COPOSITIVE
        guilty = set(group[order][found.witness > 0])
        assert len(guilty) == 1
        assert names[guilty.pop()] in {"Horn", "ring"}
    else:
        assert found.verdict is Verdict.COPOSITIVE


# Sparse -----------------------------------------------------------------------------------------------------


@given(st.integers(2, 40), st.floats(0.1, 0.8), SEEDS)
@settings(max_examples=50)
def test_small_sparse_is_answered_as_dense(n, strength, seed):
    rng = np.random.default_rng(seed)
    pattern = random_coupling(rng, n) * (rng.random((n, n)) < 0.2)
    coupling = np.eye(n) + strength * (np.triu(pattern, 1) + np.triu(pattern, 1).T)
    assert judge(sparse.csr_array(coupling)).verdict is judge(coupling).verdict


TILES = {
    "dominant": circulant([1, -0.4, 0.1, -0.4]),
    "positive definite": np.full((3, 3), 0.6) + 0.4 * np.eye(3),
    "nonnegative": np.ones((3, 3)),
    "positive definite block": circulant([1, -0.6, 0.5, -0.6]),
    "Horn + 0.01": HORN + 0.01 * np.eye(5),
    "Horn": HORN,
    "ring": circulant([1, -0.8, 0.5, -0.8]),
}


@pytest.mark.parametrize("first", TILES)
@pytest.mark.parametrize("second", TILES)
def test_large_sparse_is_answered_as_dense(first, second):
    """Over 2,000 variables in many small parts are examined as sparse, one part of each kind as dense."""
    few = sparse.csr_array(sparse.block_diag([TILES[first], TILES[second]]))
    many = sparse.csr_array(sparse.block_diag([TILES[first]] * 700 + [TILES[second]] * 7))
    assert many.shape[0] > 2_000
    assert judge(many).verdict is judge(few.toarray()).verdict


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_sparse_matrix_is_left_as_it_was(index):
    coupling = sparse.csr_array(sparse.block_diag([HORN + 0.01 * np.eye(5)] * 500))
    coupling = sparse.csr_array(
        (coupling.data, coupling.indices.astype(index), coupling.indptr.astype(index)), shape=coupling.shape
    )
    before = coupling.copy()
    assert judge(coupling).verdict is Verdict.COPOSITIVE
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(coupling, name), getattr(before, name))


def chain(size, next_to, after_next):
    ones = np.ones(size)
    return sparse.csr_array(
        sparse.diags_array(
            [after_next * ones[2:], next_to * ones[1:], ones, next_to * ones[1:], after_next * ones[2:]],
            offsets=[-2, -1, 0, 1, 2],
        )
    )


@pytest.mark.parametrize(
    ("next_to", "after_next", "expected"),
    [
        (-0.5000001, 0.0, Verdict.POSITIVE_DEFINITE),  # 1 - 1.0000002 cos(pi / 3001) = 3.5e-7
        (-0.5001, 0.0, Verdict.NOT_COPOSITIVE),
        (-0.5000001, 0.9, Verdict.COPOSITIVE),
        (-0.7, 0.1, Verdict.NOT_COPOSITIVE),
        (-0.7, 0.6, Verdict.UNPROVEN),
    ],
)
def test_one_long_chain(next_to, after_next, expected):
    assert judge(chain(3_000, next_to, after_next)).verdict is expected


@pytest.mark.parametrize(
    ("coupling", "expected"),
    [(0.3, Verdict.COPOSITIVE), (-0.2, Verdict.POSITIVE_DEFINITE), (-0.26, Verdict.NOT_COPOSITIVE)],
)
def test_a_million_variables(coupling, expected):
    matrix = grid(1_000, coupling)
    start = time.perf_counter()
    found = judge(matrix)
    assert time.perf_counter() - start < (5 if expected in FINITE else 30)
    assert found.verdict is expected


# Between other ends ------------------------------------------------------------------------------------------


@given(couplings(st.integers(1, 3).map(float), st.integers(-3, 3).map(float), largest=4), st.data())
@settings(max_examples=150)
def test_between_other_ends_it_is_copositivity_on_every_orthant_of_the_open_directions(matrix, data):
    n = len(matrix)
    kinds = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))  # up, down, both ways, bounded
    lower = np.where((kinds == 1) | (kinds == 2), -np.inf, 0.0)
    upper = np.where((kinds == 0) | (kinds == 2), np.inf, 1.0)
    found, moving = examine_in_box(matrix, lower, upper), np.flatnonzero(kinds < 3)
    ways = [{0: (1.0,), 1: (-1.0,), 2: (1.0, -1.0)}[int(kinds[k])] for k in moving]
    part = matrix[np.ix_(moving, moving)]
    finite = all(strictly_copositive(part * np.outer(signs, signs)) for signs in itertools.product(*ways))
    assert (found.witness is None) == finite
    assert found.verdict is not Verdict.UNPROVEN
    if found.witness is not None:
        x = found.witness
        assert x @ matrix @ x <= 1e-12
        assert np.abs(x).sum() == pytest.approx(1.0)
        assert (x[kinds == 0] >= 0).all()
        assert (x[kinds == 1] <= 0).all()
        assert (x[kinds == 3] == 0).all()
    as_sparse = examine_in_box(sparse.csr_array(matrix), lower, upper)
    assert as_sparse.verdict is found.verdict


def test_positive_definite_is_said_of_the_whole_matrix_only():
    w = np.array([[1.0, -2.0], [-2.0, 1.0]])
    half, ends = examine_in_box(w, np.zeros(2), np.array([np.inf, 1.0])), (np.full(2, -np.inf), np.full(2, np.inf))
    assert half.verdict is Verdict.COPOSITIVE
    assert examine_in_box(w, np.zeros(2), np.ones(2)).verdict is Verdict.BOUNDED
    assert examine_in_box(np.eye(2), *ends).verdict is Verdict.POSITIVE_DEFINITE
    assert examine_in_box(w, *ends).verdict is Verdict.NOT_COPOSITIVE


def test_many_variables_without_ends_are_undecided_rather_than_guessed():
    n = 2500
    rng = np.random.default_rng(0)
    i, j = rng.integers(n, size=(2, 6 * n))
    entries = sparse.coo_array((np.full(6 * n, 0.9), (i, j)), shape=(n, n)).tocsr()
    w = sparse.csr_array(entries + entries.T)
    w.setdiag(5.0)
    w.sort_indices()
    lower = np.where(np.arange(n) == 0, -np.inf, 0.0)
    found = examine_in_box(w, lower, np.full(n, np.inf))
    assert found.verdict is Verdict.UNPROVEN
    assert examine(w).verdict is Verdict.COPOSITIVE

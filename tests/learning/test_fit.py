"""fit: every method by its name, what "auto" does and says, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import model_of, own_edges, table_of

import nnbm
from nnbm.learning.edges import EdgeSet
from nnbm.learning.fit import METHODS, MOMENT_METHODS, Fitted, Request, fit, fit_moments
from nnbm.learning.inverse import inverse
from nnbm.learning.moments import Moments, moments
from nnbm.learning.pseudolikelihood import pseudolikelihood
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import pseudolikelihood_errors

NAMES = tuple("abcdefghi")
BY_ROWS = sorted(set(METHODS) - {"auto", *MOMENT_METHODS})


def grid_rows() -> tuple[Rows, EdgeSet]:
    return Rows.checked(table_of("grid")), own_edges(model_of("grid"))


def assert_is_model_of(found: Fitted) -> None:
    parameters, model = found.estimate.parameters, found.model
    dense = model.coupling if isinstance(model.coupling, np.ndarray) else model.coupling.toarray()
    np.testing.assert_allclose(dense, parameters.dense, rtol=1e-12)
    np.testing.assert_array_equal(model.bias, parameters.bias)


@pytest.mark.parametrize("names", [(), NAMES])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_returns_a_model(method, names):
    rows, e = grid_rows()
    found = fit(rows, e, Request(method, names=names))
    assert_is_model_of(found)
    assert found.model.names == names
    errors = found.estimate.errors
    assert (errors is None) == (method in MOMENT_METHODS)
    if errors is not None:
        assert np.isfinite(errors.vector).all()
        assert (errors.vector > 0).all()
    if method != "downs":
        assert np.abs(found.estimate.parameters.couplings - 0.5).mean() < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_all_pairs_give_a_dense_model_and_some_pairs_a_sparse_one(method):
    rows, e = grid_rows()
    part = fit(rows, e, Request(method, names=NAMES))
    assert not isinstance(part.model.coupling, np.ndarray)
    if method != "downs":  # it is far off with all pairs, and may have no norm
        assert isinstance(fit(rows, EdgeSet.complete(9), Request(method, names=NAMES)).model.coupling, np.ndarray)


@pytest.mark.parametrize("method", MOMENT_METHODS)
def test_moments_are_all_that_mean_fields_need(method):
    rows, e = grid_rows()
    of_rows, of_moments = fit(rows, e, Request(method)), fit_moments(moments(rows, e), Request(method))
    np.testing.assert_array_equal(of_moments.estimate.parameters.vector, of_rows.estimate.parameters.vector)


@pytest.mark.parametrize("method", BY_ROWS)
def test_methods_that_need_rows_say_so(method):
    rows, e = grid_rows()
    with pytest.raises(ValueError, match=rf"^method: {method} needs the rows themselves.*Use one of isusp, susp"):
        fit_moments(moments(rows, e), Request(method))


def test_auto_is_pseudolikelihood_with_its_errors():
    rows, e = grid_rows()
    found = fit(rows, e, Request()).estimate
    expected = pseudolikelihood(rows, e).parameters
    assert found.method == "pseudolikelihood"
    np.testing.assert_array_equal(found.parameters.vector, expected.vector)
    np.testing.assert_allclose(found.errors.vector, pseudolikelihood_errors(rows, expected).vector, rtol=1e-10)
    assert found.remarks == (
        "Newton's method began at score matching's answer.",
        "Pseudo-likelihood is consistent, and near the statistical floor when rows are many.",
    )


def test_auto_with_moments_alone_is_isusp_and_says_that_it_is_biased():
    data = moments(*grid_rows())
    found = fit_moments(data, Request())
    np.testing.assert_array_equal(found.estimate.parameters.vector, inverse(data, "isusp").parameters.vector)
    assert_is_model_of(found)
    (said,) = found.estimate.remarks
    assert "Only moments are given, so this is I-SusP" in said
    assert "biased" in said
    assert fit_moments(data, Request("isusp")).estimate.remarks == ()


def spread_table() -> tuple[Rows, EdgeSet, np.ndarray]:
    """Draws of a grid so strongly coupled that some variables have <x²> > 2 <x>²."""
    model = nnbm.gallery.square_grid(3, 3, coupling=3.0)
    table = nnbm.sample(model, 1000, chains=4, thin=10, seed=0, threads=1, progress=False).flat
    beyond = np.flatnonzero((table**2).mean(axis=0) >= 2.0 * table.mean(axis=0) ** 2)
    assert 0 < beyond.size < 9
    return Rows.checked(table), own_edges(model), beyond


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
@pytest.mark.parametrize("method", ["isusp", "susp", "ep", "ascent"])
def test_mean_fields_name_the_variables_that_have_no_site(method):
    rows, e, beyond = spread_table()
    with pytest.raises(nnbm.NoSite, match=f"does not hold for '{NAMES[beyond[0]]}'") as caught:
        fit(rows, e, Request(method, names=NAMES))
    np.testing.assert_array_equal(caught.value.indices, beyond)
    with pytest.raises(nnbm.NoSite, match=f"does not hold for column {beyond[0]}"):
        fit_moments(moments(rows, e), Request(method))


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
def test_downs_names_a_variable_whose_diagonal_it_loses():
    rows, e, beyond = spread_table()
    with pytest.raises(ValueError, match=rf"w_ii of '{NAMES[beyond[0]]}'.* is not positive"):
        fit(rows, e, Request("downs", names=NAMES))


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
def test_auto_goes_on_and_names_the_variables_that_have_no_site():
    rows, e, beyond = spread_table()
    found = fit(rows, e, Request(names=NAMES))
    assert_is_model_of(found)
    (said,) = [remark for remark in found.estimate.remarks if "<x²> >= 2 <x>²" in remark]
    for k, name in enumerate(NAMES[:9]):
        if beyond.size <= 6:
            assert (f"'{name}'" in said) == (k in beyond)
    z = (found.estimate.parameters.couplings - 3.0) / found.estimate.errors.couplings
    assert np.abs(z).max() < 5.0  # and it is right


def growing_together(seed: int) -> Rows:
    """Thirty rows of three columns that are all large or all small: the plain maximum has no norm."""
    rng = np.random.default_rng(seed)
    return Rows.checked(rng.gamma(1.0, size=(30, 1)) * np.exp(0.3 * rng.normal(size=(30, 3))))


@pytest.mark.parametrize("seed", range(4))
def test_auto_penalises_where_the_plain_maximum_has_no_norm(seed):
    rows, e = growing_together(seed), EdgeSet.complete(3)
    with pytest.raises(nnbm.NotCopositive, match=r"no norm \(Z is infinite\): it grows along 'a', 'b', 'c' together"):
        fit(rows, e, Request("pseudolikelihood", names=("a", "b", "c")))
    found = fit(rows, e, Request(names=("a", "b", "c")))
    assert_is_model_of(found)
    (said,) = [remark for remark in found.estimate.remarks if "penalised (ridge=" in remark]
    ridge = float(said.split("ridge=")[1].split(")")[0])
    same = fit(rows, e, Request("pseudolikelihood", ridge=ridge)).estimate
    np.testing.assert_allclose(found.estimate.parameters.vector, same.parameters.vector, rtol=1e-12)
    with pytest.raises(ValueError, match=r"norm|positive|maximum"):  # the next smaller one would not have done
        fit(rows, e, Request("pseudolikelihood", ridge=ridge / 10.0 if ridge > 1e-3 else 0.0))


def test_auto_starts_from_the_ridge_that_is_asked_for():
    rows, e = growing_together(0), EdgeSet.complete(3)
    asked = fit(rows, e, Request(ridge=300.0))
    assert not any("penalised" in remark for remark in asked.estimate.remarks)
    same = fit(rows, e, Request("pseudolikelihood", ridge=300.0)).estimate.parameters
    np.testing.assert_array_equal(asked.estimate.parameters.vector, same.vector)


@pytest.mark.parametrize("method", ["score_matching", "pseudolikelihood", "auto"])
def test_a_ridge_is_passed_on(method):
    rows, e = grid_rows()
    plain, penalised = (fit(rows, e, Request(method, ridge=ridge)).estimate.parameters for ridge in (0.0, 1.0))
    assert np.abs(penalised.couplings).sum() < np.abs(plain.couplings).sum()


@pytest.mark.parametrize("method", ["likelihood", *MOMENT_METHODS])
def test_methods_that_know_no_ridge_refuse_one(method):
    rows, e = grid_rows()
    with pytest.raises(ValueError, match=r"^ridge: .*but ridge = 0.5"):
        fit(rows, e, Request(method, ridge=0.5))


@pytest.mark.parametrize("method", ["mle", "AUTO", ""])
def test_unknown_methods_are_refused(method):
    rows, e = grid_rows()
    for call in (lambda: fit(rows, e, Request(method)), lambda: fit_moments(moments(rows, e), Request(method))):
        with pytest.raises(ValueError, match=rf"^method: one of auto, isusp, .*but method = '{method}'"):
            call()


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
def test_bad_ridges_are_refused(ridge):
    rows, e = grid_rows()
    for call in (
        lambda: fit(rows, e, Request(ridge=ridge)),
        lambda: fit_moments(moments(rows, e), Request(ridge=ridge)),
    ):
        with pytest.raises(ValueError, match=r"^ridge: a number >= 0 is needed"):
            call()


def test_moments_without_variance_are_refused_by_name():
    data = Moments(EdgeSet.complete(2), 10.0, np.ones(2), np.array([0.5, 0.0]), np.zeros(1))
    with pytest.raises(ValueError, match=r"every variable must vary, but the variance of 'q' is 0"):
        fit_moments(data, Request(names=("p", "q")))


@pytest.mark.parametrize("method", METHODS)
def test_one_column_is_a_table_too(method):
    found = fit(Rows.checked(table_of("trio")[:, [0]]), EdgeSet.complete(1), Request(method, names=("a",)))
    assert_is_model_of(found)
    if method != "downs":
        exact = fit(Rows.checked(table_of("trio")[:, [0]]), EdgeSet.complete(1), Request()).estimate
        gap = (found.estimate.parameters.vector - exact.parameters.vector) / exact.errors.vector
        assert np.abs(gap).max() < 0.5  # score matching weighs the rows otherwise


def awkward_table(rng: np.random.Generator) -> np.ndarray:
    """Few rows or many, heavy tails, many zeros, counts, columns of any size."""
    count, n = int(rng.choice([2, 3, 5, 20, 200])), int(rng.integers(1, 6))
    table = [
        lambda: rng.gamma(rng.uniform(0.05, 3.0), size=(count, n)),
        lambda: np.exp(rng.normal(size=(count, n)) * rng.uniform(0.1, 3.0)),
        lambda: rng.poisson(rng.uniform(0.2, 5.0), size=(count, n)).astype(float),
        lambda: rng.gamma(1.0, size=(count, n)) * (rng.random((count, n)) < rng.uniform(0.1, 0.9)),
        lambda: rng.gamma(1.0, size=(count, 1)) * (1.0 + 1e-3 * rng.random((count, n))),
        lambda: 1e3 + rng.random((count, n)),
    ][rng.integers(6)]()
    return table * 10.0 ** rng.uniform(-20, 20, n)


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_auto_learns_from_any_table_or_says_why_not(seed):
    """Warnings are errors here: nothing overflows or turns NaN on the way, either."""
    rng = np.random.default_rng(seed)
    try:
        rows = Rows.checked(awkward_table(rng))
    except ValueError as error:
        assert "Drop it" in str(error)  # noqa: PT017 (a column that happens to be constant)
        return
    try:
        found = fit(rows, EdgeSet.complete(rows.n), Request())
    except ValueError as error:
        assert str(error).startswith(("X: the pseudo-likelihood of", "the fitted", "X: no column may follow"))  # noqa: PT017
        return
    assert_is_model_of(found)
    assert np.isfinite(found.estimate.parameters.vector).all()
    assert not np.isnan(found.estimate.errors.vector).any()


def test_weights_and_seeds_reach_the_estimators():
    table, e = table_of("grid"), own_edges(model_of("grid"))
    weights = np.random.default_rng(0).integers(0, 3, 4000)
    weighted = fit(Rows.checked(table, weights=weights), e, Request()).estimate.parameters.vector
    repeated = fit(Rows.checked(np.repeat(table, weights, axis=0)), e, Request()).estimate.parameters.vector
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7, atol=1e-9)
    rows = Rows.checked(table)
    one, two, same = (
        fit(rows, e, Request("likelihood", seed=seed, names=NAMES)).estimate.parameters.vector for seed in (1, 2, 1)
    )
    assert (one != two).any()
    np.testing.assert_array_equal(one, same)

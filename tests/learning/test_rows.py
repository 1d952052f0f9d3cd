"""Tables: every bad one is refused with the column, the row and the value; weights count like repeats."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnbm.learning.edges import EdgeSet
from nnbm.learning.frame import Frame
from nnbm.learning.moments import moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import pseudolikelihood
from nnbm.learning.rows import Rows
from nnbm.learning.sandwich import pseudolikelihood_errors, score_matching_errors
from nnbm.learning.score_matching import score_matching

GOOD = np.array([[1.0, 0.5, 2.0], [0.2, 1.0, 0.0], [3.0, 0.1, 1.0], [0.4, 2.0, 0.3]])


def spoilt(value, row=2, column=1):
    table = GOOD.copy()
    table[row, column] = value
    return table


@pytest.mark.parametrize(
    ("value", "shown", "rule"),
    [
        (np.nan, "nan", "NaN and inf"),
        (np.inf, "inf", "NaN and inf"),
        (-np.inf, "-inf", "NaN and inf"),
        (-1e-300, "-1e-300", "Negative values"),
        (-2.5, "-2.5", "Negative values"),
    ],
)
def test_a_bad_entry_is_named_by_row_column_and_value(value, shown, rule):
    with pytest.raises(ValueError, match=rf"^X: {rule}.* but row 2 of column 1 is {shown}\. "):
        Rows.checked(spoilt(value))
    with pytest.raises(ValueError, match=rf"^X: {rule}.* but row 2 of 'b c' is {shown}\. "):
        Rows.checked(spoilt(value), names=["a", "b c", "d"])


def test_bad_entries_are_counted_and_the_first_row_is_shown():
    table = spoilt(-1.0)
    table[3] = -2.0
    with pytest.raises(ValueError, match=r"row 2 of column 1 is -1.0 \(and 3 more places\)"):
        Rows.checked(table)


def test_minus_zero_is_not_negative():
    assert Rows.checked(spoilt(-0.0)).count == 4


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_a_column_that_never_varies_is_named(value):
    table = GOOD.copy()
    table[:, 2] = value
    with pytest.raises(ValueError, match=rf"column 2 is {value:g} in every row\. Drop it"):
        Rows.checked(table)
    with pytest.raises(ValueError, match=rf"'z' is {value:g} in every row"):
        Rows.checked(table, names=["x", "y", "z"])
    table[:, 1] = 5.0
    with pytest.raises(ValueError, match=r"column 1 is 5 in every row \(and 1 more columns are constant\)"):
        Rows.checked(table)


def test_a_column_that_varies_only_where_there_is_no_weight_is_constant():
    table = GOOD.copy()
    table[:3, 0] = 7.0
    with pytest.raises(ValueError, match="column 0 is 7 in every row"):
        Rows.checked(table, weights=[1.0, 2.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("table", "shape"),
    [([1.0, 2.0], r"\(2,\)"), (3.0, r"\(\)"), (np.ones((2, 2, 2)), r"\(2, 2, 2\)"), ([], r"\(0,\)")],
)
def test_what_is_no_table_is_refused_with_its_shape(table, shape):
    with pytest.raises(ValueError, match=rf"^X: a table \(rows, variables\) is needed; its shape is {shape}"):
        Rows.checked(table)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_an_empty_table_is_refused(shape):
    with pytest.raises(ValueError, match=r"^X: at least one row and one variable are needed; its shape is"):
        Rows.checked(np.empty(shape))


def test_one_row_teaches_nothing():
    with pytest.raises(ValueError, match="at least 2 rows are needed"):
        Rows.checked(GOOD[:1])
    with pytest.raises(ValueError, match="at least 2 rows are needed"):
        Rows.checked(GOOD, weights=[0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("table", [GOOD.astype(object), GOOD + 0j, GOOD.astype(str), [["a", "b"], ["c", "d"]]])
def test_what_is_not_real_is_refused(table):
    with pytest.raises(TypeError, match=r"^X: real numbers are needed, but its dtype is"):
        Rows.checked(table)


def test_masked_and_ragged_tables_are_refused():
    with pytest.raises(TypeError, match=r"^X: masked"):
        Rows.checked(np.ma.masked_equal(GOOD, 2.0))
    with pytest.raises(ValueError, match=r"^X: an array is needed, with rows of one length"):
        Rows.checked([[1.0, 2.0], [1.0]])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0, 1.0, 1.0], r"not negative, but sample_weight\[1\] = -1.0"),
        ([1.0, 1.0, np.nan, 1.0], r"sample_weight\[2\] = nan"),
        ([1.0, 1.0, 1.0, np.inf], r"sample_weight\[3\] = inf"),
        ([1.0, 1.0], r"shape \(4,\), is needed; its shape is \(2,\)"),
        (np.ones((4, 1)), r"its shape is \(4, 1\)"),
        ([0.0, 0.0, 0.0, 0.0], "some weight must be positive"),
        (-1.0, "not negative"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=rf"^sample_weight: .*{message}"):
        Rows.checked(GOOD, weights=weights)


def test_weights_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match=r"^sample_weight: real numbers"):
        Rows.checked(GOOD, weights=["a", "b", "c", "d"])


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint16])
def test_every_real_kind_and_order_is_read_and_left_alone(kind):
    table = np.asfortranarray((10 * GOOD).astype(kind))
    kept = table.copy()
    rows = Rows.checked(table)
    np.testing.assert_array_equal(rows.columns, kept.T.astype(float))
    assert rows.columns.flags.c_contiguous
    assert (table == kept).all()
    assert (rows.n, rows.count, rows.total) == (3, 4, 4.0)


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_batches_are_the_rows_in_order_without_those_of_no_weight(size):
    weights = np.array([1.0, 2.0, 0.0, 0.5])
    rows = Rows.checked(GOOD, weights=weights)
    parts = list(rows.batches(size))
    np.testing.assert_array_equal(
        np.concatenate([b.columns for b in parts], axis=1)[:, np.concatenate([b.weights for b in parts]) > 0],
        GOOD[weights > 0].T,
    )
    assert sum(b.total for b in parts) == rows.total == 3.5
    assert all(b.total > 0 for b in parts)
    np.testing.assert_allclose(rows.shares.sum(), 1.0)
    np.testing.assert_allclose(rows.average(rows.columns), np.average(GOOD, axis=0, weights=weights))
    np.testing.assert_allclose(
        rows.seen_from(Frame(np.ones(3), np.array([2.0, 1.0, 0.5]))).columns,
        (GOOD[weights > 0].T - 1.0) / [[2.0], [1.0], [0.5]],
    )


def everything_learned(rows: Rows, edges: EdgeSet) -> dict[str, np.ndarray]:
    """What a table teaches, by every path that reads rows."""
    found = moments(rows, edges)
    answers = {"moments": np.concatenate([[found.total], found.mean, found.variance, found.covariance])}
    matched = score_matching(rows, edges, ridge=0.1).parameters
    answers["score matching"] = matched.vector
    # sandwiches belong to any point
    start = Parameters(edges, np.zeros(edges.n), 1.0 / found.variance, np.zeros(edges.size))
    maximum = pseudolikelihood(rows, edges, ridge=0.1, start=start).parameters
    answers["pseudolikelihood"] = maximum.vector
    answers["score matching errors"] = score_matching_errors(rows, matched).vector
    answers["pseudolikelihood errors"] = pseudolikelihood_errors(rows, maximum).vector
    return answers


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_a_weight_of_k_is_k_repeats_of_the_row(seed):
    rng = np.random.default_rng(seed)
    table = rng.gamma(1.5, size=(60, 3))
    repeats = rng.integers(0, 4, 60)
    edges = EdgeSet.complete(3)
    weighted = everything_learned(Rows.checked(table, weights=repeats), edges)
    repeated = everything_learned(Rows.checked(np.repeat(table, repeats, axis=0)), edges)
    for name, answer in weighted.items():
        np.testing.assert_allclose(answer, repeated[name], rtol=1e-6, atol=1e-8, err_msg=name)


def test_equal_weights_change_errors_but_not_estimates():
    rng = np.random.default_rng(0)
    table, edges = rng.gamma(1.5, size=(80, 3)), EdgeSet.complete(3)
    plain = everything_learned(Rows.checked(table), edges)
    fourfold = everything_learned(Rows.checked(table, weights=4.0), edges)
    for name in ("score matching", "pseudolikelihood"):
        np.testing.assert_allclose(fourfold[name], plain[name], rtol=1e-6)
        np.testing.assert_allclose(fourfold[f"{name} errors"], plain[f"{name} errors"] / 2.0, rtol=1e-5)


@pytest.mark.parametrize("method", ["score matching", "pseudolikelihood"])
def test_the_order_of_rows_does_not_matter(method):
    """A table sorted by one of its columns is a table of the same independent rows; many batches of them."""
    rng = np.random.default_rng(1)
    table, edges = rng.gamma(1.5, size=(40_000, 2)), EdgeSet.complete(2)
    mixed = everything_learned(Rows.checked(table), edges)
    ordered = everything_learned(Rows.checked(table[np.argsort(table[:, 0])]), edges)
    np.testing.assert_allclose(ordered["moments"], mixed["moments"], rtol=1e-9)
    np.testing.assert_allclose(ordered[method], mixed[method], rtol=1e-6)
    np.testing.assert_allclose(ordered[f"{method} errors"], mixed[f"{method} errors"], rtol=0.01)

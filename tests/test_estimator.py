import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import nnbm
from nnbm import NonnegativeBoltzmann, gallery
from nnbm.learning.fit import METHODS, MOMENT_METHODS

TRUTH = gallery.square_grid(2, 3, coupling=0.5, seed=3)
NAMES = ["oak", "ash", "elm", "fir", "yew", "<b>bay</b>"]


@pytest.fixture(scope="module")
def table():
    """20,000 nearly independent rows of TRUTH."""
    return nnbm.sample(TRUTH, draws=5000, chains=4, thin=3, seed=5, progress=False).flat


@pytest.fixture(scope="module")
def frame(table):
    return pd.DataFrame(table, columns=NAMES)


@parametrize_with_checks([NonnegativeBoltzmann()])
@pytest.mark.filterwarnings("ignore:SCIPY_ARRAY_API")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", ["pseudolikelihood", "score_matching", "likelihood"])
def test_consistent_estimators_come_within_their_standard_errors(table, method):
    est = NonnegativeBoltzmann(method, edges=TRUTH.edges).fit(table)
    i, j = TRUTH.edges
    pulls = np.concatenate(
        [
            (est.bias_ - TRUTH.bias) / est.standard_errors_.bias,
            (est.coupling_ - TRUTH.coupling)[i, j] / est.standard_errors_.coupling[i, j],
        ]
    )
    assert np.abs(pulls).max() < 4.0
    assert 0.4 < np.sqrt(np.mean(pulls**2)) < 1.8  # 13 pulls of variance 1: the 0.01% quantiles of their mean square


def test_a_wrong_truth_is_far_outside_the_standard_errors(table):
    est = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table)
    i, j = TRUTH.edges
    wrong = TRUTH.edge_couplings + 0.3
    assert (np.abs((est.coupling_[i, j] - wrong) / est.standard_errors_.coupling[i, j]) > 4.0).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_model_and_says_what_it_did(table, method):
    est = NonnegativeBoltzmann(method, edges=TRUTH.edges).fit(table)
    assert isinstance(est.model_, nnbm.NNBM)
    assert est.model_.n == est.n_features_in_ == 6
    assert est.report_.startswith(f"{est.method_}")
    assert "20000 rows" in est.report_
    assert (est.standard_errors_ is None) == (method in MOMENT_METHODS)


def test_names_of_a_data_frame_are_kept(frame):
    est = NonnegativeBoltzmann(edges=TRUTH.edges).fit(frame)
    assert est.model_.names == tuple(NAMES)
    assert list(est.get_feature_names_out()) == NAMES
    assert list(est.set_output(transform="pandas").transform(frame[:3]).columns) == NAMES


def test_transform_is_the_conditional_mean(table):
    est = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table)
    expected = np.empty((50, 6))
    for site in range(6):
        l, r = est.model_.conditional(site, table[:50])
        expected[:, site] = nnbm.site.HalfLine().moments(l, r).mean
    np.testing.assert_allclose(est.transform(table[:50]), expected, rtol=1e-9)


def test_score_prefers_the_right_graph(table):
    half = len(table) // 2
    right = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table[:half]).score(table[half:])
    none = NonnegativeBoltzmann(edges=([], [])).fit(table[:half]).score(table[half:])
    assert right > none
    truth = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table)
    assert truth.score(table) > NonnegativeBoltzmann(edges=TRUTH.edges, ridge=10.0).fit(table).score(table)


def test_score_is_the_log_likelihood(table):
    est = NonnegativeBoltzmann(edges=([0], [1])).fit(table[:, :2])
    exact = nnbm.infer(est.model_, "exact")
    np.testing.assert_allclose(
        est.score_samples(table[:50, :2]), -est.model_.energy(table[:50, :2]) - exact.log_partition
    )
    assert est.score(table[:50, :2]) == pytest.approx(est.score_samples(table[:50, :2]).mean())
    weights = np.arange(50.0)
    expected = np.average(est.score_samples(table[:50, :2]), weights=weights)
    assert est.score(table[:50, :2], sample_weight=weights) == pytest.approx(expected)
    other = NonnegativeBoltzmann().fit(table[:, :2])
    other.fit(table[:, :2] * 2.0)  # a new fit has a new ln Z: it grows by ln 2 a variable
    assert other.score(table[:, :2] * 2.0) == pytest.approx(est.score(table[:, :2]) - 2 * np.log(2.0), abs=1e-3)


def test_score_in_several_modes_is_sampled():
    truth = nnbm.gallery.square_grid(3, 3, coupling=2.0, bias=(3.0, 4.0))
    draws = nnbm.sample(truth, 500, method="tempering", seed=0).flat
    est = NonnegativeBoltzmann(edges=truth.edges, seed=1).fit(draws)
    reference = nnbm.log_partition(est.model_, error=0.01, seed=2)
    assert est.log_partition_ == pytest.approx(reference.value, abs=0.05)
    assert est.score(draws) == NonnegativeBoltzmann(edges=truth.edges, seed=1).fit(draws).score(draws)


def test_pseudo_likelihood_is_there_too(table):
    est = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table)
    rows = est.score_pseudo_samples(table[:20])
    site = nnbm.site.HalfLine()
    expected = np.zeros(20)
    for i in range(6):
        l, r = est.model_.conditional(i, table[:20])
        expected += l * table[:20, i] - 0.5 * r * table[:20, i] ** 2 - site.moments(l, r).log_partition
    np.testing.assert_allclose(rows, expected, rtol=1e-9)
    assert est.score_pseudo(table[:20]) == pytest.approx(rows.mean())


def test_partial_fit_of_parts_is_fit_of_the_whole(table):
    whole = NonnegativeBoltzmann("isusp", edges=TRUTH.edges).fit(table)
    parts = NonnegativeBoltzmann("isusp", edges=TRUTH.edges)
    for part in np.array_split(table, 7):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.bias_, whole.bias_, rtol=1e-8)
    np.testing.assert_allclose(parts.coupling_.toarray(), whole.coupling_.toarray(), rtol=1e-8)


def test_fit_after_partial_fit_forgets_the_parts(table):
    est = NonnegativeBoltzmann("isusp").partial_fit(table[:9000])
    est.fit(table[9000:])
    again = NonnegativeBoltzmann("isusp").fit(table[9000:]).partial_fit(table[:9000])
    alone = NonnegativeBoltzmann("isusp").fit(table[:9000])
    np.testing.assert_allclose(again.bias_, alone.bias_, rtol=1e-9)


def test_names_beside_an_array_and_labels_of_moments_are_kept(table, frame):
    est = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table, names=NAMES)
    assert est.model_.names == tuple(NAMES)
    assert NonnegativeBoltzmann().fit_moments(frame.mean(), frame.cov()).model_.names == tuple(NAMES)
    with pytest.raises(ValueError, match="names: 6 that differ are needed"):
        NonnegativeBoltzmann().fit(table, names=["a"])


def test_the_clearest_couplings_come_first(table):
    est = NonnegativeBoltzmann(edges=None).fit(table)
    places, w, errors = est.clearest(7)
    i, j = TRUTH.edges
    assert set(zip(est.edges_[0][places], est.edges_[1][places], strict=True)) == set(zip(i, j, strict=True))
    assert (np.diff(np.abs(w) / errors) <= 0).all()
    assert NonnegativeBoltzmann("isusp").fit(table).clearest(2)[2] is None


def test_published_moments_suffice_for_the_papers_method(table):
    est = NonnegativeBoltzmann().fit_moments(table.mean(axis=0), np.cov(table.T, bias=True), rows=len(table))
    whole = NonnegativeBoltzmann("isusp").fit(table)
    assert est.method_ == "isusp"
    assert "moments of 20000 rows" in est.report_
    np.testing.assert_allclose(est.bias_, whole.bias_, rtol=1e-7)


@pytest.mark.parametrize("method", ["pseudolikelihood", "likelihood", "score_matching"])
def test_methods_that_need_rows_refuse_moments(table, method):
    with pytest.raises(ValueError, match="needs all rows at once"):
        NonnegativeBoltzmann(method).partial_fit(table)
    with pytest.raises(ValueError, match="needs all rows at once"):
        NonnegativeBoltzmann(method).fit_moments(np.ones(2), 0.5 * np.eye(2))


@pytest.mark.parametrize("method", ["auto", "isusp"])
def test_saved_and_loaded_it_is_the_same(frame, method, tmp_path):
    est = NonnegativeBoltzmann(method, edges=TRUTH.edges, ridge=0.0).fit(frame)
    est.save(tmp_path / "fit.npz")
    back = NonnegativeBoltzmann.load(tmp_path / "fit.npz")
    assert back.model_ == est.model_
    assert back.report_ == est.report_
    assert back.get_params()["method"] == method
    np.testing.assert_array_equal(back.edges[0], est.edges_[0])
    np.testing.assert_array_equal(back.transform(frame[:5]), est.transform(frame[:5]))
    if method == "auto":
        np.testing.assert_array_equal(back.standard_errors_.vector, est.standard_errors_.vector)
    else:
        assert back.standard_errors_ is None


def test_a_fit_without_names_and_with_all_pairs_comes_back_too(table, tmp_path):
    est = NonnegativeBoltzmann().fit(table)
    est.save(tmp_path / "fit.npz")
    back = NonnegativeBoltzmann.load(tmp_path / "fit.npz")
    assert back.edges is None
    assert back.model_ == est.model_


def test_nothing_is_left_behind_where_a_fit_cannot_be_written(table, tmp_path):
    est = NonnegativeBoltzmann().fit(table)
    with pytest.raises(FileNotFoundError, match="folder"):
        est.save(tmp_path / "missing" / "fit.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_model_file_is_not_a_fit(tmp_path):
    nnbm.save_model(TRUTH, tmp_path / "model.npz")
    with pytest.raises(ValueError, match="nnbm fit 1"):
        NonnegativeBoltzmann.load(tmp_path / "model.npz")


@pytest.mark.parametrize("name", ["i", "parameters", "errors", "method", "iterations", "names"])
def test_damaged_fits_are_refused(table, tmp_path, name):
    NonnegativeBoltzmann(edges=TRUTH.edges).fit(table).save(tmp_path / "fit.npz")
    with np.load(tmp_path / "fit.npz") as file:
        parts = dict(file)
    parts[name] = np.array([0.5, 0.25, 0.125])
    np.savez(tmp_path / "fit.npz", **parts)
    with pytest.raises(ValueError, match="does not hold a sound fit"):
        NonnegativeBoltzmann.load(tmp_path / "fit.npz")


def test_an_unfitted_estimator_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        NonnegativeBoltzmann().save(tmp_path / "fit.npz")


def test_draws_follow_the_learned_model(table):
    est = NonnegativeBoltzmann(edges=TRUTH.edges).fit(table)
    draws = est.sample(4000, seed=1)
    assert draws.shape == (4000, 6)
    np.testing.assert_array_equal(draws, est.sample(4000, seed=1))
    # ten sweeps apart they are nearly independent; five standard errors of the difference of two means
    error = np.sqrt(table.var(axis=0) * (1 / 4000 + 1 / 20000))
    assert (np.abs(draws.mean(axis=0) - table.mean(axis=0)) < 5 * error).all()
    assert est.sample().shape == (1, 6)


def test_it_works_in_pipelines_and_searches(table):
    pipe = make_pipeline(MaxAbsScaler(), NonnegativeBoltzmann()).fit(table)
    assert np.isfinite(pipe.score(table))
    search = GridSearchCV(NonnegativeBoltzmann(), {"ridge": [0.0, 10.0]}, cv=3).fit(table[:3000])
    assert search.best_params_["ridge"] == 0.0
    assert clone(search.best_estimator_).ridge == 0.0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda x: x.assign(elm=-1.0), "'elm' is -1.0"),
        (lambda x: x.assign(elm=np.nan), "row 0 of 'elm' is nan"),
        (lambda x: x.assign(elm=0.0), "'elm' is 0 in every row"),
        (lambda x: x.assign(elm=2.5), "'elm' is 2.5 in every row"),
        (lambda x: x.iloc[:1], "1 sample"),
        (lambda x: x.assign(elm=x["oak"] * 2.0), "no column may follow from others, but '(elm|oak)' does"),
        (lambda x: x.assign(elm=x["oak"] * 1e200), "'elm' is .*Measure that column in a larger unit"),
        (lambda x: x.assign(elm=x["oak"] * 1e-200), "'elm' has no larger ones"),
    ],
)
def test_bad_tables_get_an_error_with_the_columns_name(frame, spoil, said):
    with pytest.raises(ValueError, match=said):
        NonnegativeBoltzmann("pseudolikelihood").fit(spoil(frame))


def test_fewer_rows_than_needed_are_refused_or_penalised_with_a_word(frame):
    with pytest.raises(ValueError, match=r"rows|norm|positive"):
        NonnegativeBoltzmann("pseudolikelihood").fit(frame[:8])
    est = NonnegativeBoltzmann().fit(frame[:8])
    assert "penalised" in est.report_


def test_more_spread_than_an_exponential_names_the_columns(frame):
    heavy = frame.assign(elm=np.where(frame["elm"] > frame["elm"].quantile(0.95), frame["elm"], 1e-3))
    with pytest.raises(nnbm.NoSite, match="'elm'"):
        NonnegativeBoltzmann("isusp").fit(heavy)
    est = NonnegativeBoltzmann().fit(heavy)
    assert "Mean-field inverses are out of the question: <x²> >= 2 <x>² for 'elm'" in est.report_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "magic"}, "method: one of auto"),
        ({"ridge": -1.0}, "ridge: a number >= 0"),
        ({"ridge": "a"}, "ridge: a number >= 0"),
        ({"ridge": np.array([1.0, 2.0])}, "ridge: a number >= 0"),
        ({"edges": [(0, 1), (1, 2), (2, 3)]}, "list of pairs"),
        ({"edges": (np.array([0], np.uint64), np.array([2**63], np.uint64))}, "edge 0 is"),
        ({"edges": ([0], [9])}, r"edge 0 is \(0, 9\)"),
        ({"edges": ([1], [1])}, "an edge joins two variables"),
        ({"edges": "learn"}, "edges: None"),
        ({"method": "likelihood", "ridge": 1.0}, "likelihood knows none"),
    ],
)
def test_wrong_options_are_named(table, options, said):
    with pytest.raises(ValueError, match=said):
        NonnegativeBoltzmann(**options).fit(table)


def test_a_biased_fit_warns_where_mean_field_expects_to_be_wrong():
    strong = nnbm.gallery.square_grid(4, 4, coupling=1.0, seed=1)
    X = nnbm.sample(strong, draws=3000, chains=4, thin=5, seed=2, progress=False).flat
    with pytest.warns(nnbm.UnreliableWarning, match="isusp: At these parameters mean-field moments may be off by 0"):
        est = NonnegativeBoltzmann("isusp", edges=strong.edges).fit(X)
    assert "the estimates biased" in est.report_
    weak = NonnegativeBoltzmann("isusp", edges=TRUTH.edges)  # warnings are errors
    weak.fit(nnbm.sample(TRUTH, draws=3000, chains=4, thin=5, seed=2, progress=False).flat)


def test_columns_far_from_the_wall_are_normal_ones(table):
    """Sd over mean of 1e-4 and less: the couplings are those of the inverse covariance."""
    rng = np.random.default_rng(8)
    for mean in (1e3, 1e4, 1e5):
        X = np.c_[table[:, :2], mean + rng.normal(size=len(table))]
        est = NonnegativeBoltzmann().fit(X)
        assert "penalised" not in est.report_
        assert est.coupling_[2, 2] == pytest.approx(np.linalg.inv(np.cov(X.T, bias=True))[2, 2], rel=1e-3)
        assert est.standard_errors_.diagonal[2] == pytest.approx(np.sqrt(2 / len(X)), rel=0.05)


def test_standard_errors_of_penalised_fits_are_their_spread():
    truth, spread, told = gallery.square_grid(2, 2, coupling=0.5, seed=3), [], []
    draws = nnbm.sample(truth, draws=15_000, chains=4, thin=3, seed=6, progress=False).draws
    for part in draws.reshape(-1, 400, 4):  # 150 tables
        est = NonnegativeBoltzmann("pseudolikelihood", ridge=0.3, edges=truth.edges).fit(part)
        spread.append(est.coupling_[truth.edges])
        told.append(est.standard_errors_.couplings)
    ratio = np.mean(told, axis=0) / np.std(spread, axis=0)
    np.testing.assert_allclose(ratio, 1.0, atol=4 / np.sqrt(2 * 150))  # an sd from 150 tables, four of its errors
    assert "pulled towards 0" in est.report_


def test_masked_tables_are_refused(table):
    masked = np.ma.masked_array(table, mask=table > 2)
    with pytest.raises(TypeError, match="X: masked entries"):
        NonnegativeBoltzmann().fit(masked)
    with pytest.raises(TypeError, match="X: masked entries"):
        NonnegativeBoltzmann().fit(table).score(masked)


def test_a_failed_fit_leaves_the_estimator_as_it_was(frame):
    est = NonnegativeBoltzmann().fit(frame)
    before = est.transform(frame[:3])
    with pytest.raises(ValueError, match="in every row"):
        est.fit(frame[NAMES[::-1]].assign(oak=3.0))
    np.testing.assert_array_equal(est.transform(frame[:3]), before)
    with pytest.raises(ValueError, match="feature names"):
        est.transform(frame[NAMES[::-1]])


def test_small_parts_add_up_even_where_the_first_teach_nothing(table):
    parts = NonnegativeBoltzmann("isusp")
    for first, last in ((0, 1), (1, 3)):
        with pytest.raises(ValueError, match=r"vary|singular") as caught:
            parts.partial_fit(table[first:last])
        assert f"The {last} rows seen so far are kept" in caught.value.__notes__[0]
    parts.partial_fit(table[3:])
    np.testing.assert_allclose(parts.bias_, NonnegativeBoltzmann("isusp").fit(table).bias_, rtol=1e-7)


def test_parts_must_be_of_the_same_edges(table):
    est = NonnegativeBoltzmann("isusp", edges=([0, 1], [1, 2])).partial_fit(table)
    with pytest.raises(ValueError, match="edges: moments of the same variables and edges"):
        est.set_params(edges=([0, 2], [2, 3])).partial_fit(table)


def test_parts_go_on_after_a_file_and_after_published_moments(table, tmp_path):
    NonnegativeBoltzmann("isusp", seed=77).partial_fit(table[:9000]).save(tmp_path / "fit.npz")
    back = NonnegativeBoltzmann.load(tmp_path / "fit.npz").partial_fit(table[9000:])
    assert back.seed == 77
    published = NonnegativeBoltzmann("isusp").fit_moments(
        table[:9000].mean(axis=0), np.cov(table[:9000].T, bias=True), rows=9000
    )
    published.partial_fit(table[9000:])
    whole = NonnegativeBoltzmann("isusp").fit(table).bias_
    np.testing.assert_allclose(back.bias_, whole, rtol=1e-7)
    np.testing.assert_allclose(published.bias_, whole, rtol=1e-7)


@pytest.mark.parametrize(
    ("mean", "covariance", "rows", "said"),
    [
        ([1.0, 1.0], [[0.5, -0.1], [0.3, 0.4]], 100, "it must be symmetric"),
        ([1.0, -1.0], np.eye(2), 100, r"mean\[1\] = -1.0"),
        ([1.0, 1.0], [[0.5, -0.9], [-0.9, 0.4]], 100, "<= sqrt"),
        ([1.0, 1.0], 0.5 * np.eye(2), 0, "rows: a number > 0"),
        ([1.0, 1.0], 0.5 * np.eye(2), np.nan, "rows: a number > 0"),
        ([], np.empty((0, 0)), 10, "shapes"),
        ([1.0], [[0.0]], 10, "variances are positive"),
    ],
)
def test_moments_that_cannot_be_are_refused(mean, covariance, rows, said):
    with pytest.raises(ValueError, match=said):
        NonnegativeBoltzmann().fit_moments(mean, covariance, rows)


def test_rows_of_no_weight_are_no_rows(table):
    weights = np.zeros(len(table))
    weights[:500] = 1.0
    spoilt = table.copy()
    spoilt[600] = np.nan
    few = NonnegativeBoltzmann().fit(spoilt, sample_weight=weights)
    assert "500 rows" in few.report_
    np.testing.assert_allclose(few.bias_, NonnegativeBoltzmann().fit(table[:500]).bias_, rtol=1e-9)

"""Figures carry what they claim, for small and for many variables."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import nnbm
from nnbm.plots import samples_figure, tuning_figure


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_samples_figure_shows_the_means(tmp_path):
    model = nnbm.NNBM([1.0, 2.0, 0.5], np.eye(3) + 0.2, names=["a$", "b_", "c"])
    s = nnbm.sample(model, 500, seed=0)
    figure = samples_figure(model, s)
    means = figure.axes[0].get_lines()[0].get_ydata()
    np.testing.assert_allclose(np.unique(means), np.unique(s.mean))
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["a$", "b_", "c"]
    figure.savefig(tmp_path / "f.png")


def test_means_far_from_0_are_seen_from_nearby():
    model = nnbm.NNBM(np.full(2, 1000.5), np.eye(2), lower=1000.0, upper=1001.0)
    bottom, top = samples_figure(model, nnbm.sample(model, 500, seed=0)).axes[0].get_ylim()
    assert 1000.0 <= bottom < top < 1002.0


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
@pytest.mark.parametrize("n", [1, 500])
def test_samples_figure_of_any_size(tmp_path, n):
    model = nnbm.gallery.random_graph(n, degree=min(4, n - 1))
    samples_figure(model, nnbm.sample(model, 20, seed=0)).savefig(tmp_path / "f.png")


def test_tuning_figure_turns_bumps_to_zero():
    model = nnbm.gallery.orientation_tuning(24, beta=20.0, epsilon=3.0)
    with np.errstate(all="raise"):
        s = nnbm.sample(model, 2000, thin=20, seed=0, initial=np.ones(24))
        figure = tuning_figure(model, s)
    mean_line = next(line for line in figure.axes[1].get_lines() if line.get_label() == "mean")
    angle, bump = mean_line.get_data()
    assert abs(angle[np.argmax(bump)]) <= 360 / 24
    assert bump.max() > 2 * s.mean.mean()


@pytest.mark.parametrize("method", ["auto", "isusp"])
def test_couplings_with_and_without_intervals(method):
    truth = nnbm.gallery.square_grid(2, 3, coupling=0.5, seed=3)
    X = nnbm.sample(truth, draws=1000, chains=4, seed=5, progress=False).flat
    names = ["oak", "ash", "$elm", "<b>", "yew", "fir"]
    figure = nnbm.plots.couplings_figure(nnbm.NonnegativeBoltzmann(method, edges=truth.edges).fit(X, names=names))
    shown = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert len(shown) == 7
    assert any("$elm" in label for label in shown)
    assert ("95% intervals" in figure.axes[1].get_title(loc="left")) == (method == "auto")
    figure.canvas.draw()
    plt.close(figure)


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
def test_chains_figure_shows_the_worst_and_what_is_wrong_with_it(tmp_path):
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(3, 400, 6)) ** 2
    draws[0, :, 4] += 3.0
    s = nnbm.Samples(draws, ("a", "b", "c", "d", "$e", "f"), "gibbs", 0, 1, 1.0, False)
    figure = nnbm.plots.chains_figure(s)
    assert figure.axes[0].get_ylabel() == "$e"
    apart, level = figure.axes[1].patches, figure.axes[4].patches
    assert max(patch.get_data().values.max() for patch in apart) > 1.5 * max(
        patch.get_data().values.max() for patch in level
    )
    correlation = figure.axes[5].get_lines()[0].get_ydata()
    assert correlation[0] == pytest.approx(1.0)
    assert np.abs(correlation[1:]).max() < 0.2
    figure.savefig(tmp_path / "f.png")
    two = nnbm.plots.chains_figure(s, [5, 0])
    assert [two.axes[0].get_ylabel(), two.axes[3].get_ylabel()] == ["f", "a"]
    with pytest.raises(ValueError, match="at least 8 draws per chain"):
        nnbm.plots.chains_figure(nnbm.Samples(draws[:, :5], (), "gibbs", 0, 1, 1.0, False))


def test_autocorrelations_are_those_of_an_autoregression():
    from nnbm.plots.chains import _autocorrelations

    rng, x = np.random.default_rng(0), np.zeros(200_000)
    noise = rng.normal(size=x.size)
    for k in range(1, x.size):
        x[k] = 0.8 * x[k - 1] + noise[k]
    np.testing.assert_allclose(_autocorrelations(x, 10), 0.8 ** np.arange(11), atol=0.03)
    np.testing.assert_array_equal(_autocorrelations(np.ones(50), 3), np.zeros(4))


@pytest.mark.filterwarnings("ignore::nnbm.UnreliableWarning")
def test_the_film_shows_each_draw_and_its_angle(tmp_path):
    model = nnbm.gallery.orientation_tuning(12, beta=20.0, epsilon=3.0)
    s = nnbm.sample(model, 12, chains=1, thin=20, seed=0)
    film = nnbm.plots.bump_film(s, frames=5)
    film.save(tmp_path / "bump.gif")
    axis = plt.gcf().axes[0]
    assert [bar.get_height() for bar in axis.patches] == pytest.approx(s.draws[0, 4])
    angle = np.angle(s.draws[0, 4] @ np.exp(2j * np.pi * np.arange(12) / 12))
    assert axis.get_lines()[0].get_xdata()[1] == pytest.approx(angle)
    assert (tmp_path / "bump.gif").stat().st_size > 1000


def test_arviz_takes_our_draws():
    """The way to ArviZ's own views that how-to-choose gives; where arviz-plots is there and goes with matplotlib."""
    try:
        import arviz_plots
    except (ImportError, AttributeError) as error:  # 0.8 fails on matplotlib 3.11 in its own way
        pytest.skip(f"arviz-plots cannot be imported: {error}")
    s = nnbm.sample(nnbm.gallery.orientation_tuning(12), 500, thin=5, seed=0)
    collection = arviz_plots.plot_trace(s.to_arviz(), coords={"variable": [0, 9]}, backend="matplotlib")
    traces = [axes.get_lines() for axes in plt.gcf().axes if axes.get_lines()]
    assert [len(lines) for lines in traces] == [4, 4]
    assert type(collection).__module__.startswith("arviz_plots")
    for lines, place in zip(traces, (0, 9), strict=True):
        found = np.array([line.get_ydata() for line in lines])
        np.testing.assert_array_equal(found, s.draws[:, :, place])

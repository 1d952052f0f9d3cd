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

"""Ends: what is refused, in which words, and where a model with ends refuses points."""

import numpy as np
import pandas as pd
import pytest

from nnbm import NNBM, sample
from nnbm.ends import checked_ends

INF = np.inf


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (1.0, 1.0, r"upper: it must lie above lower, but upper\[0\] = 1.0"),
        ([0.0, 2.0], 1.0, r"upper: it must lie above lower, but upper\[1\] = 1.0"),
        (np.nan, 1.0, r"lower: a number, or -inf for none, is needed, but lower\[0\] = nan"),
        (0.0, [1.0, np.nan], r"upper: a number, or inf for none, is needed, but upper\[1\] = nan"),
        (INF, INF, "lower: a number, or -inf for none"),
        (-INF, -INF, "upper: a number, or inf for none"),
        (-1.7e308, 1.7e308, "upper - lower must be a float"),
        (0.0, 5e-324, "upper - lower must be 1e-150 at least"),
        ([0.0, 0.0, 0.0], 1.0, r"lower: one number, or one per variable \(2\), is needed; its shape is \(3,\)"),
    ],
)
def test_ends_that_are_none(lower, upper, words):
    with pytest.raises(ValueError, match=words):
        checked_ends(lower, upper, 2)
    with pytest.raises(ValueError, match=words):
        NNBM([0.0, 0.0], np.eye(2), lower=lower, upper=upper)


def test_words_are_no_ends():
    with pytest.raises(TypeError, match="upper: real numbers are needed"):
        checked_ends(0.0, "wide", 2)


def test_ends_cannot_change():
    upper = np.array([1.0, 2.0])
    model = NNBM([0.0, 0.0], np.eye(2), upper=upper)
    upper[0] = 9.0
    assert model.upper.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        model.upper[0] = 9.0


def test_labels_are_compared_where_there_are_any():
    ends, turned = pd.Series([1.0, 2.0], index=["a", "b"]), pd.Series([2.0, 1.0], index=["b", "a"])
    assert checked_ends(0.0, ends, 2, ["a", "b"])[1].tolist() == [1.0, 2.0]
    assert checked_ends(0.0, pd.Series([1.0, 2.0]), 2, ["a", "b"])[1].tolist() == [1.0, 2.0]
    assert checked_ends(0.0, turned, 2)[1].tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match=r"upper: its labels must be those of the variables.*upper\.loc\[names\]"):
        checked_ends(0.0, turned, 2, ["a", "b"])


def test_points_outside_are_named():
    cube = NNBM([0.0, 0.0], np.eye(2), lower=-1.0, upper=1.0)
    with pytest.raises(ValueError, match=r"x: the model lives on -1 <= x <= 1, but x\[1, 0\] = 1.5"):
        cube.energy([[0.0, 0.0], [1.5, 0.0]])
    with pytest.raises(ValueError, match="initial: the model lives on -1 <= x <= 1"):
        sample(cube, 10, initial=[0.0, -2.0], seed=0)
    below = NNBM([0.0, 0.0], np.eye(2), lower=-INF, upper=3.0)
    with pytest.raises(ValueError, match=r"the model lives on x <= 3, but x\[0\] = 4.0"):
        below.energy([4.0, 0.0])
    each = NNBM([0.0, 0.0], np.eye(2), upper=[1.0, INF])
    with pytest.raises(ValueError, match=r"between `lower` and `upper` of each variable, but x\[1\] = -4.0"):
        each.energy([0.0, -4.0])

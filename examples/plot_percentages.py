"""
Percentages: a normal cut at both ends
======================================

Marks, shares and saturating intensities live between two ends, and many lie near one. Mean and spread then tell less of
what is behind them than of the ends. Here six marks between 0 and 100 depend on each other along a chain; behind them
is a normal, whose peak and width are wanted.
"""

import matplotlib.pyplot as plt
import numpy as np

import nnbm

n, sd = 6, 35.0
coupling = np.diag(np.full(n, 1.6)) - 0.7 * (np.eye(n, k=1) + np.eye(n, k=-1))
centre = np.array([85.0, 95.0, 60.0, 40.0, 5.0, 15.0])
coupling /= sd**2
truth = nnbm.NNBM(coupling @ centre, coupling, lower=0, upper=100)
marks = nnbm.sample(truth, draws=1000, chains=4, thin=5, seed=0).flat

# %%
# What the model expects, without sampling: means and standard deviations of this doubly truncated normal.

expected = nnbm.infer(truth, "epc")
print(expected)
print("means     ", expected.mean.round(1))
print("drawn     ", marks.mean(axis=0).round(1))
print("sd        ", expected.standard_deviation.round(1))
print("drawn     ", marks.std(axis=0).round(1))

# %%
# And back, from the marks alone: the normal behind them. Told of both ends, the fit finds its peak and its width; told
# of none (that is the mean and the inverse of the covariance matrix) it takes the middle for the peak, and a width that
# the ends have made.

told = nnbm.NonnegativeBoltzmann(upper=100).fit(marks)
untold = nnbm.NonnegativeBoltzmann(lower=-np.inf).fit(marks)
print(told.report_)


def behind(model):
    """Peak and standard deviations of the normal that the ends cut."""
    covariance = np.linalg.inv(model.coupling)
    return covariance @ model.bias, np.sqrt(np.diag(covariance))


blue, orange = "#2f5d8a", "#d9772b"
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.plot(marks[:1500, 0], marks[:1500, 1], ".", ms=3, color=blue, alpha=0.4)
left.plot(*expected.mean[:2], "+", ms=14, mew=2, color="black", label="mean, inferred")
left.plot(*centre[:2], "x", ms=9, mew=2, color=orange, label="peak of the normal")
left.set(title="Two of the marks", xlabel="mark 1", ylabel="mark 2", xlim=(0, 100), ylim=(0, 100), aspect="equal")
left.legend(loc="lower left")
place = np.arange(1, n + 1)
for shift, label, color, model in (
    (-0.2, "truth", "black", truth),
    (0.0, "told of both ends", blue, told.model_),
    (0.2, "told of none", orange, untold.model_),
):
    peak, width = behind(model)
    right.errorbar(place + shift, peak, width, fmt="o", ms=4, color=color, label=label)
right.axhspan(0, 100, color="#8a8f98", alpha=0.15, lw=0)
right.set(title="The normal behind them: peak and sd", xlabel="mark", ylabel="percent")
right.legend(loc="lower left")

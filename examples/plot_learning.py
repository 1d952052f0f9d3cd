"""
From a table to a network with error bars
=========================================

Forty thousand rows of nine nonnegative measurements: which depend on each other directly, how strongly, and how sure
are we? The table is made from a known network, so that the answer can be checked.
"""

import numpy as np
import pandas as pd

import nnbm

truth = nnbm.gallery.random_graph(9, degree=3, strength=0.8, bias=(0.0, 1.0), seed=4)
names = ["ash", "birch", "elm", "fir", "hazel", "larch", "oak", "pine", "yew"]
table = pd.DataFrame(nnbm.sample(truth, draws=10_000, chains=4, thin=3, seed=1).flat, columns=names)
print(table.head(3).round(3))

# %%
# Fit
# ---
# The default estimator is pseudo-likelihood, started by score matching: it is consistent in every regime, comes within
# a few percent of the smallest possible errors, and takes a fraction of a second. It says what it did.

est = nnbm.NonnegativeBoltzmann().fit(table)
print(est.report_)

# %%
# Every parameter has a standard error. Couplings whose 95% interval leaves out 0 are the network; a positive coupling
# means that two variables suppress each other, a negative one that they excite each other.

fig = nnbm.plots.couplings_figure(est)

# %%
# Check
# -----
# How far are the estimates from the truth, in standard errors? About one in twenty should be beyond 1.96.

i, j = est.edges_
pulls = (est.coupling_[i, j] - truth.coupling.toarray()[i, j]) / est.standard_errors_.couplings
print(f"{np.mean(np.abs(pulls) > 1.96):.0%} of {pulls.size} couplings are beyond 1.96 standard errors")

found = np.abs(est.coupling_[i, j]) > 4 * est.standard_errors_.couplings
true = truth.coupling.toarray()[i, j] != 0
print(f"{np.sum(found & true)} of {true.sum()} true couplings are clear, {np.sum(found & ~true)} false ones")

# %%
# Use
# ---
# The learned model is a model like any other: it can be sampled and inferred. The estimator also tells what it expects
# of each variable given the others in its row, and which rows are unusual.

print(nnbm.infer(est.model_))
expected = est.set_output(transform="pandas").transform(table.head(3))
print(expected.round(3))
strange = table.head(1).assign(oak=6.0)
print(f"log-likelihood of a usual row {est.score_samples(table.head(1))[0]:.1f}, with oak at 6 instead "
      f"{est.score_samples(strange)[0]:.1f}")  # fmt: skip

# %%
# Only moments
# ------------
# Where only published means and covariances are at hand, the paper's method takes them as they are. It is biased where
# couplings are strong, and it has no standard errors.

moments = nnbm.NonnegativeBoltzmann().fit_moments(table.mean(), table.cov(), rows=len(table))
print(moments.report_)
print(f"largest difference of a coupling: {np.abs(moments.coupling_ - est.coupling_).max():.3f}")

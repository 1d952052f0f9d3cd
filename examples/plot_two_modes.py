"""
Two modes, and how R-hat tells
==============================

Two variables that suppress each other: when one is large the other is near zero. The density has two modes, which
no positive definite coupling could give.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np

import nnbm

model = nnbm.gallery.two_modes(competition=3.0, bias=(3.0, 3.0))
s = nnbm.sample(model, draws=5000, chains=4, method="gibbs", thin=5, seed=0)
print(model.copositivity.certificate)

x = np.linspace(0, 6, 200)
grid = np.stack(np.meshgrid(x, x), axis=-1)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
left.plot(*s.flat[::4].T, ".", ms=1.5, alpha=0.25, color="#2f5d8a")
left.contour(x, x, np.exp(-model.energy(grid)), levels=6, colors="#d9772b")
left.set(title="Draws and density", xlabel="$x_0$", ylabel="$x_1$")
left.set(xlim=(0, 6), ylim=(0, 6))
right.plot(s.draws[0, :400, 0], lw=0.8, label="$x_0$")
right.plot(s.draws[0, :400, 1], lw=0.8, label="$x_1$")
right.set(title="One chain takes turns", xlabel="draw")
right.legend()

# %%
# Deeper modes trap each chain of Gibbs sampling where it started. Chains start apart from each other, so they disagree,
# and the result comes with a warning that names the variables:

deep = nnbm.gallery.two_modes(competition=3.0, bias=(15.0, 15.0))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    stuck = nnbm.sample(deep, draws=1000, chains=4, method="gibbs", seed=0)
print(textwrap.fill(str(caught[0].message), 80))
print("x_0 at the end of each chain:", np.round(stuck.draws[:, -1, 0], 2))

# %%
# Left to itself, `sample` finds out, and takes parallel tempering: a ladder between independent draws in each mode and
# the model. The modes then have their weights; here, by symmetry, one half each.

free = nnbm.sample(deep, draws=1000, chains=4, seed=0)
print(textwrap.fill(free.detail, 80))
print(f"x_0 wins in {(free.draws[:, :, 0] > free.draws[:, :, 1]).mean():.1%} of the draws")
print("smallest ESS of x, x² and the slowest combination:", round(free.least_ess().value))

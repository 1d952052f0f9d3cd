"""
The bump moves: a film, and how chains mix
==========================================

On a ring of neurons with strong tuning every moment shows a bump, and no angle is special: it wanders around the ring.
The orange hand is the population vector; from frame to frame Gibbs sampling updates every neuron fifteen times.
"""

import dataclasses
import textwrap

import nnbm

model = nnbm.gallery.orientation_tuning(36, beta=10.0, epsilon=4.0)
s = nnbm.sample(model, draws=40_000, chains=4, method="gibbs", thin=5, seed=0)
third = dataclasses.replace(s, draws=s.draws[:, ::3], thin=15)
film = nnbm.plots.bump_film(third, frames=72, interval=100)

# %%
# How slowly the bump wanders is what limits the sampler. A neuron is active while the bump is near, so its activity
# remembers for hundreds of sweeps where that was; below, every tenth draw. After 200,000 sweeps all chains have been
# everywhere: their ranks are level, and R-hat is below 1.01.

print(s)
tenth = dataclasses.replace(s, draws=s.draws[:, ::10], thin=50)
figure = nnbm.plots.chains_figure(tenth, variables=[0, 18])

# %%
# What does not turn with the bump mixes at once: the total activity, as a variable of its own.

total = tenth.draws.sum(axis=2, keepdims=True)
activity = dataclasses.replace(tenth, draws=total, names=("total activity",))
figure = nnbm.plots.chains_figure(activity)

# %%
# Left to itself, `sample` finds that Gibbs creeps and takes trajectories of fields, which turn the bump as a whole.

free = nnbm.sample(model, draws=4000, chains=4, seed=0)
print(textwrap.fill(free.detail, 80))
figure = nnbm.plots.chains_figure(free, variables=[0, 18])

"""
The bump moves: a film, and how chains mix
==========================================

On a ring of neurons with strong tuning every moment shows a bump, and no angle is special: from sweep to sweep the
bump wanders around the ring. The orange hand is the population vector.
"""

import dataclasses

import nnbm

model = nnbm.gallery.orientation_tuning(36, beta=10.0, epsilon=3.0)
s = nnbm.sample(model, draws=4000, chains=4, thin=20, burn_in=20_000, seed=0)
film = nnbm.plots.bump_film(s, frames=50, interval=100)

# %%
# How slowly it wanders is what limits the sampler. A neuron's activity is large while the bump is at its angle, so its
# trace has long plateaus, and its autocorrelation falls slowly. Chains in different places show it: ranks that are not
# level, and R-hat.

print(s)
figure = nnbm.plots.chains_figure(s, variables=[0, 18])

# %%
# What does not turn with the bump mixes at once. The total activity, for instance, as a variable of its own:

total = dataclasses.replace(s, draws=s.draws.sum(axis=2, keepdims=True), names=("total activity",))
figure = nnbm.plots.chains_figure(total)

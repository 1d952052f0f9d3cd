"""
Least squares under x >= 0, with error bars
===========================================

Unmixing: a measured spectrum is a sum of known ones with nonnegative amounts and noise. Nonnegative least squares
gives one answer; the posterior is a Nonnegative Boltzmann machine, and gives the answer's uncertainty.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import nnls

import nnbm

rng = np.random.default_rng(1)
channel = np.linspace(0, 1, 80)
centres = np.linspace(0.1, 0.9, 12)
spectra = np.exp(-0.5 * ((channel[:, None] - centres) / 0.06) ** 2)
truth = np.where(rng.uniform(size=12) < 0.5, 0.0, rng.exponential(size=12))
sigma = 0.15
measured = spectra @ truth + sigma * rng.normal(size=80)

model = nnbm.gallery.from_least_squares(spectra, measured, sigma)
s = nnbm.sample(model, draws=5000, chains=4, thin=5, seed=0)
low, high = np.quantile(s.flat, (0.05, 0.95), axis=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.plot(channel, measured, ".", color="#8a8f98", label="measured")
left.plot(channel, spectra @ s.mean, color="#2f5d8a", label="posterior mean")
left.set(title="The spectrum", xlabel="channel")
left.legend()
place = np.arange(12)
right.vlines(place, low, high, color="#2f5d8a", lw=5, alpha=0.3, label="middle 90%")
right.plot(place, s.mean, "o", color="#2f5d8a", label="posterior mean")
right.plot(place, nnls(spectra, measured)[0], "x", color="#d9772b", label="scipy nnls")
right.plot(place, truth, "_", ms=14, color="black", label="truth")
right.set(title="The amounts", xlabel="component", ylim=(0, None))
right.legend()

"""Parameters from data: pure functions, one idea a file; `nnbm.NonnegativeBoltzmann` is their scikit-learn shell."""

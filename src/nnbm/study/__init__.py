"""The paper's tables, and any grid of (model, estimator, seed): plain tasks, resumable; `nnbm reproduce` runs it."""

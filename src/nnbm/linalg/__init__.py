"""Factor, solve, invert: knows matrices, not models."""

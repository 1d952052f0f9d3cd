"""Exact draws of one variable: q(x; l, r) ∝ exp(l x - r x²/2) on its own domain, in every tail."""

from nnbm.draw.half_line import excess, truncated_normal

__all__ = ["excess", "truncated_normal"]

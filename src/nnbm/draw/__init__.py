"""Exact draws of one variable: q(x; l, r) ∝ exp(l x - r x²/2) on its own domain, in every tail."""

from nnbm.draw.box import box_draw, truncated_normal
from nnbm.draw.half_line import excess, normal
from nnbm.draw.interval import interval_draw
from nnbm.draw.moves import DRAW, FLIP, SHIFT, moved, moved_excess

__all__ = [
    "DRAW",
    "FLIP",
    "SHIFT",
    "box_draw",
    "excess",
    "interval_draw",
    "moved",
    "moved_excess",
    "normal",
    "truncated_normal",
]

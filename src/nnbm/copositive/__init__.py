"""Whether exp(b'x - x'Wx / 2) has a finite integral for every b, over x >= 0 (`orthant`) or other ends (`box`)."""

from nnbm.copositive.box import examine_in_box
from nnbm.copositive.orthant import examine
from nnbm.copositive.verdict import Copositivity, Verdict

__all__ = ["Copositivity", "Verdict", "examine", "examine_in_box"]

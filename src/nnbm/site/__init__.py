"""One variable: q(x; l, r) ∝ exp(l x - r x²/2) on its own domain (EQ 2).

`Site` is what a domain must know, `SiteMoments` what follows from that; `HalfLine` is x >= 0.
"""

from nnbm.site.half_line import HALF_LINE, HalfLine
from nnbm.site.half_line_inverse import natural_from_scaled
from nnbm.site.half_line_statistics import statistics
from nnbm.site.moments import Site, SiteDerivatives, SiteMoments

__all__ = [
    "HALF_LINE",
    "HalfLine",
    "Site",
    "SiteDerivatives",
    "SiteMoments",
    "natural_from_scaled",
    "statistics",
]

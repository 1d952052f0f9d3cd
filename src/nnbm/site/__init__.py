"""One variable: q(x; l, r) ∝ exp(l x - r x²/2) on its own domain (EQ 2).

`Site` is what a domain must know, `SiteMoments` what follows from that; `HalfLine` is x >= 0, `Box` any
interval a variable.
"""

from nnbm.site.box import Box, site_between
from nnbm.site.half_line import HALF_LINE, HalfLine
from nnbm.site.half_line_inverse import natural_from_scaled
from nnbm.site.half_line_statistics import statistics
from nnbm.site.interval_statistics import interval_statistics
from nnbm.site.moments import Site, SiteDerivatives, SiteMoments

__all__ = [
    "HALF_LINE",
    "Box",
    "HalfLine",
    "Site",
    "SiteDerivatives",
    "SiteMoments",
    "interval_statistics",
    "natural_from_scaled",
    "site_between",
    "statistics",
]

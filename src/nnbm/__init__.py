"""Nonnegative Boltzmann machines: rectified Gaussians, truncated multivariate normals, on x >= 0.

The public names stand in `__init__.pyi` and are loaded on first use, so that the import and `nnbm --help` are quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Tests compile their kernels afresh: numba's cache does not notice an edited callee in another module."""

import os
import shutil
import tempfile

if "NNBM_TEST_CACHE" not in os.environ:  # the controller; pytest-xdist's workers inherit its folder
    os.environ["NNBM_TEST_CACHE"] = tempfile.mkdtemp(prefix="nnbm-numba-")
    _MINE = os.environ["NNBM_TEST_CACHE"]
else:
    _MINE = None
os.environ["NUMBA_CACHE_DIR"] = os.environ["NNBM_TEST_CACHE"]
os.environ.setdefault("MPLBACKEND", "Agg")
# small matrices only: BLAS threads of several test workers would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_unconfigure() -> None:
    if _MINE is not None:
        shutil.rmtree(_MINE, ignore_errors=True)


from hypothesis import settings  # noqa: E402 (the cache folder has to be set before anything imports numba)

# the first example compiles kernels, so a deadline per example would measure the compiler
settings.register_profile("nnbm", deadline=None, print_blob=True)
settings.load_profile("nnbm")

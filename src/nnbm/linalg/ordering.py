"""In which order to eliminate: nested dissection, by METIS where pymetis is installed, else by our own."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from nnbm.arrays import IntArray
from nnbm.linalg.dissection import dissect
from nnbm.linalg.graph import Graph

__all__ = ["elimination_order"]


def elimination_order(graph: Graph) -> IntArray:
    """(n,) the vertices in the order of a nested dissection: separators after what they separate."""
    if graph.n > 2 and graph.neighbours.size and find_spec("pymetis") is not None:
        return _metis(graph)
    return dissect(graph)


def _metis(graph: Graph) -> IntArray:
    """The order by METIS (Karypis & Kumar 1998)."""
    import pymetis

    adjacency = pymetis.CSRAdjacency(graph.starts.astype(np.int32), graph.neighbours)
    return np.asarray(pymetis.nested_dissection(adjacency)[0], dtype=np.int64)

"""Files: written atomically, read with suspicion, never with pickle."""

from __future__ import annotations

from nnc_core.base.atomic import open_atomically, write_atomically
from nnc_core.base.missing import MissingFileError, MissingPackageError, NotAFileError
from nnc_core.io.checkpoint import load_arrays, save_arrays
from nnc_core.io.graph_file import load_graph, save_graph

__all__ = [
    "MissingFileError",
    "MissingPackageError",
    "NotAFileError",
    "load_arrays",
    "load_graph",
    "open_atomically",
    "save_arrays",
    "save_graph",
    "write_atomically",
]

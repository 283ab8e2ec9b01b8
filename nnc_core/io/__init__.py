"""Floor 17: files: written atomically, read with suspicion, never with pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.atomic import open_atomically, write_atomically
from nnc_core.base.missing import MissingFileError, MissingPackageError, NotAFileError
from nnc_core.base.unknown_names import answers
from nnc_core.io.checkpoint import load_arrays, save_arrays
from nnc_core.io.graph_file import load_graph, save_graph
from nnc_core.io.mapped_arrays import map_arrays
from nnc_core.io.mapped_weights import MappedWeights, map_weights
from nnc_core.io.module_file import load_module, load_weights, save_module, save_weights
from nnc_core.io.onnx import load_onnx
from nnc_core.io.onnx.writing import save_onnx, to_onnx
from nnc_core.io.training_file import TrainingFile
from nnc_core.io.training_state import load_training_state, save_training_state

_ADVICE = {
    "load": "io.load_module, io.load_weights, io.load_graph or io.load_arrays",
    "save": "io.save_module, io.save_weights, io.save_graph or io.save_arrays",
    "savez": "io.save_arrays(path, arrays)", "savez_compressed": "io.save_arrays(path, arrays)",
    "load_file": "io.load_arrays(path)", "save_file": "io.save_arrays(path, arrays)",
    "export_onnx": "io.save_onnx", "import_onnx": "io.load_onnx",
}  # fmt: skip
if not TYPE_CHECKING:
    __getattr__ = answers(__name__, _ADVICE)

__all__ = [
    "MappedWeights",
    "MissingFileError",
    "MissingPackageError",
    "NotAFileError",
    "TrainingFile",
    "load_arrays",
    "load_graph",
    "load_module",
    "load_onnx",
    "load_training_state",
    "load_weights",
    "map_arrays",
    "map_weights",
    "open_atomically",
    "save_arrays",
    "save_graph",
    "save_module",
    "save_onnx",
    "save_training_state",
    "save_weights",
    "to_onnx",
    "write_atomically",
]

"""ONNX models, read as modules and written from graphs.  Needs the package onnx: `pip install nnc-core[onnx]`."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nnc_core.base.missing import require
from nnc_core.values.arguments import located

if TYPE_CHECKING:
    from nnc_core.io.onnx.reading.module import OnnxModule


@located
def load_onnx(path: str | os.PathLike[str] | bytes, *, device: Any = None) -> OnnxModule:
    """Read an ONNX model, from a file or its bytes, as a module whose parameters are the model's initialisers.

    Calling it runs the model's nodes as public functions, so that it can be differentiated, compiled (`hybridize`,
    `nnc.jit`), trained and moved like any other module; `graph()` gives its SymbolicGraph.  Initialisers of
    floating-point numbers with axes are parameters under their own names; statistics of batch normalisations and
    integers are buffers; scalars and what says sizes are constants.  Large files are mapped, not copied.

    Raises FileFormatError for a file that is damaged or no valid model, and NotSupportedError that lists every
    operator of the model that nnc does not have.
    """
    return model_reader().read_module(path, device)  # type: ignore[no-any-return]


def model_reader() -> ModuleType:
    """The module that reads models, which needs the package onnx."""
    require("onnx", purpose="reading ONNX models", extra="onnx")
    return importlib.import_module("nnc_core.io.onnx.reading.module")

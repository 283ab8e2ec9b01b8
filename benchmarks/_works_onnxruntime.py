"""Inference in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks._inference import parts_of
from benchmarks._onnx import example, onnx_file, threads

runtime: Any = import_module("onnxruntime")


def make(work: str, variant: str) -> Callable[[], object] | None:
    parts = parts_of(work)
    if parts is None:
        return None
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads()
    with onnx_file(*parts) as path:
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {"x": example(*parts)}
    return lambda: session.run(None, given)[0]

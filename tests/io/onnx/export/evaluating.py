"""ONNX models evaluated by other software: onnx' own evaluator, and ONNX Runtime where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

HAS_RUNTIME = importlib.util.find_spec("onnxruntime") is not None


NO_KERNEL = ("NOT_IMPLEMENTED", "does not support", "is not supported")
"""Words of ONNX Runtime, some of which it says only when it runs."""


class NoKernelError(Exception):
    """ONNX Runtime has no code for an operator, or for a dtype of it."""


def by_reference(model: onnx.ModelProto, given: Mapping[str, Any]) -> list[Any]:
    """The outputs by onnx' evaluator."""
    return list(ReferenceEvaluator(model).run(None, dict(given)))


def by_runtime(model: onnx.ModelProto, given: Mapping[str, Any]) -> list[Any]:
    """The outputs by ONNX Runtime."""
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(given)))
    except Exception as error:
        if any(words in str(error) for words in NO_KERNEL):
            raise NoKernelError(str(error)) from error
        raise


def check(model: onnx.ModelProto) -> None:
    """Fail unless the model is valid, shapes and dtypes included."""
    onnx.checker.check_model(model, full_check=True)

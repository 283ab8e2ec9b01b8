"""Inference in OpenVINO, in float32."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks._inference import parts_of
from benchmarks._onnx import example, onnx_file, threads

openvino: Any = import_module("openvino")


def make(work: str, variant: str) -> Callable[[], object] | None:
    parts = parts_of(work)
    if parts is None:
        return None
    wanted = {"INFERENCE_NUM_THREADS": threads(), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    with onnx_file(*parts) as path:
        request = openvino.Core().compile_model(path, "CPU", wanted).create_infer_request()
    request.set_input_tensor(openvino.Tensor(example(*parts)))

    def step() -> object:
        request.infer()
        return request.get_output_tensor(0).data

    return step

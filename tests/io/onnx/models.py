"""Small ONNX models, written node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Shape = Sequence[Any] | None


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node; names are separated by spaces, and "_" is one that is left out."""
    names = [["" if name == "_" else name for name in side.split()] for side in (inputs, outputs)]
    return helper.make_node(operator, *names, name=f"{operator}_{names[1][0]}", **attributes)


def value(name: str, dtype: Any, shape: Shape) -> onnx.ValueInfoProto:
    """An input or output."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def graph(nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto],
          outputs: Sequence[onnx.ValueInfoProto], initialisers: Mapping[str, Any] = {}) -> onnx.GraphProto:
    arrays = [numpy_helper.from_array(np.asarray(x), name) for name, x in initialisers.items()]
    return helper.make_graph(nodes, "net", inputs, outputs, arrays)


def model(nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto],
          outputs: Sequence[onnx.ValueInfoProto], initialisers: Mapping[str, Any] = {}, opset: int = 21,
          ) -> onnx.ModelProto:
    return helper.make_model(graph(nodes, inputs, outputs, initialisers),
                             opset_imports=[helper.make_opsetid("", opset)])


def classifier(seed: int = 0) -> onnx.ModelProto:
    """A small network as exporters write it: a convolution, statistics, a shape that follows the batch, two layers."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.3).astype(np.float32)

    return model(
        [node("Conv", "x conv.weight conv.bias", "a", pads=[1, 1, 1, 1]),
         node("BatchNormalization", "a norm.weight norm.bias norm.mean norm.var", "b"),
         node("Relu", "b", "c"),
         node("MaxPool", "c", "d", kernel_shape=[2, 2], strides=[2, 2]),
         node("Shape", "d", "shape"),
         node("Gather", "shape zero", "batch"),
         node("Unsqueeze", "batch axis", "batches"),
         node("Concat", "batches rest", "flat", axis=0),
         node("Reshape", "d flat", "e"),
         node("Gemm", "e fc.weight fc.bias", "logits", transB=1)],
        [value("x", np.float32, ["batch", 1, 8, 8])], [value("logits", np.float32, ["batch", 3])],
        {"conv.weight": drawn(4, 1, 3, 3), "conv.bias": drawn(4), "norm.weight": drawn(4) + 1, "norm.bias": drawn(4),
         "norm.mean": drawn(4), "norm.var": drawn(4) ** 2 + 0.5, "fc.weight": drawn(3, 64), "fc.bias": drawn(3),
         "zero": np.int64(0), "axis": np.int64([0]), "rest": np.int64([-1])})

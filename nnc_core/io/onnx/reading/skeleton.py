"""A model without its weights, for files of modules, in which weights are state."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import onnx

from nnc_core.base.errors import FileFormatError
from nnc_core.io.onnx.reading.attributes import array_of
from nnc_core.io.onnx.reading.external import is_external
from nnc_core.io.onnx.reading.lanes import Host


def without_weights(model: onnx.ModelProto, folder: str, held: Container[str]) -> Host:
    """The bytes of the message without the arrays of these names; those that stay lie in it."""
    try:
        rest = _without(model, "graph")
        rest.graph.CopyFrom(_without(model.graph, "node", "initializer", "sparse_initializer"))
    except UnicodeDecodeError as error:
        raise FileFormatError(f"a text of the model is no UTF-8: {error}") from error
    graph = rest.graph
    graph.node.extend(n for n in model.graph.node if not (n.op_type == "Constant" and n.output[0] in held))
    graph.initializer.extend(_inside(x, folder) for x in model.graph.initializer if x.name not in held)
    graph.sparse_initializer.extend(x for x in model.graph.sparse_initializer if x.values.name not in held)
    return np.frombuffer(rest.SerializeToString(deterministic=True), np.uint8)


def _without(message: Any, *names: str) -> Any:
    """A copy of a message without some of its fields, which may be too large to be copied first."""
    made = type(message)()
    for field, value in message.ListFields():
        if field.name in names:
            continue
        if hasattr(value, "extend"):
            getattr(made, field.name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(made, field.name).CopyFrom(value)
        else:
            setattr(made, field.name, value)
    return made


def _inside(tensor: onnx.TensorProto, folder: str) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(array_of(tensor, folder), tensor.name) if is_external(tensor) else tensor

"""A model without its weights, for files of modules, in which weights are state; and the model again, with weights."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from nnc_core.base.errors import FileFormatError
from nnc_core.io.onnx.reading.attributes import array_of
from nnc_core.io.onnx.reading.constant_nodes import constants_of, is_constant
from nnc_core.io.onnx.reading.external import is_external
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.types import number_of

Fill = Callable[[onnx.TensorProto, bytes], None]
"""Puts the elements of a tensor into its message, or says there where they are."""
ELEMENTS = ("raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data",
            "external_data", "data_location")
"""Fields of a tensor that hold its elements, or say where they are."""


def without_weights(model: onnx.ModelProto, folder: str, held: Container[str]) -> Host:
    """The bytes of the message in which tensors of these names are empty; the others lie in it, wherever they lay."""
    try:
        rest = _without(model, "graph")
        rest.graph.CopyFrom(_without(model.graph, "node", "initializer", "sparse_initializer"))
    except UnicodeDecodeError as error:
        raise FileFormatError(f"a text of the model is no UTF-8: {error}") from error
    graph = rest.graph
    graph.node.extend(_emptied_node(n) if is_constant(n) and n.output[0] in held else n for n in model.graph.node)
    graph.initializer.extend(_emptied(x) if x.name in held else _inside(x, folder) for x in model.graph.initializer)
    for sparse in model.graph.sparse_initializer:
        if sparse.values.name in held:  # a weight has no zeros that stay
            graph.initializer.add(name=sparse.values.name, dims=sparse.dims, data_type=sparse.values.data_type)
        else:
            graph.sparse_initializer.append(sparse)
    return np.frombuffer(rest.SerializeToString(deterministic=True), np.uint8)


def declares(model: onnx.ModelProto, weights: Mapping[str, Host]) -> bool:
    """Tell whether weights are of the dtypes and shapes that the model says of its tensors of these names."""
    return all((number_of(weights[name].dtype), weights[name].shape) == (tensor.data_type, tuple(tensor.dims))
               for name, tensor in _tensors(model.graph) if name in weights)


def fill_weights(model: onnx.ModelProto, weights: Mapping[str, Host], fill: Fill) -> None:
    """Fill the tensors of these names, which are empty in the model; the elements of all others go by `fill` too."""
    for name, tensor in _tensors(model.graph):
        if name in weights:
            fill(tensor, numpy_helper.from_array(weights[name]).raw_data)
        elif tensor.raw_data:
            data = tensor.raw_data
            tensor.ClearField("raw_data")
            fill(tensor, data)


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The initialisers, and the arrays of nodes that stand for such, by name."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    yield from constants_of(graph.node)


def _emptied(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """A tensor with all that it says of itself, without its elements."""
    made: onnx.TensorProto = _without(tensor, *ELEMENTS)
    return made


def _emptied_node(node: onnx.NodeProto) -> onnx.NodeProto:
    made: onnx.NodeProto = _without(node, "attribute")
    attribute = made.attribute.add()
    attribute.CopyFrom(_without(node.attribute[0], "t"))
    attribute.t.CopyFrom(_emptied(node.attribute[0].t))
    return made


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
    return numpy_helper.from_array(array_of(tensor, folder), tensor.name) if is_external(tensor) else tensor

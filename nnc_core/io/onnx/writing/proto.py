"""Models as protocol buffers: the one place that needs the onnx package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from nnc_core.base.missing import require
from nnc_core.io.onnx.writing.dtypes import ELEMENT_TYPES
from nnc_core.io.onnx.writing.records import (
    Array,
    CallAttribute,
    WrittenFunction,
    WrittenGraph,
    WrittenModel,
    WrittenNode,
)
from nnc_core.type import DimLike, TensorSpec

IR_VERSIONS = {21: 10, 23: 11}
"""Of each opset the version of the format that came with it."""
Text = Callable[[DimLike], "str | int"]
Fill = Callable[[Any, bytes], None]
"""Puts the elements of an array into a TensorProto, or says there where they are."""


def package() -> Any:
    """The package onnx; MissingPackageError says how to install it."""
    return require("onnx", purpose="writing ONNX", extra="onnx")


def inline(tensor: Any, data: bytes) -> None:
    """Put the elements into the tensor itself."""
    tensor.raw_data = data


def _little_endian(array: Array) -> bytes:
    """Elements as files have them."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def model_proto(model: WrittenModel, fill: Fill = inline) -> Any:
    """The ModelProto of a model."""
    onnx = package()
    made = onnx.ModelProto(ir_version=IR_VERSIONS[model.opset], producer_name="nnc")
    made.opset_import.add(domain="", version=model.opset)
    for key, value in model.metadata.items():
        made.metadata_props.add(key=key, value=value)
    _fill_graph(made.graph, model.graph, model.text_of)
    for domain in dict.fromkeys(function.name.partition(".")[0] for function in model.functions):
        made.opset_import.add(domain=domain, version=1)
    for function in model.functions:
        _fill_function(made.functions.add(), function, model)
    for name, array in model.arrays.items():
        _fill_tensor(made.graph.initializer.add(name=name), array, fill)
    return made


def _fill_function(proto: Any, function: WrittenFunction, model: WrittenModel) -> None:
    proto.domain, _, proto.name = function.name.partition(".")
    proto.input.extend(function.inputs)
    proto.output.extend(function.outputs)
    proto.attribute.extend(function.attributes)
    proto.opset_import.add(domain="", version=model.opset)
    for node in function.nodes:
        _fill_node(proto.node.add(), node, model.text_of)


def _fill_graph(proto: Any, graph: WrittenGraph, text: Text) -> None:
    proto.name = graph.name or "graph"
    for name, spec in graph.inputs:
        _fill_value(proto.input.add(name=name), spec, text)
    for node in graph.nodes:
        _fill_node(proto.node.add(), node, text)
    for name, spec in graph.outputs:
        _fill_value(proto.output.add(name=name), spec, text)


def _fill_value(proto: Any, spec: TensorSpec, text: Text) -> None:
    kind = proto.type.tensor_type
    kind.elem_type = ELEMENT_TYPES[spec.dtype]
    kind.shape.SetInParent()
    for size in map(text, spec.shape):
        if isinstance(size, int):
            kind.shape.dim.add().dim_value = size
        else:
            kind.shape.dim.add().dim_param = size


def _fill_node(proto: Any, node: WrittenNode, text: Text) -> None:
    proto.domain, _, proto.op_type = node.operator.rpartition(".")
    proto.name = node.outputs[0]
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    for name, value in node.attributes.items():
        _fill_attribute(proto.attribute.add(name=name), value, text)


def _fill_attribute(proto: Any, value: Any, text: Text) -> None:
    types = package().AttributeProto
    if isinstance(value, WrittenGraph):
        proto.type = types.GRAPH
        _fill_graph(proto.g, value, text)
    elif isinstance(value, CallAttribute):
        proto.type, proto.ref_attr_name = types.FLOAT, value.name
    elif isinstance(value, (int, np.integer)):
        proto.type, proto.i = types.INT, int(value)
    elif isinstance(value, float):
        proto.type, proto.f = types.FLOAT, value
    elif isinstance(value, np.ndarray):
        proto.type = types.TENSOR
        _fill_tensor(proto.t, value, inline)
    elif isinstance(value, str):
        proto.type, proto.s = types.STRING, value.encode()
    else:
        _fill_list(proto, list(value), types)


def _fill_list(proto: Any, values: Iterable[Any], types: Any) -> None:
    values = list(values)
    if any([isinstance(v, str) for v in values]):
        proto.type = types.STRINGS
        proto.strings.extend([v.encode() for v in values])
    else:
        proto.type = types.INTS
        proto.ints.extend([int(v) for v in values])


def _fill_tensor(proto: Any, array: Array, fill: Fill) -> None:
    proto.data_type = ELEMENT_TYPES[array.dtype]
    proto.dims.extend(array.shape)
    fill(proto, _little_endian(array))

"""Operators that are bodies of others: functions of a model, and those that ONNX defines by functions itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from nnc_core.base.errors import NotSupportedError
from nnc_core.io.onnx.reading.graph import OnnxGraph
from nnc_core.io.onnx.reading.lanes import Lane, element_of
from nnc_core.io.onnx.reading.registry import OnnxOperator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.io.onnx.reading.types import number_of

Attributes = Mapping[str, onnx.AttributeProto]
MakeBody = Callable[[onnx.FunctionProto, Attributes], OnnxGraph]


def _call(*inputs: Lane, body: OnnxGraph, call: NodeCall) -> tuple[Lane, ...]:
    return tuple(call.body(body, *inputs))


CALL = OnnxOperator("function", 1, _call, (), "Any", 0, {"body": None}, True, None)
"""A call of a function of the model."""


def composed(schema: Any, version: int, make_body: MakeBody) -> OnnxOperator:
    """The operator of one node whose schema has a function that depends on the types of what it is called with.

    The schema is an `onnx.defs.OpSchema`, whose stubs lack what is asked of it here.
    """
    bodies: dict[Any, OnnxGraph] = {}

    def function(*inputs: Lane, attributes: Attributes, call: NodeCall) -> tuple[Lane, ...]:
        types = tuple(_type_of(x) for x in inputs)
        key = tuple(None if t is None else t.SerializeToString(deterministic=True) for t in types)
        if key not in bodies:
            bodies[key] = make_body(_function(schema, version, call, types), defaults(schema) | dict(attributes))
            call.run.constants.add(bodies[key])
        return tuple(call.body(bodies[key], *inputs))

    return OnnxOperator(schema.name, schema.since_version, function, (), "Any", schema.min_input,
                        {"attributes": None}, True, None)


def is_plain(schema: Any) -> bool:
    """True if the function is the same whatever it is called with."""
    return bool(schema.has_function and not schema.has_context_dependent_function)


def plain_function(schema: Any, version: int) -> onnx.FunctionProto:
    """The function of a schema for which `is_plain` holds."""
    usable = [v for v in schema.function_opset_versions if v <= version]
    return _message(schema, schema.get_function_with_opset_version(max(usable, default=schema.since_version)))


def _function(schema: Any, version: int, call: NodeCall,
              types: tuple[onnx.TypeProto | None, ...]) -> onnx.FunctionProto:
    """The function's message for inputs of these types."""
    node = _node(schema, call)
    given = [(onnx.TypeProto() if t is None else t).SerializeToString() for t in types]
    usable = [v for v in schema.context_dependent_function_opset_versions if v <= version]
    data = schema.get_context_dependent_function_with_opset_version(max(usable, default=version),
                                                                    node.SerializeToString(), given)
    return _message(schema, data)


def _message(schema: Any, data: bytes | None) -> onnx.FunctionProto:
    if not data:
        raise NotSupportedError(f"{schema.name} has no definition by other operators for these inputs")
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function


def _node(schema: Any, call: NodeCall) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type=schema.name, domain=schema.domain, input=call.step.inputs, output=call.step.outputs)
    node.attribute.extend(call.step.attributes["attributes"].values())
    return node


def defaults(schema: Any) -> dict[str, onnx.AttributeProto]:
    """The attributes that a node of the schema has where it does not say them."""
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}


def _type_of(value: Lane) -> onnx.TypeProto | None:
    """The type of a value, without its shape; None for what is absent."""
    if value is None:
        return None
    if isinstance(value, list):
        element = _type_of(value[0]) if value else None
        return onnx.helper.make_sequence_type_proto(element or onnx.TypeProto())
    return onnx.helper.make_tensor_type_proto(number_of(element_of(value)), None)

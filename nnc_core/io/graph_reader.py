"""A graph made of what a file describes; nothing in the file is trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import DTypeError, FileFormatError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.checkpoint import Array
from nnc_core.io.graph_attributes import decode
from nnc_core.io.graph_writer import operator_called
from nnc_core.operator import CONSTANT, PLACEHOLDER, Operator
from nnc_core.symbol import Body, Literal, Node, Table, Uid
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec

RENAMED = {
    "conv2d": "conv", "conv2d_input_gradient": "conv_input_gradient", "conv2d_kernel_gradient": "conv_kernel_gradient",
    "max_pool2d": "max_pool", "max_pool2d_index": "max_pool_index", "pool2d_take": "pool_take",
    "pool2d_put": "pool_put", "sum_pool2d": "sum_pool", "sum_pool2d_gradient": "sum_pool_gradient",
    "avg_pool2d": "avg_pool",
}  # fmt: skip
"""Operators whose names were others when a file was written; their attributes are the same."""


class Declared(NamedTuple):
    """An operator, and the attributes that nodes of it have in the file."""

    op: Op
    attributes: tuple[str, ...]

    def complete(self, given: Attributes) -> Attributes:
        """In the operator's order; those that it has gained since the file was written have their defaults."""
        found = dict(zip(self.attributes, given, strict=True))
        return tuple([found.get(name, self.op.defaults.get(name)) for name in self.op.attributes])


class Reader:
    def __init__(self, path: str | os.PathLike[str], operator: Operator, arrays: Mapping[str, Array],
                 description: Mapping[str, Any]) -> None:
        self.path, self.arrays, self.description = path, arrays, description
        self.symbol = operator.symbol
        self.operators = [self._operator(name, attributes) for name, attributes in description["operators"]]
        self.bodies: list[Body] = []

    def graph(self) -> SymbolicGraph:
        description = self.description
        for body in description.get("bodies", ()):
            self.bodies.append(self._body(body))
        nodes = self._nodes(description["nodes"])
        inputs = {_text(name): nodes[_checked(at, len(nodes))] for name, at in description["inputs"]}
        outputs = {_text(name): self._output(name, nodes[_checked(at, len(nodes))], decode(spec))
                   for name, at, spec in description["outputs"]}
        if len(inputs) < len(description["inputs"]) or len(outputs) < len(description["outputs"]):
            raise FileFormatError("a name is there twice")
        pairs = tuple([(_text(a), _text(b)) for a, b in description["iopairs"]])
        return SymbolicGraph(inputs, outputs, pairs, _text(description["name"]))

    def _operator(self, name: str, attributes: Sequence[str]) -> Declared:
        op = operator_called(RENAMED.get(name, name))
        if op is None:
            raise refused(self.path, f"this nnc has no operator {name!r}", "use the version of nnc that wrote it")
        fixed = op in (PLACEHOLDER, CONSTANT) and attributes != list(op.attributes)
        if fixed or len(set(attributes)) < len(attributes) or not set(attributes) <= set(op.attributes):
            raise refused(self.path, f"operator {name!r} has attributes {attributes} there and "
                                     f"{list(op.attributes)} here", "use the version of nnc that wrote it")
        for missing in op.attributes:
            if missing not in attributes and missing not in op.defaults:
                raise refused(self.path, f"operator {name!r} has no attribute {missing!r} there, and there is no "
                                         "default for it", "use the version of nnc that wrote it")
        return Declared(op, tuple(attributes))

    def _body(self, data: Mapping[str, Any]) -> Body:
        nodes = self._nodes(data["nodes"])
        inputs, outputs = (tuple([nodes[_checked(at, len(nodes))] for at in data[k]]) for k in ("inputs", "outputs"))
        body = Body(inputs, outputs)
        if len(set(inputs)) < len(inputs) or any(x.op is not PLACEHOLDER for x in inputs):
            raise FileFormatError("the inputs of a body are not its placeholders")
        if any(node.op is PLACEHOLDER and node not in set(inputs) for node in body.nodes):
            raise FileFormatError("a body reads a placeholder that is none of its inputs")
        return body

    def _nodes(self, described: Sequence[Any]) -> list[Node]:
        """Nodes in a table of their own: of the graph, or of one body."""
        table, nodes = Table(), list[Node]()
        for i, (operator, inputs, attributes, line) in enumerate(described):
            table.line = None if line is None else str(self.description["lines"][line])
            declared = self.operators[_checked(operator, len(self.operators))]
            nodes.append(self._node(table, declared, tuple([nodes[_checked(x, i)] for x in inputs]), attributes))
        return nodes

    def _node(self, table: Table, declared: Declared, inputs: tuple[Node, ...], attributes: list[Any]) -> Node:
        op = declared.op
        with blaming(self.path, f"operator {op.name!r} does not take what the file gives it"):
            if not _fits(declared, len(inputs), len(attributes)):
                raise FileFormatError(f"{len(inputs)} inputs and {len(attributes)} attributes")
            decoded = self._attributes(declared, attributes)
            for value in decoded:
                self._admit(value)
            return self.symbol.node(table, op, inputs, decoded)

    def _attributes(self, declared: Declared, attributes: list[Any]) -> Attributes:
        if declared.op is PLACEHOLDER:
            return (_text(attributes[0]), _spec(attributes[1]), Uid())
        if declared.op is CONSTANT:
            array, spec = self.arrays[attributes[0]], _spec(attributes[1])
            if (array.shape, array.dtype) != (spec.shape, spec.dtype):
                raise FileFormatError(f"the constant is {array.dtype}{list(array.shape)} where {spec} is expected")
            return (Literal(_frozen(array)), spec)
        return declared.complete(tuple([decode(a, self._numbered_body) for a in attributes]))

    def _numbered_body(self, at: Any) -> Body:
        return self.bodies[_checked(at, len(self.bodies))]

    def _admit(self, attribute: Any) -> None:
        if isinstance(attribute, TupleSpec):
            for part in attribute.parts:
                self._admit(part)
            return
        dtype = attribute.dtype if isinstance(attribute, TensorSpec) else attribute
        if isinstance(dtype, np.dtype):
            self.symbol.shape.type.admit(dtype)

    def _output(self, name: str, node: Node, spec: Any) -> Node:
        if node.spec != spec:
            raise refused(self.path, f"output {name!r} was {spec} and is {node.spec} by the rules of this nnc",
                          "use the version of nnc that wrote it")
        return node


def _fits(declared: Declared, inputs: int, attributes: int) -> bool:
    op = declared.op
    wanted = len(declared.attributes) - (op is PLACEHOLDER)  # a new uid is not in the file
    return attributes == wanted and (inputs >= len(op.inputs) - 1 if op.variadic else inputs == len(op.inputs))


def _spec(data: Any) -> TensorSpec:
    spec = decode(data)
    if not isinstance(spec, TensorSpec):
        raise FileFormatError(f"{str(data)[:80]} is no spec")
    return spec


def _checked(at: Any, count: int) -> int:
    if type(at) is not int or not 0 <= at < count:
        raise FileFormatError(f"{str(at)[:80]} is no number below {count}")
    return at


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FileFormatError(f"{str(value)[:80]} is no name")
    return value


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


@contextmanager
def blaming(path: str | os.PathLike[str], reason: str) -> Iterator[None]:
    """Blame the file for whatever goes wrong.  The rules of operators may fail in any way on attributes that no
    program could have given them, so every exception counts, but for a dtype that the device lacks and for memory."""
    try:
        yield
    except FileFormatError as error:
        raise error if error.hint else refused(path, f"{reason}: {error.message}") from error
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, DTypeError) and error.device and error.operator is None:  # from _admit
            raise
        raise refused(path, f"{reason}: {type(error).__name__}: {error}") from error


def refused(path: str | os.PathLike[str], reason: str, hint: str | None = None,
            what: str = "a graph") -> FileFormatError:
    return FileFormatError(f"{os.fspath(path)!r} cannot be read as {what}: {reason}",
                           hint=hint or "restore the file from a copy or save it again")

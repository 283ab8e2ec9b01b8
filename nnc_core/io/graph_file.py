"""Symbolic graphs on disk: one safetensors file, whose metadata describe the nodes and whose arrays are the constants.

The description is JSON under the key `nnc.graph`: the operators with the names of their attributes, then the nodes,
inputs first, each as [operator, numbers of its inputs, attributes, number of its source line].  Only the leaves' and
the outputs' specs are stored: all are inferred again, and the outputs' compared.  The file's checksum covers it all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.errors import DTypeError, Error, FileFormatError, NotSupportedError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.checkpoint import Array, load_arrays, save_arrays
from nnc_core.io.graph_attributes import decode, encode
from nnc_core.operator import CONSTANT, OPERATORS, PLACEHOLDER, Operator
from nnc_core.symbol import Literal, Node, Table, Uid, postorder, show_line
from nnc_core.type import Attributes, Op, TensorSpec

_KEY, VERSION = "nnc.graph", 1
_LARGEST = 90_000_000  # bytes of description; safetensors readers refuse headers beyond 100 MB
_LEAVES = {op.name: op for op in (PLACEHOLDER, CONSTANT)}

Download: TypeAlias = Callable[[Literal], Array]


def save_graph(graph: SymbolicGraph, path: str | os.PathLike[str], *, download: Download | None = None) -> None:
    """Write a graph with its constants; an old file stays until the new one is whole.

    `download` gives the host array of a constant that is on a device.  Raises NotSupportedError for such a constant
    without it, for attributes that a file cannot hold and for a description beyond 90 MB, and what `save_arrays` does.
    """
    writer = _Writer(download)
    text = json.dumps(writer.describe(graph), separators=(",", ":"))
    if len(text) > _LARGEST:
        raise NotSupportedError(f"the description of {graph.name!r} takes {len(text)} bytes, a graph file holds "
                                f"{_LARGEST}", hint="save parts of the graph, or the program that builds it")
    save_arrays(path, writer.constants, {_KEY: text})


class _Writer:
    def __init__(self, download: Download | None) -> None:
        self.download = download
        self.constants: dict[str, Array] = {}
        self.operators: dict[Op, int] = {}
        self.lines: dict[str, int] = {}

    def describe(self, graph: SymbolicGraph) -> dict[str, Any]:
        nodes = postorder([*graph.outputs.values(), *graph.inputs.values()])
        number = {node: i for i, node in enumerate(nodes)}
        described = [self._node(node, number) for node in nodes]
        return {
            "version": VERSION,
            "name": graph.name,
            "operators": [[op.name, list(op.attributes)] for op in self.operators],
            "lines": list(self.lines),
            "nodes": described,
            "inputs": [[name, number[node]] for name, node in graph.inputs.items()],
            "outputs": [[name, number[node], encode(node.spec)] for name, node in graph.outputs.items()],
            "iopairs": [list(pair) for pair in graph.iopairs],
        }

    def _node(self, node: Node, number: Mapping[Node, int]) -> list[Any]:
        operator = self.operators.setdefault(node.op, len(self.operators))
        line = None if node.line is None else self.lines.setdefault(show_line(node.line), len(self.lines))
        try:
            return [operator, [number[x] for x in node.inputs], self._attributes(node), line]
        except Error as error:
            raise error.locate(operator=node.op.name, line=show_line(node.line))  # noqa: B904

    def _attributes(self, node: Node) -> list[Any]:
        if node.op is PLACEHOLDER:
            name, spec, _ = node.attributes
            return [encode(name), encode(spec)]
        if node.op is CONSTANT:
            literal, spec = node.attributes
            assert isinstance(literal, Literal)
            return [self._store(literal), encode(spec)]
        return [encode(value) for value in node.attributes]

    def _store(self, literal: Literal) -> str:
        if literal.device and self.download is None:
            raise NotSupportedError(f"the constant is on {literal.device}, a graph file holds arrays of the host",
                                    hint="give save_graph a function as `download`")
        name = f"constant.{len(self.constants)}"
        self.constants[name] = self.download(literal) if literal.device and self.download else literal.array
        return name


def load_graph(path: str | os.PathLike[str], operator: Operator) -> SymbolicGraph:
    """Read a graph that `save_graph` wrote; its nodes are made by the layer `operator`, and specs inferred again.

    Raises MissingFileError for a missing file and FileFormatError for one that is damaged, truncated, no graph file,
    of a later version, or with an operator or attributes that this version of nnc does not have; DTypeError for a
    dtype that the device beneath `operator` lacks.
    """
    arrays, metadata = load_arrays(path)
    if _KEY not in metadata:
        raise _refused(path, "it is a safetensors file without a graph", "read it with load_arrays")
    with _blaming(path, "its description is not what save_graph writes"):
        description = json.loads(metadata[_KEY])
        version = description["version"]
    if version != VERSION:
        raise _refused(path, f"its version is {version!r}, this nnc reads {VERSION}", "use a later version of nnc")
    with _blaming(path, "its description is not what save_graph writes"):
        return _Reader(path, operator, arrays, description).graph()


class _Reader:
    def __init__(self, path: str | os.PathLike[str], operator: Operator, arrays: Mapping[str, Array],
                 description: Mapping[str, Any]) -> None:
        self.path, self.arrays, self.description = path, arrays, description
        self.symbol, self.table = operator.symbol, Table()
        self.operators = [self._operator(name, attributes) for name, attributes in description["operators"]]
        self.nodes: list[Node] = []

    def graph(self) -> SymbolicGraph:
        for i, (operator, inputs, attributes, line) in enumerate(self.description["nodes"]):
            self.table.line = None if line is None else str(self.description["lines"][line])
            op = self.operators[_checked(operator, len(self.operators))]
            sources = tuple([self.nodes[_checked(x, i)] for x in inputs])
            self.nodes.append(self._node(op, sources, attributes))
        inputs = {_text(name): self._numbered(at) for name, at in self.description["inputs"]}
        outputs = {_text(name): self._output(name, at, decode(spec))
                   for name, at, spec in self.description["outputs"]}
        pairs = tuple([(_text(a), _text(b)) for a, b in self.description["iopairs"]])
        return SymbolicGraph(inputs, outputs, pairs, _text(self.description["name"]))

    def _operator(self, name: str, attributes: Sequence[str]) -> Op:
        op = _LEAVES.get(name) or OPERATORS.get(name)
        if op is None:
            raise _refused(self.path, f"this nnc has no operator {name!r}", "use the version of nnc that wrote it")
        if list(op.attributes) != attributes:
            raise _refused(self.path, f"operator {name!r} has attributes {attributes} there and "
                                      f"{list(op.attributes)} here", "use the version of nnc that wrote it")
        return op

    def _node(self, op: Op, inputs: tuple[Node, ...], attributes: list[Any]) -> Node:
        with _blaming(self.path, f"operator {op.name!r} does not take what the file gives it"):
            if not _fits(op, len(inputs), len(attributes)):
                raise FileFormatError(f"{len(inputs)} inputs and {len(attributes)} attributes")
            decoded = self._attributes(op, attributes)
            for value in decoded:
                self._admit(value)
            return self.symbol.node(self.table, op, inputs, decoded)

    def _attributes(self, op: Op, attributes: list[Any]) -> Attributes:
        if op is PLACEHOLDER:
            return (_text(attributes[0]), self._spec(attributes[1]), Uid())
        if op is CONSTANT:
            array, spec = self.arrays[attributes[0]], self._spec(attributes[1])
            if (array.shape, array.dtype) != (spec.shape, spec.dtype):
                raise FileFormatError(f"the constant is {array.dtype}{list(array.shape)} where {spec} is expected")
            return (Literal(_frozen(array)), spec)
        return tuple([decode(a) for a in attributes])

    def _admit(self, attribute: Any) -> None:
        dtype = attribute.dtype if isinstance(attribute, TensorSpec) else attribute
        if isinstance(dtype, np.dtype):
            self.symbol.shape.type.admit(dtype)

    def _spec(self, data: Any) -> TensorSpec:
        spec = decode(data)
        if not isinstance(spec, TensorSpec):
            raise FileFormatError(f"{str(data)[:80]} is no spec")
        return spec

    def _numbered(self, at: Any) -> Node:
        return self.nodes[_checked(at, len(self.nodes))]

    def _output(self, name: str, at: Any, spec: Any) -> Node:
        node = self._numbered(at)
        if node.spec != spec:
            raise _refused(self.path, f"output {name!r} was {spec} and is {node.spec} by the rules of this nnc",
                           "use the version of nnc that wrote it")
        return node


def _fits(op: Op, inputs: int, attributes: int) -> bool:
    wanted = len(op.attributes) - (op is PLACEHOLDER)  # a new uid is not in the file
    return attributes == wanted and (inputs >= 1 if op.variadic else inputs == len(op.inputs))


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
def _blaming(path: str | os.PathLike[str], reason: str) -> Iterator[None]:
    """Whatever goes wrong is the file's fault.  The rules of operators may fail in any way on attributes that no
    program could have given them, so every exception counts, but for a dtype that the device lacks and for memory."""
    try:
        yield
    except FileFormatError as error:
        raise error if error.hint else _refused(path, f"{reason}: {error.message}") from error
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, DTypeError) and error.device and error.operator is None:  # from _admit
            raise
        raise _refused(path, f"{reason}: {type(error).__name__}: {error}") from error


def _refused(path: str | os.PathLike[str], reason: str, hint: str | None = None) -> FileFormatError:
    return FileFormatError(f"{os.fspath(path)!r} cannot be read as a graph: {reason}",
                           hint=hint or "restore the file from a copy or save it again")

"""The description of a graph for a file, and its constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from nnc_core.base.errors import Error, NotSupportedError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.checkpoint import Array
from nnc_core.io.graph_attributes import encode
from nnc_core.operator import CONSTANT, CONTROL, OPERATORS, PLACEHOLDER
from nnc_core.symbol import Body, Literal, Node, bodies_in, postorder, show_line
from nnc_core.type import Op, TupleSpec

Download: TypeAlias = Callable[[Literal], Array]
WRITABLE: Mapping[str, Op] = {op.name: op for op in (PLACEHOLDER, CONSTANT, *CONTROL.values())}
"""Operators that files know beside OPERATORS."""


def operator_called(name: str) -> Op | None:
    """nnc's own operator of that name."""
    return WRITABLE.get(name) or OPERATORS.get(name)


class Writer:
    def __init__(self, download: Download | None) -> None:
        self.download = download
        self.constants: dict[str, Array] = {}
        self.operators: dict[Op, int] = {}
        self.lines: dict[str, int] = {}
        self.bodies: dict[int, int] = {}
        """The number of each body, by its id."""
        self.version = 1

    def describe(self, graph: SymbolicGraph) -> dict[str, Any]:
        nodes = postorder([*graph.outputs.values(), *graph.inputs.values()])
        bodies = [self._body(body) for body in nested_bodies(nodes)]
        described, number = self._nodes(nodes)
        return {
            "version": self.version,
            "name": graph.name,
            "operators": [[op.name, list(op.attributes)] for op in self.operators],
            "lines": list(self.lines),
            **({"bodies": bodies} if bodies else {}),
            "nodes": described,
            "inputs": [[name, number[node]] for name, node in graph.inputs.items()],
            "outputs": [[name, number[node], encode(node.spec)] for name, node in graph.outputs.items()],
            "iopairs": [list(pair) for pair in graph.iopairs],
        }

    def _body(self, body: Body) -> dict[str, Any]:
        described, number = self._nodes(postorder([*body.outputs, *body.inputs]))
        self.bodies[id(body)] = len(self.bodies)
        self.version = 2
        return {"nodes": described, "inputs": [number[x] for x in body.inputs],
                "outputs": [number[y] for y in body.outputs]}

    def _nodes(self, nodes: Sequence[Node]) -> tuple[list[Any], dict[Node, int]]:
        number = {node: i for i, node in enumerate(nodes)}
        return [self._node(node, number) for node in nodes], number

    def _node(self, node: Node, number: Mapping[Node, int]) -> list[Any]:
        operator = self.operators.setdefault(node.op, len(self.operators))
        line = None if node.line is None else self.lines.setdefault(show_line(node.line), len(self.lines))
        if isinstance(node.spec, TupleSpec):
            self.version = 2
        try:
            if operator_called(node.op.name) is not node.op:
                raise NotSupportedError("the operator belongs to the program that built the graph; a graph file holds "
                                        "no Python functions", hint="save the part of the graph without it")
            return [operator, [number[x] for x in node.inputs], self._attributes(node), line]
        except Error as error:
            error.locate(operator=node.op.name, line=show_line(node.line))
            raise

    def _attributes(self, node: Node) -> list[Any]:
        if node.op is PLACEHOLDER:
            name, spec, _ = node.attributes
            return [encode(name), encode(spec)]
        if node.op is CONSTANT:
            literal, spec = node.attributes
            assert isinstance(literal, Literal)
            return [self._store(literal), encode(spec)]
        return [encode(value, self._number_of) for value in node.attributes]

    def _number_of(self, body: Body) -> int:
        return self.bodies[id(body)]

    def _store(self, literal: Literal) -> str:
        if literal.device and self.download is None:
            raise NotSupportedError(f"the constant is on {literal.device}, a graph file holds arrays of the host",
                                    hint="give save_graph a function as `download`")
        name = f"constant.{len(self.constants)}"
        self.constants[name] = self.download(literal) if literal.device and self.download else literal.array
        return name


def nested_bodies(nodes: Iterable[Node]) -> list[Body]:
    """All bodies in these nodes and in those bodies, each once, inner ones before those that hold them."""
    order: list[Body] = []
    seen: set[int] = set()
    pending: list[tuple[Body, bool]] = [(body, False) for body in _bodies_within(nodes)]
    pending.reverse()
    while pending:
        body, is_done = pending.pop()
        if is_done:
            order.append(body)
        elif id(body) not in seen:
            seen.add(id(body))
            pending.append((body, True))
            pending.extend((inner, False) for inner in _bodies_within(body.nodes))
    return order


def _bodies_within(nodes: Iterable[Node]) -> Iterator[Body]:
    for node in nodes:
        yield from bodies_in(node.attributes)



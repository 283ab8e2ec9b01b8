"""Graphs with what is inside of them: the bodies of control flow, what they are called, and how values flow through.

Bodies may lie deeper in each other than Python can recurse: what goes into them is written as generators that give
generators.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import count
from types import GeneratorType
from typing import Any, NamedTuple, Protocol

from nnc_core.operator.control import LOOP, LoopAttributes
from nnc_core.symbol import Body, Node, bodies_of


class Drawable(Protocol):
    """A graph as drawings see it: named inputs and outputs, and the nodes between them."""

    inputs: dict[str, Node]
    outputs: dict[str, Node]
    iopairs: tuple[tuple[str, str], ...]
    name: str

    @property
    def nodes(self) -> list[Node]: ...

    @property
    def complexity(self) -> tuple[int, int]: ...


def flat(nested: Generator[Any, None, None]) -> Iterator[Any]:
    """Items of a generator, with the items of the generators among them in their places."""
    pending = [nested]
    while pending:
        item = next(pending[-1], pending)
        if item is pending:
            pending.pop()
        elif isinstance(item, GeneratorType):
            pending.append(item)
        else:
            yield item


# ---- names
def node_names(graph: Drawable) -> dict[Node, str]:
    """Inputs by their names, everything else numbered."""
    names = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
    return names | {node: name for name, node in graph.inputs.items()}


def body_names(body: Body) -> dict[Node, str]:
    """A body is closed and has names of its own: those of its placeholders, made different, and numbers."""
    named: dict[Node, str] = {}
    known: dict[str, int] = {}
    for node in body.inputs:
        name = str(node.attributes[0])
        known[name] = known.get(name, 0) + 1
        named[node] = name if known[name] == 1 else f"{name}'{known[name]}"
    inner = [node for node in body.nodes if node not in named]
    return named | {node: f"%{i}" for i, node in enumerate(inner, len(named))}


# ---- edges
class Drawn(NamedTuple):
    """A node as a picture shows it."""

    node: Node
    name: str
    """Its name, in bodies with the names of the nodes and bodies around it: "%3.body.%2"."""
    scope: tuple[str, ...]
    """The bodies around it, the outermost first."""
    sources: list[int]
    """Numbers of those drawn before it whose values come to it."""


def unfolded(graph: Drawable, nodes: Sequence[Node]) -> list[Drawn]:
    """Nodes of a graph, inputs first, with what is in their bodies, as values flow when it runs.

    What a node of control flow is given goes to the placeholders that stand for it, and what its bodies give goes to
    the node.
    """
    return list(flat(_unfolded(nodes, {}, node_names(graph), "", (), count())))


def _unfolded(nodes: Sequence[Node], number: dict[Node, int], names: Mapping[Node, str], prefix: str,
              scope: tuple[str, ...], numbers: Iterator[int]) -> Generator[Any, None, None]:
    for node in nodes:
        direct, ends = dict.fromkeys(node.inputs), []
        for label, body in bodies_of(node):
            given, inner = _given(node, label, body), body_names(body)
            inside, within = f"{prefix}{names[node]}.{label}.", (*scope, f"{names[node]} {label}")
            known: dict[Node, int] = {}
            for p, x in zip(body.inputs, given, strict=True):
                known[p] = next(numbers)
                yield Drawn(p, inside + inner[p], within, [number[x]])
                direct.pop(x, None)
            rest = [n for n in body.nodes if n not in known]
            yield _unfolded(rest, known, inner, inside, within, numbers)
            ends += [known[y] for y in body.outputs]
        number[node] = next(numbers)
        sources = [number[x] for x in node.inputs if x in direct]
        yield Drawn(node, prefix + names[node], scope, [*sources, *dict.fromkeys(ends)])


def _given(node: Node, label: str, body: Body) -> tuple[Node, ...]:
    """The operands that the placeholders of a body stand for."""
    if node.op is LOOP and label == "cond":
        carried, _, captured = LoopAttributes.of(node).split(node.inputs)
        return (*carried, *captured)
    return node.inputs[len(node.inputs) - len(body.inputs) :]

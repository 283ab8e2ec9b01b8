"""Bodies: the graphs inside a node of control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nnc_core.symbol.node import Node
from nnc_core.symbol.order import postorder


def in_sequence(outputs: Sequence[Node]) -> list[Node]:
    """Nodes that the outputs depend on, inputs first; tokens come as early as they can, in the order in which they are
    named, those of the outermost dependencies first: these name all effects of a body as its code has them."""
    order = postorder(outputs)
    dependencies = [node for node in order if node.op.control_dependency]
    if not dependencies:
        return order
    return postorder([*[token for node in reversed(dependencies) for token in node.inputs[1:]], *outputs])


class Body:
    """A function of nodes: placeholders in, nodes out.  Everything that it reads from around it is an input.

    Bodies are equal if they compute the same by the same nodes, whatever their placeholders are called.
    """

    __slots__ = ("_hash", "_key", "inputs", "outputs")

    def __init__(self, inputs: tuple[Node, ...], outputs: tuple[Node, ...]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self._key: tuple[Any, ...] | None = None
        self._hash = 0

    @property
    def nodes(self) -> list[Node]:
        """All that the outputs depend on, inputs first, what has effects in its order."""
        return in_sequence(self.outputs)

    def key(self) -> tuple[Any, ...]:
        """The computation as a tuple that equal bodies share."""
        if self._key is None:
            number: dict[Node, int] = {x: i for i, x in enumerate(self.inputs)}
            lines: list[tuple[Any, ...]] = []
            for node in self.nodes:
                if node not in number:
                    number[node] = len(number)
                    lines.append((node.op, tuple([number[x] for x in node.inputs]), node.attributes))
            self._key = (tuple([x.spec for x in self.inputs]), tuple(lines), tuple([number[y] for y in self.outputs]))
            self._hash = hash(self._key)
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Body) and self.key() == other.key())

    def __hash__(self) -> int:
        self.key()
        return self._hash

    def __repr__(self) -> str:
        ins, outs = (", ".join(repr(n.spec) for n in ns) for ns in (self.inputs, self.outputs))
        return f"<body ({ins}) -> ({outs}), {len(self.nodes)} nodes>"


def bodies_in(attribute: Any) -> Iterator[Body]:
    """The bodies that an attribute is or holds, in order."""
    if isinstance(attribute, Body):
        yield attribute
    elif isinstance(attribute, tuple):
        for part in attribute:
            yield from bodies_in(part)


def bodies_of(node: Any) -> list[tuple[str, Body]]:
    """The bodies of a node or a value of the tape, called by the attributes that hold them: "cond", "branches[1]"."""
    found: list[tuple[str, Body]] = []
    for name, attribute in zip(node.op.attributes, node.attributes, strict=True) if node.op.bodies else ():
        several = isinstance(attribute, tuple)
        found += [(f"{name}[{i}]" if several else name, body) for i, body in enumerate(bodies_in(attribute))]
    return found


def map_bodies(attribute: Any, change: Callable[[Body], Body]) -> Any:
    """An attribute with the bodies that it is or holds changed; the same object where none changes."""
    if isinstance(attribute, Body):
        return change(attribute)
    if isinstance(attribute, tuple):
        parts = [map_bodies(part, change) for part in attribute]
        if any(a is not b for a, b in zip(parts, attribute, strict=True)):
            return attribute._make(parts) if hasattr(attribute, "_make") else tuple(parts)
    return attribute

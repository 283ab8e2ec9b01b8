"""Networks as tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from nnc_core.nn.layers.checks import title
from nnc_core.nn.table import table
from nnc_core.nn.tree import cells_of

if TYPE_CHECKING:
    from nnc_core.nn.networks.network import NodeInfo


def network_table(nodes: Sequence[NodeInfo], outputs: Sequence[str]) -> str:
    """One line a node: name, module, what it gives, what it takes, how many numbers it trains."""
    rows = [("node", "module", "gives", "takes", "parameters")]
    seen: set[int] = set()
    for node in nodes:
        count = "" if node.module is None else _count(node, seen)
        rows.append((node.name, "Input" if node.module is None else title(node.module),
                     ", ".join(map(str, node.specs)), ", ".join(node.inputs), count))
    return "\n".join([*table(rows), f"outputs: {', '.join(outputs)}"])


def _count(node: NodeInfo, seen: set[int]) -> str:
    """The count of numbers that the module trains; those of one that was there before are shared."""
    assert node.module is not None
    if id(node.module) in seen:
        return "shared"
    seen.add(id(node.module))
    trained = node.module.named_parameters()
    count = sum(prod(c.spec.static_shape) for name, c in cells_of(node.module).items() if name in trained)
    return f"{count:,}" if count else ""


def network_dot(nodes: Sequence[NodeInfo], outputs: Sequence[str]) -> str:
    """A picture in Graphviz's language."""
    numbers = {node.name: i for i, node in enumerate(nodes)}
    lines = ["digraph network {", "  node [shape=box, fontname=monospace];"]
    for node in nodes:
        kind = "Input" if node.module is None else type(node.module).__name__
        given = ", ".join(map(str, node.specs))
        lines.append(f"  n{numbers[node.name]} [label={_quoted(node.name, kind, given)}];")
        lines += [f"  n{numbers[_node_of(name, numbers)]} -> n{numbers[node.name]};" for name in node.inputs]
    for i, name in enumerate(outputs):
        lines += [f"  out{i} [label={_quoted('output', name)}, shape=ellipse];",
                  f"  n{numbers[_node_of(name, numbers)]} -> out{i};"]
    return "\n".join([*lines, "}"])


def _node_of(name: str, numbers: dict[str, int]) -> str:
    return name if name in numbers else name.rpartition(":")[0]


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'

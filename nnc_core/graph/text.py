"""Graphs as text: typed SSA, Graphviz, an edge list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Node, show_line

if TYPE_CHECKING:
    from nnc_core.graph.symbolic import SymbolicGraph


def node_names(graph: SymbolicGraph) -> dict[Node, str]:
    """Inputs by their names, everything else numbered."""
    names = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
    return names | {node: name for name, node in graph.inputs.items()}


def to_text(graph: SymbolicGraph) -> str:
    """One line a node: name, spec, operator, operands, attributes, source line."""
    names = node_names(graph)
    lines = [f"{graph.name}({', '.join(f'{k}: {n.spec}' for k, n in graph.inputs.items())}):"]
    for node in graph.nodes:
        if node.op is not PLACEHOLDER:
            call = f"{node.op.name}({_arguments(node, names)})"
            lines.append(f"  {names[node]}: {node.spec} = {call}  # {show_line(node.line)}")
    lines.append("  return " + ", ".join(f"{k}={names[n]}" for k, n in graph.outputs.items()))
    return "\n".join(lines + [f"  {output} takes the memory of {input}" for output, input in graph.iopairs])


def _arguments(node: Node, names: dict[Node, str]) -> str:
    named = [f"{k}={v}" for k, v in zip(node.op.attributes, node.attributes, strict=True)]
    return ", ".join([names[x] for x in node.inputs] + named)


def to_trace(graph: SymbolicGraph) -> str:
    names = node_names(graph)
    return "\n".join(f"{names[node]} <- {names[x]}" for node in graph.nodes for x in node.inputs)


def to_dot(graph: SymbolicGraph) -> str:
    names = node_names(graph)
    number = {node: i for i, node in enumerate(graph.nodes)}
    outputs = set(graph.outputs.values())
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=TB; node [shape=record, fontsize=10];"]
    for node, i in number.items():
        label = f"{names[node]} | {node.op.name} | {node.spec}"
        style = ", style=filled, fillcolor=lightgrey" if node.op is PLACEHOLDER or node in outputs else ""
        lines.append(f"  n{i} [label={_quoted(label)}{style}];")
    lines += [f"  n{number[x]} -> n{i};" for node, i in number.items() for x in node.inputs]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for mark in "<>{}":
        escaped = escaped.replace(mark, "\\" + mark)
    return f'"{escaped}"'

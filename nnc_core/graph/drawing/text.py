"""Graphs as text: typed SSA with the bodies of control flow beneath their nodes, Graphviz, an edge list."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

from nnc_core.graph.drawing.unfolded import Drawable, body_names, flat, node_names, unfolded
from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Body, Node, bodies_of, show_line

Lines: TypeAlias = Generator[Any, None, None]
"""Lines, and in their places generators of the lines of what is nested."""
INDENT = "  "


def to_text(graph: Drawable) -> str:
    """One line a node: name, spec, operator, operands, attributes, source line; its bodies are indented beneath it."""
    names = node_names(graph)
    inputs = ", ".join(f"{k}: {n.spec}" for k, n in graph.inputs.items())
    lines = [f"{graph.name}({inputs}):", *flat(_statements(graph.nodes, names, INDENT))]
    lines.append(f"{INDENT}return " + ", ".join(f"{k}={names[n]}" for k, n in graph.outputs.items()))
    return "\n".join(lines + [f"{INDENT}{output} takes the memory of {input}" for output, input in graph.iopairs])


def _statements(nodes: Sequence[Node], names: Mapping[Node, str], margin: str) -> Lines:
    for node in nodes:
        if node.op is not PLACEHOLDER:
            call = f"{node.op.name}({_arguments(node, names)})"
            yield f"{margin}{names[node]}: {node.spec} = {call}  # {show_line(node.line)}"
            for label, body in bodies_of(node):
                yield _function(label, body, margin + INDENT)


def _function(label: str, body: Body, margin: str) -> Lines:
    names = body_names(body)
    yield f"{margin}{label}({', '.join(f'{names[x]}: {x.spec}' for x in body.inputs)}):"
    yield _statements(body.nodes, names, margin + INDENT)
    yield f"{margin}{INDENT}return {', '.join(names[y] for y in body.outputs)}".rstrip()


def _arguments(node: Node, names: Mapping[Node, str]) -> str:
    """Operands, and the attributes but for bodies, which are shown by themselves."""
    held = {label.partition("[")[0] for label, _ in bodies_of(node)}
    named = [f"{k}={v}" for k, v in zip(node.op.attributes, node.attributes, strict=True) if k not in held]
    return ", ".join([names[x] for x in node.inputs] + named)


def to_trace(graph: Drawable) -> str:
    """One line for each edge, those in bodies included: "user <- input"."""
    found = unfolded(graph, graph.nodes)
    return "\n".join(f"{drawn.name} <- {found[i].name}" for drawn in found for i in drawn.sources)


def to_dot(graph: Drawable) -> str:
    """Bodies are clusters within clusters."""
    outputs = set(graph.outputs.values())
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=TB; node [shape=record, fontsize=10];"]
    found = unfolded(graph, graph.nodes)
    scope: tuple[str, ...] = ()
    for i, drawn in enumerate(found):
        lines += _into(scope, drawn.scope, i)
        scope = drawn.scope
        label = f"{drawn.name.rpartition('.')[2] if scope else drawn.name} | {drawn.node.op.name} | {drawn.node.spec}"
        marked = drawn.node.op is PLACEHOLDER or (not scope and drawn.node in outputs)
        style = ", style=filled, fillcolor=lightgrey" if marked else ""
        lines.append(f"  n{i} [label={_quoted(label)}{style}];")
    lines += _into(scope, (), len(found))
    lines += [f"  n{source} -> n{i};" for i, drawn in enumerate(found) for source in drawn.sources]
    return "\n".join([*lines, "}"])


def _into(scope: Sequence[str], wanted: Sequence[str], number: int) -> list[str]:
    """The clusters that end and begin between a node in one scope and the next node, in another."""
    same = next((i for i, (a, b) in enumerate(zip(scope, wanted, strict=False)) if a != b),
                min(len(scope), len(wanted)))
    return ["  }"] * (len(scope) - same) + [
        f"  subgraph cluster_{number}_{depth} {{ label={_quoted(label)};"
        for depth, label in enumerate(wanted[same:], same)]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for mark in "<>{}":
        escaped = escaped.replace(mark, "\\" + mark)
    return f'"{escaped}"'

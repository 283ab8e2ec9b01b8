"""The last look at a graph: what nobody reads goes, and names are numbered in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nnc_core.io.onnx.writing.records import Array, WrittenGraph, WrittenNode


def drop_unread(graph: WrittenGraph, arrays: dict[str, Array], kept: Iterable[str]) -> None:
    """Take out nodes that nobody reads, as a reshape of what became an operand of its reader, and arrays likewise, but
    for those that are `kept`."""
    read = _drop_unread_nodes(graph) | set(kept)
    for name in arrays.keys() - read:
        del arrays[name]


def _drop_unread_nodes(graph: WrittenGraph) -> set[str]:
    """The same for nodes; gives all names that are read."""
    read, nodes = {name for name, _ in graph.outputs}, list[WrittenNode]()
    for node in reversed(graph.nodes):
        if not read.isdisjoint(node.outputs):
            nodes.append(node)
            read.update(node.inputs, *map(_drop_unread_nodes, _graphs_in(node)))
    graph.nodes[:] = reversed(nodes)
    return read


def rename(graph: WrittenGraph, names: Mapping[str, str]) -> None:
    """Put other names into a graph, and those inside of it."""
    graph.inputs = [(names.get(name, name), spec) for name, spec in graph.inputs]
    graph.outputs = [(names.get(name, name), spec) for name, spec in graph.outputs]
    for node in graph.nodes:
        node.inputs, node.outputs = ([names.get(x, x) for x in side] for side in (node.inputs, node.outputs))
        for inner in _graphs_in(node):
            rename(inner, names)


def numbered(graph: WrittenGraph, fixed: Iterable[str]) -> dict[str, str]:
    """For names of a stem and a number, all but the fixed ones, such whose numbers say what comes first."""
    found = {name: name for name in ("", *fixed)}
    taken, counts = set(found), dict[str, int]()
    for name in _names_of(graph):
        if name in found:
            continue
        stem = name.rpartition("_")[0]
        while (new := f"{stem}_{counts.setdefault(stem, 0)}") in taken:
            counts[stem] += 1
        counts[stem] += 1
        found[name] = new
    return found


def _names_of(graph: WrittenGraph) -> Iterator[str]:
    yield from (name for name, _ in graph.inputs)
    for node in graph.nodes:
        yield from node.inputs
        for inner in _graphs_in(node):
            yield from _names_of(inner)
        yield from node.outputs


def _graphs_in(node: WrittenNode) -> Iterator[WrittenGraph]:
    return (value for value in node.attributes.values() if isinstance(value, WrittenGraph))

"""Cutting a graph into stages: what one device can run in one go, and between them what it cannot.

A *break* is a node that no device's program holds: an operator whose result has as many rows as the data say, or a
copy from one device to another.  A stage is everything whose inputs, and whose sizes, are there when the breaks of
earlier stages have run: one *part* for each device, then the breaks that these parts made possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nnc_core.base.errors import DeviceError, GraphError, NotSupportedError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS, PLACEHOLDER
from nnc_core.symbol import Node, bodies_in, postorder, show_line
from nnc_core.type import is_data_dependent
from nnc_core.values.data_dependent import names_in, size_attribute

TRANSFER = OPERATORS["transfer"]
Place = str
"""A device's id."""


class Part(NamedTuple):
    """The nodes of a stage that run on one device."""

    place: Place
    inputs: tuple[Node, ...]
    """Of the whole graph: made by earlier stages, or given."""
    outputs: tuple[Node, ...]
    """What later stages, breaks or callers want."""


class GraphStage(NamedTuple):
    parts: tuple[Part, ...]
    breaks: tuple[Node, ...]


class Cut(NamedTuple):
    """A graph in stages, and the device that each value is on."""

    stages: tuple[GraphStage, ...]
    place: Callable[[Node], Place]


_INT = frozenset({int})


def needs_stages(graph: SymbolicGraph, place_of: Callable[[str], Place], home: Place,
                 on: Mapping[str, Place]) -> bool:
    """True if one device cannot run it in one go."""
    if any([p != home for p in on.values()]):
        return True
    for node in graph.nodes:
        if node.op.data_dependent or node.op.bodies or not _INT.issuperset(map(type, node.spec.shape)):
            if node.op.data_dependent or _breaks_inside(node, place_of) or _data_dependent_names(node):
                return True
        elif node.op is TRANSFER and any(place_of(a) != home for a in node.attributes):
            return True
    return False


def cut(graph: SymbolicGraph, place_of: Callable[[str], Place], home: Place, on: Mapping[str, Place]) -> Cut:
    """`place_of` gives the device of a transfer's end; `on` those of inputs, as far as they are known; everything
    that no transfer speaks of is at home."""
    places = _Places(graph, place_of, home, on)
    producers = _producers(graph)
    for node in graph.nodes:
        if _breaks_inside(node, place_of):
            raise NotSupportedError("the body of a loop or branch cannot count elements or copy between devices",
                                    operator=node.op.name, line=show_line(node.line), hint="do that outside of it")
    after = {id(n): [producers[k] for k in _wanted_names(n, producers)] for n in graph.nodes}
    level: dict[Node, int] = {}
    for node in postorder(graph.outputs.values(), after=after):
        before = [*node.inputs, *after[id(node)]]
        level[node] = max([level[x] + _is_break(x, places) for x in before], default=0)
    return Cut(tuple(_stages(graph, level, places)), places.of)


def _is_break(node: Node, places: _Places) -> bool:
    return node.op.data_dependent or (node.op is TRANSFER and places.crosses(node))


def _data_dependent_names(node: Node) -> list[str]:
    attributes = node.attributes
    if node.op.data_dependent:
        size = size_attribute(node.op, attributes)
        attributes = tuple([a for a in attributes if a is not size])
        return [n for n in names_in(attributes) if is_data_dependent(n)]
    return [n for n in names_in((node.spec, attributes)) if is_data_dependent(n)]


def _producers(graph: SymbolicGraph) -> dict[str, Node]:
    """The node that counts, for each size that depends on data."""
    found: dict[str, Node] = {}
    for node in graph.nodes:
        if node.op.data_dependent:
            for name in names_in(size_attribute(node.op, node.attributes)):
                found.setdefault(name, node)
    return found


def _wanted_names(node: Node, producers: Mapping[str, Node]) -> list[str]:
    names = list(dict.fromkeys(_data_dependent_names(node)))
    for name in names:
        if name not in producers:
            raise GraphError(f"the size {name} of {node.spec} depends on data that the outputs do not depend on",
                             operator=node.op.name, line=show_line(node.line),
                             hint="make an output of what is counted, or derive the array from it: x * 0, not zeros")
    return names


def _breaks_inside(node: Node, place_of: Callable[[str], Place]) -> bool:
    return node.op.bodies and any(
        inner.op.data_dependent or (inner.op is TRANSFER and len({place_of(a) for a in inner.attributes}) > 1)
        or _breaks_inside(inner, place_of) for body in bodies_in(node.attributes) for inner in body.nodes)


def _free(graph: SymbolicGraph) -> set[Node]:
    """The nodes that are computed from constants alone."""
    free: set[Node] = set()
    for node in graph.nodes:
        if node.op not in (PLACEHOLDER, TRANSFER) and not node.op.data_dependent and free.issuperset(node.inputs):
            free.add(node)
    return free


class _Places:
    """The device of every value: what an operator connects is on one, what a transfer connects on its two ends."""

    def __init__(self, graph: SymbolicGraph, place_of: Callable[[str], Place], home: Place,
                 on: Mapping[str, Place]) -> None:
        self.home, self.place_of = home, place_of
        self.free = _free(graph)
        """Made anew wherever they are needed."""
        self._up: dict[Node, Node] = {}
        self._known: dict[Node, Place] = {}
        for name, place in on.items():
            self._say(graph.inputs[name], place)
        for node in graph.nodes:
            if node.op is TRANSFER:
                for end, place in zip((node.inputs[0], node), self.ends(node), strict=True):
                    self._say(end, place)
            else:
                for x in node.inputs:
                    self._join(node, x)

    def ends(self, transfer: Node) -> tuple[Place, Place]:
        source, target = transfer.attributes
        return self.place_of(source), self.place_of(target)

    def crosses(self, transfer: Node) -> bool:
        source, target = self.ends(transfer)
        return source != target

    def of(self, node: Node) -> Place:
        return self._known.get(self._root(node), self.home)

    def _root(self, node: Node) -> Node:
        while (up := self._up.get(node)) is not None:
            node = up
        return node

    def _say(self, node: Node, place: Place) -> None:
        if node in self.free:
            return
        known = self._known.setdefault(self._root(node), place)
        if known != place:
            raise _mixed(node, known, place)

    def _join(self, node: Node, x: Node) -> None:
        if x in self.free or node in self.free:
            return
        a, b = self._root(node), self._root(x)
        if a is b:
            return
        mine, its = self._known.get(a), self._known.pop(b, None)
        if mine is not None and its is not None and mine != its:
            raise _mixed(node, mine, its)
        self._up[b] = a
        if its is not None:
            self._known[a] = its


def _mixed(node: Node, one: Place, other: Place) -> DeviceError:
    return DeviceError(f"operands are on {one} and on {other}", operator=node.op.name, line=show_line(node.line),
                       hint="copy one of them with .to(...), or place both on one device")


def _stages(graph: SymbolicGraph, level: Mapping[Node, int], places: _Places) -> list[GraphStage]:
    count, home = max(level.values(), default=0) + 1, places.home
    breaks = [n for n in level if _is_break(n, places)]
    wanted: dict[tuple[int, Place], dict[Node, None]] = {}

    def want(node: Node, stage: int, place: Place) -> None:
        """Free nodes are made where they are wanted, at that stage; others where they belong."""
        if not _is_break(node, places) and node.op is not PLACEHOLDER:
            at = (stage, place) if node in places.free else (level[node], places.of(node))
            wanted.setdefault(at, {})[node] = None

    for y in graph.outputs.values():
        want(y, level[y], home)
    for b in breaks:
        want(b.inputs[0], level[b], places.ends(b)[0] if b.op is TRANSFER else places.of(b))
    for node in level:
        for x in node.inputs:
            if x not in places.free and level[x] < level[node]:
                want(x, level[x], places.of(x))
    stages = []
    for k in range(count):
        parts = [_part(place, list(nodes), k, level, places) for (at, place), nodes in wanted.items() if at == k]
        stages.append(GraphStage(tuple([p for p in parts if p.outputs]), tuple([b for b in breaks if level[b] == k])))
    return stages


def _part(place: Place, outputs: Sequence[Node], stage: int, level: Mapping[Node, int], places: _Places) -> Part:
    """Placeholders are inputs of every part, even where they are outputs as well."""

    def is_given(x: Node) -> bool:
        return x.op is PLACEHOLDER or (x not in places.free and (level[x] < stage or _is_break(x, places)))

    inputs = [x for x in postorder(outputs, leaf=is_given) if is_given(x)]
    return Part(place, tuple(inputs), tuple(outputs))

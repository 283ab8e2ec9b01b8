"""Values computed straight into their part of a larger one, so that joining copies nothing.

A concatenation's operand that has no other place yet is computed into its part of the result, at any depth: the result
may be a part itself.  What such an operand is computed from in place lies there too.  A concatenation whose operands
lie side by side already, because a later one has them all, is a view.  All of these are offers: the planner takes those
that hold when it comes to them, and copies otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.engine.groups import COPY, NodeGroup
from nnc_core.engine.regions import part, same_elements
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.operator import OPERATORS
from nnc_core.symbol import Node
from nnc_core.type import TupleSpec

CONCAT, RESHAPE, PERMUTE = OPERATORS["concat"], OPERATORS["reshape"], OPERATORS["permute"]


@dataclass(slots=True)
class Joins:
    """Places that values are offered in the memory of larger ones."""

    layouts: dict[Node, Layout] = field(default_factory=dict)
    """Layouts of values in their storage if all offers are taken; leaves are left out."""
    whole: dict[Node, Node] = field(default_factory=dict)
    """For a value that lies in the memory of another one: that other one, which lies in nobody's."""
    parts: dict[Node, tuple[Layout, ...]] = field(default_factory=dict)
    """For each concatenation that is joined: where its operands lie in the storage that it lies in."""
    seen: set[Node] = field(default_factory=set)
    """Concatenations that are views."""

    def add(self, other: Joins) -> None:
        """Those of another line as well."""
        self.layouts |= other.layouts
        self.whole |= other.whole
        self.parts |= other.parts
        self.seen |= other.seen


def find_joins(commands: Commands, refused: Collection[Node] = ()) -> Joins:
    """All offers, but for the concatenations that are refused."""
    finder = _Finder(commands, refused)
    if commands.views:
        for group in reversed(commands.groups):
            if group.op is CONCAT:
                finder.concat(group)
            elif group.node in finder.joins.whole:
                finder.in_place(group)
    return finder.joins


class _Finder:
    """Goes from users to what they use, so that the place of a whole is known before those of its parts."""

    def __init__(self, commands: Commands, refused: Collection[Node]) -> None:
        self.commands, self.refused, self.decider = commands, refused, commands.decider
        self.joins = Joins(dict(commands.layouts))
        self.layouts, self.whole = self.joins.layouts, self.joins.whole
        self.kept = {*commands.outputs, *commands.updates}
        self.overwritten: set[Node] = set()
        """Values whose place another one takes in place: nothing that lies there may be read besides."""
        self.readers: dict[Node, list[NodeGroup]] = {}
        self.views: dict[Node, list[NodeGroup]] = {}
        self.alias: dict[Node, NodeGroup] = {g.node: g for g in commands.aliases if g.op.view is not None}
        if any(g.op is CONCAT for g in commands.groups):
            self._find_users()

    def _find_users(self) -> None:
        for group in self.commands.groups:
            for x in dict.fromkeys(group.inputs):
                self.readers.setdefault(x, []).append(group)
        for group in self.alias.values():
            self.views.setdefault(group.inputs[0], []).append(group)

    # ---- concatenations
    def concat(self, group: NodeGroup) -> None:
        c = group.node
        if c in self.refused or c in self.commands.updates:
            return
        if c not in self.whole and c not in self.kept and self._lies_there(group):
            return
        parts = parts_of(group, self.layouts[c])
        if not all(self._copies_to(p) for p in parts):
            return
        root, placed = self.whole.get(c, c), False
        for x, place in zip(group.inputs, parts, strict=True):
            placed = self._offer(x, place, root, c) or placed
        if placed:
            self.joins.parts[c] = parts

    def _copies_to(self, place: Layout) -> bool:
        """Tell whether the device itself can copy there what has to be copied."""
        command = Command(COPY.name, (), (Layout.packed(place.shape, place.dtype),), (place,))
        return not self.decider.decide(COPY, command).on_host

    def _offer(self, x: Node, place: Layout, root: Node, joined: Node) -> bool:
        """Compute x, which may be a view of what is computed, at its place in what it is joined to."""
        base, at = self._under(x, place)
        if at is None or not self._is_free(base):
            return False
        if joined in self.overwritten:
            if len(self.readers[x]) > 1 or base is not x or x in self.views:
                return False
            self.overwritten.add(base)
        layouts = self._with(base, at)
        if layouts is None or not same_elements(layouts.get(x, place), place):
            return False
        if not self._writes(base, at) or not self._read_alike(layouts):
            return False
        self._put(root, layouts)
        return True

    def _under(self, x: Node, place: Layout | None) -> tuple[Node, Layout | None]:
        """The value that x is a view of as a whole, and its place if x lies at a place."""
        while place is not None and x in self.alias:
            group = self.alias[x]
            (x, *_), op = group.inputs, group.op
            if op is PERMUTE:
                (axes,) = group.attributes
                order = sorted(range(len(axes)), key=axes.__getitem__)
                place = Layout(tuple(place.shape[i] for i in order), place.dtype, place.offset,
                               tuple(place.strides[i] for i in order))
            else:
                assert RESHAPE.view is not None
                place = RESHAPE.view(place, self.commands.layout_of(x).shape) if op is RESHAPE else None
        return x, place

    def _lies_there(self, group: NodeGroup) -> bool:
        """The operands of a concatenation lie side by side: it is a view."""
        c, (axis,) = group.node, group.attributes
        roots = {self.whole.get(self.commands.origin.get(x, x)) for x in group.inputs}
        (root,) = roots if len(roots) == 1 else (None,)
        seen = _side_by_side([self.layouts[x] for x in group.inputs], axis, c.spec.layout()) if root else None
        layouts = self._with(c, seen) if seen is not None else None
        if root is None or layouts is None or not self._read_alike(layouts):
            return False
        self._put(root, layouts)
        self.joins.parts[c] = tuple([self.layouts[x] for x in group.inputs])
        self.joins.seen.add(c)
        return True

    # ---- in place
    def in_place(self, group: NodeGroup) -> None:
        """Put the operand that y is computed from in place where y lies, if nothing else reads it."""
        y = group.node
        place, root = self.layouts[y], self.whole[y]
        for i, x in enumerate(group.inputs):
            if not self._is_free(x) or x.spec != y.spec or x in self.views or group.inputs.count(x) > 1:
                continue
            if self.readers[x] != [group] or not self._writes(x, place):
                continue
            command = self._command(group, {x: place})
            if i in self.decider.decide(group.op, command).inplace and self._read_alike({x: place}):
                self._put(root, {x: place})
                self.overwritten.add(x)
                return

    # ---- consent
    def _is_free(self, x: Node) -> bool:
        """Computed by a command, and bound to no place yet."""
        return (x in self.commands.number and x not in self.kept and x not in self.whole and not x.op.bodies
                and not isinstance(x.spec, TupleSpec) and x in self.layouts and 0 not in self.layouts[x].shape)

    def _with(self, x: Node, place: Layout) -> dict[Node, Layout] | None:
        """The places of x and of all views of it then; None if one would need a command."""
        found = {x: place}
        pending = [x]
        while pending:
            for group in self.views.get(pending.pop(), ()):
                assert group.op.view is not None
                seen = group.op.view(found[group.inputs[0]], *group.attributes)
                if seen is None:
                    return None
                found[group.node] = seen
                pending.append(group.node)
        return found

    def _writes(self, x: Node, place: Layout) -> bool:
        """Tell whether the command that computes x can do so there, by the same code."""
        group = self.commands.groups[self.commands.number[x]]
        command = self._command(group, {x: place})
        there = self.decider.decide(group.op, command)
        return not there.on_host and there.backend == self.decider.decide(group.op, self._command(group, {})).backend

    def _read_alike(self, layouts: dict[Node, Layout]) -> bool:
        """Tell whether all that reads those values there is the same code as now."""
        return all(self._reads(group, layouts) for group in self._readers_of(layouts))

    def _readers_of(self, nodes: Collection[Node]) -> Iterator[NodeGroup]:
        for x in nodes:
            yield from self.readers.get(x, ())

    def _reads(self, group: NodeGroup, layouts: dict[Node, Layout]) -> bool:
        if group.op is CONCAT:
            return True
        if group.op.bodies or isinstance(group.node.spec, TupleSpec):
            return False
        now, then = self._command(group, {}), self._command(group, layouts)
        return self.decider.decide(group.op, now).backend == self.decider.decide(group.op, then).backend

    def _command(self, group: NodeGroup, layouts: dict[Node, Layout]) -> Command:
        """A command as offers make it so far, and with some values elsewhere."""
        inputs = tuple([layouts.get(x) or self.layouts.get(x) or x.spec.layout() for x in group.inputs])
        return Command(group.op.name, group.attributes, inputs, (layouts.get(group.node) or self.layouts[group.node],))

    def _put(self, root: Node, layouts: dict[Node, Layout]) -> None:
        self.layouts.update(layouts)
        self.whole[next(iter(layouts))] = root


def parts_of(group: NodeGroup, whole: Layout) -> tuple[Layout, ...]:
    """The places of the operands of a concatenation in its result."""
    (axis,) = group.attributes
    found, begin = [], 0
    for x in group.inputs:
        length = x.spec.static_shape[axis]
        found.append(part(whole, axis, begin, length))
        begin += length
    return tuple(found)


def _side_by_side(parts: list[Layout], axis: int, whole: Layout) -> Layout | None:
    """The array of which these are the parts along an axis, if there is one."""
    first = parts[0]
    step = first.strides[axis]
    if len(parts) > 1 and first.shape[axis]:
        step = (parts[1].offset - first.offset) // first.shape[axis]
    seen = Layout(whole.shape, whole.dtype, first.offset, (*first.strides[:axis], step, *first.strides[axis + 1 :]))
    begin = 0
    for x in parts:
        if not same_elements(part(seen, axis, begin, x.shape[axis]), x):
            return None
        begin += x.shape[axis]
    return seen if step > 0 else None


"""The cost of an order of commands: the bytes that live at each of them, counted as the planner counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.engine.decide import Decision
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.operator import PLACEHOLDER
from nnc_core.operator.control import is_tape
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec, TupleSpec

Inside = Callable[[NodeGroup], int]
"""Bytes that the bodies of a loop or of branches need while they run."""


class Footprint:
    """Commands and values as numbers.  A *block* is memory of its own: of one value, or of a whole with what is joined
    in it; it has the number of the first of its values.

    Outputs have memory outside of the arena and count as nothing; so does what an output is computed from in place.
    """

    def __init__(self, commands: Commands, joins: Joins, inside: Inside) -> None:
        count = len(commands.groups)
        self.commands, self.joins, self.inside = commands, joins, inside
        self.alignment = commands.decider.device.spec.alignment
        self.reads: list[tuple[int, ...]] = [()] * count
        """Values that each command reads, once each."""
        self.makes: list[tuple[int, ...]] = [()] * count
        self.takes: list[tuple[int, ...]] = [()] * count
        """Values whose memory the result takes over if this command is the last to read there; the first goes."""
        self.scratch = [0] * count
        """Bytes that live only while the command runs."""
        self.block: list[int] = []
        """For each value the block that it lies in, unless it takes over another."""
        self.nbytes: list[int] = []
        """Bytes of the block of each value, as they are."""
        self.sizes: list[int] = []
        """Bytes that each block takes; 0 for outputs, and for values that are not the first of their block."""
        self.readers: list[list[int]] = []
        self.is_output: list[bool] = []
        self._layouts = dict(joins.layouts)
        self._wholes: dict[Node, int] = {}
        self._number: dict[Node, int] = {}
        self._outputs = set(commands.outputs)
        self._picked = {(g.inputs[0], g.attributes[0]): g.node for g in commands.aliases if g.op.view is None}
        for n, group in enumerate(commands.groups):
            self._add(n, group)
        self.outstanding = [0] * len(self.block)
        """For each block, how often it is still to be made or read before anything has run."""
        for v, b in enumerate(self.block):
            self.outstanding[b] += 1 + len(self.readers[v])

    def __len__(self) -> int:
        return len(self.reads)

    def wholes(self) -> list[tuple[Node, int]]:
        """Values that others are joined in, with their blocks."""
        return [(whole, self._wholes[whole]) for whole in dict.fromkeys(self.joins.whole.values())]

    # ---- building
    def _add(self, n: int, group: NodeGroup) -> None:
        node, number, origin = group.node, self._number, self.commands.origin
        read = dict.fromkeys([number[y] for x in group.inputs if (y := origin.get(x, x)) in number])
        self.reads[n] = tuple(read)
        for v in read:
            self.readers[v].append(n)
        if isinstance(node.spec, TupleSpec):
            self.scratch[n] = self._rounded(self.inside(group) if group.op.bodies else
                                            self._decided(group, node.spec.parts).workspace)
            self.makes[n] = tuple([self._value(self._picked.get((node, i)), part)
                                   for i, part in enumerate(node.spec.parts)])
            return
        decided = self._decided(group, (node.spec,))
        self.scratch[n] = self._rounded(decided.workspace)
        if node not in self.joins.whole and decided.inplace and not self._is_donated(n, group, decided):
            self.takes[n] = self._takes(group, decided)
        self.makes[n] = (self._value(node, node.spec),)

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self.alignment) * self.alignment

    def _value(self, node: Node | None, spec: TensorSpec) -> int:
        """A number for a value; results that nobody picks have no node."""
        v = b = len(self.block)
        whole, is_output = node, False
        if node is not None:
            self._number[node] = v
            whole = self.joins.whole.get(node, node)
            b = self._wholes.setdefault(whole, v)
            is_output = whole in self._outputs
            spec = whole.spec
        self.nbytes.append(0 if is_tape(spec) else max(spec.nbytes, 1))
        self.sizes.append(self._rounded(self.nbytes[v]) if b == v and not is_output else 0)
        self.block.append(b)
        self.readers.append([])
        self.is_output.append(is_output)
        return v

    def _layout(self, x: Node) -> Layout:
        layout = self._layouts.get(x)
        if layout is None:
            layout = self._layouts[x] = x.spec.layout()
        return layout

    def _decided(self, group: NodeGroup, specs: Sequence[TensorSpec]) -> Decision:
        outs = (self._layout(group.node),) if group.node in self.joins.layouts else tuple([s.layout() for s in specs])
        command = Command(group.op.name, group.attributes, tuple(map(self._layout, group.inputs)), outs)
        return self.commands.decider.decide(group.op, command)

    def _is_donated(self, n: int, group: NodeGroup, decided: Decision) -> bool:
        """Tell whether an update lands in the memory of the input that it replaces."""
        target = self.commands.updates.get(group.node)
        if target is None or target.op is not PLACEHOLDER or n not in self.commands.settled:
            return False
        origin, out = self.commands.origin, self._layout(group.node)
        return all(i in decided.inplace and self._layout(x) == out for i, x in enumerate(group.inputs)
                   if origin.get(x, x) is target)

    def _takes(self, group: NodeGroup, decided: Decision) -> tuple[int, ...]:
        """Inputs that lie as the result would, in memory of that size which nothing else is read from."""
        out, nbytes = self._layout(group.node), max(group.node.spec.nbytes, 1)
        lies = [self._lies_in(x) for x in group.inputs]
        found = []
        for i in decided.inplace:
            v = lies[i]
            if v < 0 or self.is_output[v] or self.nbytes[self.block[v]] != nbytes:
                continue
            if all(j in decided.inplace and self._layout(group.inputs[j]) == out
                   for j, other in enumerate(lies) if other >= 0 and self.block[other] == self.block[v]):
                found.append(v)
        return tuple(found)

    def _lies_in(self, x: Node) -> int:
        """The value, computed here, that x is or is a view of; -1 for what is given."""
        return self._number.get(self.commands.origin.get(x, x), -1)

    # ---- measuring
    def bound(self, order: Sequence[int]) -> int:
        """The most bytes that live at one command: no plan for that order can be smaller."""
        return max(self.profile(order), default=0)

    def profile(self, order: Sequence[int]) -> list[int]:
        """Bytes that live while each command runs."""
        first, last, free = self.lives(order)
        change = [0] * (len(order) + 1)
        for b, size in enumerate(self.sizes):
            if size and first[b] >= 0 and not free[b]:
                change[first[b]] += size
                change[last[b] + 1] -= size
        scratch = self.scratch
        return [live + scratch[n] for live, n in zip(accumulate(change), order, strict=False)]

    def lives(self, order: Sequence[int]) -> tuple[list[int], list[int], list[bool]]:
        """For each block the places in the order where it is first and last needed (-1: never, it is another's), and
        whether it turns out to be an output's."""
        count = len(self.block)
        first, last, free = [-1] * count, [-1] * count, [False] * count
        lies, left = list(self.block), list(self.outstanding)
        makes, reads, takes = self.makes, self.reads, self.takes
        for at, n in enumerate(order):
            for v in takes[n]:
                b = lies[v]
                if left[b] == 1:
                    (y,) = makes[n]
                    lies[y] = b
                    left[b] += len(self.readers[y])
                    free[b] = free[b] or self.is_output[y]
                    break
            else:
                for v in makes[n]:
                    b = lies[v]
                    left[b] -= 1
                    if first[b] < 0:
                        first[b] = at
                    if not left[b]:
                        last[b] = at
            for v in reads[n]:
                b = lies[v]
                left[b] -= 1
                if not left[b]:
                    last[b] = at
        return first, last, free

    def least(self) -> int:
        """A bound that no order goes below: the most that one command needs at once."""
        free = self._may_be_outputs()
        most = 0
        for n, scratch in enumerate(self.scratch):
            needed = {self.block[v] for v in self.reads[n]}
            if not self.takes[n]:
                needed.update([self.block[v] for v in self.makes[n]])
            most = max(most, scratch + sum([self.sizes[b] for b in needed - free]))
        return most

    def _may_be_outputs(self) -> set[int]:
        """Blocks that an output may take over, and so may be one from the beginning."""
        found: set[int] = set()
        for n in range(len(self) - 1, -1, -1):
            if self.takes[n]:
                (y,) = self.makes[n]
                if self.is_output[y] or self.block[y] in found:
                    found.update([self.block[v] for v in self.takes[n]])
        return found

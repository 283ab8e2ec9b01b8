"""The commands of one line, numbered, and which of them must come before which.

Views and picked results are no commands: they stand right behind what they are taken from, where they prolong no life.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from nnc_core.base.layout import Layout
from nnc_core.device import NO_VIEWS
from nnc_core.engine.decide import Decider
from nnc_core.engine.failing import may_fail
from nnc_core.engine.groups import NodeGroup
from nnc_core.operator.control import PICK, is_tape
from nnc_core.operator.host import CALLBACK
from nnc_core.symbol import Node, postorder
from nnc_core.type import TupleSpec


class Commands:
    """`groups` come inputs first.  `updates`: output -> the input whose memory it takes, after all other readers.

    Commands are numbered in the order given; `written` is that order with updates behind the other readers.
    `effectful`: results of loops and branches that call Python; `failing`: of those in which a command may fail.
    """

    def __init__(self, groups: Sequence[NodeGroup], outputs: Sequence[Node], updates: Mapping[Node, Node],
                 decider: Decider, effectful: Container[Node] = (), failing: Container[Node] = ()) -> None:
        self.decider, self.outputs, self.updates = decider, list(outputs), updates
        self.views = NO_VIEWS not in decider.device.spec.features
        self.groups: list[NodeGroup] = []
        self.number: dict[Node, int] = {}
        self.aliases: list[NodeGroup] = []
        self.origin: dict[Node, Node] = {}
        """For views and picked results: the value, computed or given, in whose memory they lie."""
        self.layouts: dict[Node, Layout] = {}
        """Layouts of values in their memory; leaves, and what no array holds, are left out."""
        self.before: list[list[int]] = []
        """Commands that each must come after, ascending, each once."""
        self._needs: dict[Node, tuple[int, ...]] = {}
        self.settled: set[int] = set()
        """Updates that every other reader of their target runs before."""
        own = set(outputs)
        for group in groups:
            self._add(group, own)
        self.written = list(range(len(self.groups)))
        self._updates_last(failing)
        self._effects_in_order(effectful)

    # ---- what there is
    def _add(self, group: NodeGroup, outputs: set[Node]) -> None:
        node = group.node
        needed = self._needs_of(group.inputs)
        if group.op is PICK:
            self.origin[node] = node
        elif group.op.view is not None and node not in outputs:
            seen = self._seen(group)
            if seen is not None:
                self.origin[node] = self.origin.get(group.inputs[0], group.inputs[0])
                self._alias(group, seen, needed)
                return
        if not isinstance(node.spec, TupleSpec) and not is_tape(node.spec):
            self.layouts[node] = node.spec.layout()
        if group.op is PICK:
            self.aliases.append(group)
            self._needs[node] = needed
            return
        self.number[node] = len(self.groups)
        self._needs[node] = (len(self.groups),)
        self.groups.append(group)
        self.before.append(list(needed))

    def _alias(self, group: NodeGroup, seen: Layout, needed: tuple[int, ...]) -> None:
        self.layouts[group.node] = seen
        self.aliases.append(group)
        self._needs[group.node] = needed

    def _needs_of(self, inputs: Sequence[Node]) -> tuple[int, ...]:
        needs = self._needs
        found = [needs[x] for x in inputs if x in needs]
        if len(found) <= 1:
            return found[0] if found else ()
        return tuple(sorted({n for numbers in found for n in numbers}))

    def _seen(self, group: NodeGroup) -> Layout | None:
        """The layout of a view, if the device needs no command for it."""
        assert group.op.view is not None
        seen = group.op.view(self.layout_of(group.inputs[0]), *group.attributes)
        return seen if seen is not None and (self.views or seen == group.node.spec.layout()) else None

    def layout_of(self, x: Node) -> Layout:
        return self.layouts.get(x) or x.spec.layout()

    # ---- what has to wait
    def _updates_last(self, failing: Container[Node]) -> None:
        """Each update comes after the other readers of its target, through views, and after what may fail; not after
        those that have to run after it, because they need the new value or wait for another update that does."""
        update_of = {target: self._needs[y][-1] for y, target in self.updates.items() if y in self._needs}
        if not update_of:
            return
        readers: dict[Node, list[int]] = {}
        for n, group in enumerate(self.groups):
            for target in dict.fromkeys([self.origin.get(x, x) for x in group.inputs]):
                if target in update_of:
                    readers.setdefault(target, []).append(n)
        device = self.decider.device
        fallible = [n for n, group in enumerate(self.groups) if may_fail(group, device) or group.node in failing]
        users = self.users()
        late: dict[int, list[int]] = {}
        unsettled: set[int] = set()
        for target in (*readers, *[t for t in update_of if t not in readers]):
            found, update = readers.get(target, []), update_of[target]
            wanted = sorted({*found, *fallible})
            later = _from(update, users) if wanted not in ([], [update]) else {update}
            before = [n for n in wanted if n not in later]
            if found and len(set(before).intersection(found)) == len(found) - (update in found):
                self.settled.add(update)
            else:
                unsettled.add(update)
            for n in before:
                users[n].append(update)
            late[update] = sorted({*late.get(update, ()), *before})
        self.settled -= unsettled
        late = {update: found for update, found in late.items() if found}
        if late:
            self.written = self._in_line(late)
            for update, found in late.items():
                self.before[update] = sorted({*self.before[update], *found})

    def _in_line(self, late: Mapping[int, Sequence[int]]) -> list[int]:
        """The commands that the outputs need, in their order, inputs before users and readers before updates."""
        links = [_Link(n) for n in range(len(self.groups))]
        for n, link in enumerate(links):
            own = [m for x in self.groups[n].inputs for m in self._needs.get(x, ())]
            link.inputs = tuple([links[m] for m in dict.fromkeys(own)])
        after = {id(links[update]): [links[n] for n in found] for update, found in late.items()}
        roots = [links[m] for y in self.outputs for m in self._needs.get(y, ())]
        return [link.number for link in postorder(roots, (), after)]

    def _effects_in_order(self, effectful: Container[Node]) -> None:
        """Keep commands with effects in the order written."""
        last = -1
        for n in self.written:
            if self.groups[n].op is CALLBACK or self.groups[n].node in effectful:
                if last >= 0 and last not in self.before[n]:
                    self.before[n] = sorted({*self.before[n], last})
                last = n

    def users(self) -> list[list[int]]:
        """Commands that must come after each."""
        found: list[list[int]] = [[] for _ in self.groups]
        for n, needed in enumerate(self.before):
            for m in needed:
                found[m].append(n)
        return found

    # ---- back to groups
    def alias_nodes(self) -> set[Node]:
        return {group.node for group in self.aliases}

    def in_order(self, order: Sequence[int]) -> list[NodeGroup]:
        """All groups: commands in this order, each alias as soon as what it needs is there."""
        waiting: dict[int, list[NodeGroup]] = {}
        position = {n: at for at, n in enumerate(order)}
        for alias in self.aliases:
            last = max([position[n] for n in self._needs[alias.node]], default=-1)
            waiting.setdefault(last, []).append(alias)
        found = list(waiting.get(-1, ()))
        for at, n in enumerate(order):
            found.append(self.groups[n])
            found += waiting.get(at, ())
        return found


class _Link:
    """A command linked to those that it needs."""

    __slots__ = ("inputs", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.inputs: tuple[_Link, ...] = ()


def _from(command: int, users: Sequence[Sequence[int]]) -> set[int]:
    """A command and everything that runs after it."""
    found, pending = {command}, [command]
    while pending:
        new = [n for n in users[pending.pop()] if n not in found]
        found.update(new)
        pending += new
    return found

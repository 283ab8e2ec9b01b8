"""Fused commands around library code: what stands before and behind an operator is offered to the code that runs it.

Library code cannot be written into a nest, and a nest not into it.  So it is asked, program by program, as the group
around its operator grows: with what follows first (a bias, an activation, a residual, a cast), then with what comes
before.  The largest group that it does not refuse becomes a command; the code is that of the operator by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from nnc_core.device import CommandBackend
from nnc_core.engine.decide import Decider, packed_command
from nnc_core.engine.fusion.writing import Programs, ProgramWriter
from nnc_core.engine.groups import LEAVES, NodeGroup, is_number
from nnc_core.operator.control import PICK
from nnc_core.operator.fused import FUSED, command_of
from nnc_core.operator.packing import PACK
from nnc_core.operator.program import Program
from nnc_core.symbol import Node
from nnc_core.type import TupleSpec, is_static

MOST_STEPS = 32
MOST_REFUSED = 8
"""Offers in a row that are refused before no more are made."""


Taken: TypeAlias = "dict[Node, Sequence[NodeGroup] | None]"
"""Groups by their results: one, and one for each of several results; None for their other members."""


def accepted_offers(nodes: Sequence[Node], outputs: Iterable[Node], decider: Decider, programs: Programs) -> Taken:
    """The groups around library code.

    The code refuses what it has not.  All that a group computes but its last results, none of which waits for anything
    but the group, is read within it alone, or by the user, so that no way leads out of a group and back.
    """
    fusing = decider.abilities.fusing
    if not fusing:
        return {}
    offers = Offers(nodes, outputs, decider, programs)
    for node in nodes:
        if _anchor_name(node) in fusing and node not in offers.taken:
            offers.grow(node)
    return offers.taken


def _anchor_name(node: Node) -> str:
    if node.op is not FUSED:
        return node.op.name
    program: Program = node.attributes[0]
    return program.library_operator


class Offers:
    """The groups that grow in a list of nodes."""

    def __init__(self, nodes: Sequence[Node], outputs: Iterable[Node], decider: Decider, programs: Programs) -> None:
        self.decider, self.programs = decider, programs
        self.position = {node: n for n, node in enumerate(nodes)}
        self.outputs = set(outputs)
        self.readers: dict[Node, list[Node]] = {}
        for node in nodes:
            for x in dict.fromkeys(node.inputs):
                self.readers.setdefault(x, []).append(node)
        self.taken: Taken = {}
        self._plain: dict[Node, bool] = {}
        self._refusals: dict[tuple[int, Program], str | None] = {}

    def grow(self, anchor: Node) -> None:
        """Take the largest group around an operator that its code accepts, if there is one."""
        if not self.is_plain(anchor):
            return
        backend = self.decider.decide(anchor.op, packed_command(anchor)).candidate
        if backend is None or not backend.fuses:
            return
        growth = GrowingGroup(self, anchor, backend)
        growth.forwards()
        growth.aside()
        growth.backwards()
        groups = growth.groups()
        if len(growth.members) > 1:
            self.taken |= dict.fromkeys(growth.members)
        if len(growth.members) > 1 or groups[0].left:
            self.taken |= dict.fromkeys([*growth.beside, growth.result], groups)

    def joins(self, node: Node) -> bool:
        """Tell whether a node may be offered at all."""
        return node in self.position and node not in self.taken and self.is_plain(node) and not (
            node.op in LEAVES or is_number(node) or node.op is PICK)

    def is_plain(self, node: Node) -> bool:
        """Tell whether a node can be a step, which is asked for each group that it might join."""
        known = self._plain.get(node)
        if known is None:
            known = self._plain[node] = _is_plain(node)
        return known

    def refusal(self, backend: CommandBackend, program: Program) -> str | None:
        """The reason why library code refuses a program, or None.  Steps of recurrences ask for the same again and
        again."""
        key = id(backend), program
        if key not in self._refusals:
            self._refusals[key] = self._refusal(backend, program)
        return self._refusals[key]

    def _refusal(self, backend: CommandBackend, program: Program) -> str | None:
        if program in self.decider.refused_programs:
            return f"{backend.name} takes no {program}: it was refused before"
        reason = backend.refuse(command_of(program))
        return None if reason is None else f"{backend.name} takes no {program}: {reason}"


class GrowingGroup:
    """One group as it grows."""

    def __init__(self, offers: Offers, anchor: Node, backend: CommandBackend) -> None:
        self.offers, self.anchor, self.backend = offers, anchor, backend
        self.members = [anchor]
        """The largest that was accepted, inputs first."""
        self.result = anchor
        self.beside: list[Node] = []
        """Results that read the same as the last one does, and come before it."""
        self.refusal = ""
        """Why the smallest group that is larger was refused; empty where nothing was."""

    def forwards(self) -> None:
        """Offer readers, the first of them first: each group that has one result."""
        tried, refused = Tried(self.offers, self.backend.several), 0
        tried.add(self.anchor)
        while tried.pending and len(tried.members) < MOST_STEPS and refused < MOST_REFUSED:
            _, node = heappop(tried.pending)
            if not self.offers.joins(node):
                return  # what it reads stays a result, beside whatever comes later
            tried.add(node)
            if tried.is_result(node):
                accepted = self._offer(tried.members, node, tried.writer)
                refused = 0 if accepted else refused + 1

    def aside(self) -> None:
        """Offer all that reads the result, if that is several and they are smaller: it is not written then."""
        *beside, last = self.offers.readers.get(self.result, [self.result])
        if not beside or not self.backend.several or self.result in self.offers.outputs:
            return
        members = [*self.members, *beside, last]
        if len(members) > MOST_STEPS or not all(map(self._needs_no_other, (*beside, last))):
            return
        if sum([x.spec.nbytes for x in (*beside, last)]) >= self.result.spec.nbytes:
            return
        self.beside = beside
        if not self._offer(members, last, ProgramWriter(self.offers.programs, members)):
            self.beside = []

    def _needs_no_other(self, node: Node) -> bool:
        """Tell whether a node may join, and reads the group, inputs of the graph and numbers alone."""
        return self.offers.joins(node) and all(
            x in self.members or x.op in LEAVES or is_number(x) for x in node.inputs)

    def backwards(self) -> None:
        """Offer what is read here alone, but for inputs that were wanted packed."""
        refused: set[Node] = set()
        while len(self.members) < MOST_STEPS:
            x = next(self._before(refused), None)
            if x is None or len(refused) >= MOST_REFUSED:
                return
            members = sorted([*self.members, x], key=self.offers.position.__getitem__)
            if not self._offer(members, self.result, ProgramWriter(self.offers.programs, members)):
                refused.add(x)

    def _before(self, refused: set[Node]) -> Iterator[Node]:
        """The nodes that are read here alone and may be offered."""
        own, offers = set(self.members), self.offers
        for x in dict.fromkeys([x for m in self.members for x in m.inputs]):
            left_out = x in own or x in refused or x in offers.outputs or x.op is PACK
            if not left_out and own.issuperset(offers.readers[x]) and offers.joins(x):
                yield x

    def groups(self) -> list[NodeGroup]:
        """The command, and its results where there are several; or the operator by itself."""
        writer, results = ProgramWriter(self.offers.programs, self.members), self._results(self.members, self.result)
        program = self.offers.programs.own(writer.program(results, library=self.anchor))
        if len(self.members) == 1 or program is None:
            self.members, self.result, self.beside = [self.anchor], self.anchor, []
            return [NodeGroup.of(self.anchor)._replace(left=self.refusal)]
        inputs, lines = tuple(writer.inputs), tuple(writer.lines)
        if len(results) == 1:
            return [NodeGroup(FUSED, inputs, (program,), self.result, lines, self.refusal)]
        spec = TupleSpec(tuple([x.spec for x in results]))
        node = Node(FUSED, inputs, (program,), spec, self.result.line)
        return [NodeGroup(FUSED, inputs, (program,), node, lines, self.refusal),
                *[NodeGroup(PICK, (node,), (k,), x) for k, x in enumerate(results)]]

    def _results(self, members: Sequence[Node], last: Node) -> list[Node]:
        """The values that are wanted outside."""
        given = self.offers.outputs.union(self.beside)
        return [*[m for m in members if m is not last and m in given], last]

    def _offer(self, members: Sequence[Node], result: Node, writer: ProgramWriter) -> bool:
        program = writer.program(self._results(members, result), library=self.anchor)
        refusal = self.offers.refusal(self.backend, program)
        if refusal is None:
            self.members, self.result, self.refusal = list(members), result, ""
        else:
            self.refusal = self.refusal or refusal
        return refusal is None


class Tried:
    """Members in order, as readers join one by one: what reads them next, and what is still read elsewhere."""

    def __init__(self, offers: Offers, several: bool) -> None:
        """`several`: the user may read a member too, as one of several results."""
        self.offers, self.several = offers, several
        self.members: list[Node] = []
        self.writer = ProgramWriter(offers.programs)
        self.pending: list[tuple[int, Node]] = []
        """Readers that have not joined, the first of them first; what they read stands before them."""
        self._met: set[Node] = set()
        self._elsewhere: dict[Node, int] = {}
        """For members that are read by others than members, by how many."""

    def add(self, node: Node) -> None:
        readers = self.offers.readers.get(node, ())
        for x in dict.fromkeys(node.inputs):
            if x in self._elsewhere:
                self._elsewhere[x] -= 1
                if not self._elsewhere[x]:
                    del self._elsewhere[x]
        elsewhere = len(readers) + (not self.several and node in self.offers.outputs)
        if elsewhere:
            self._elsewhere[node] = elsewhere
        self.members.append(node)
        self.writer.write(node)
        for reader in readers:
            if reader not in self._met:
                self._met.add(reader)
                heappush(self.pending, (self.offers.position[reader], reader))

    def is_result(self, node: Node) -> bool:
        """Tell whether all but the member that joined last are read among the members alone, or by the user if there
        may be several results."""
        return len(self._elsewhere) == (node in self._elsewhere)


def _is_plain(node: Node) -> bool:
    """True for what can be a step: one array, made of arrays, without effects, by no chance, sizes being numbers."""
    op = node.op
    if any(isinstance(x.spec, TupleSpec) for x in (node, *node.inputs)):
        return False
    if op.host or op.bodies or op.random or op.control_dependency or op.virtual or op.data_dependent or op.fallible:
        return False
    return op.reference is not None and all(is_static(x.shape) and 0 not in x.shape for x in (node, *node.inputs))


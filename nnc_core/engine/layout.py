"""Laying out: inputs that library code wants in another order of elements are packed before it reads them.

What is wanted becomes an operator of the graph (`pack`), so that equal ones are one, loops compute it once before
their rounds, and constants are packed when the graph is compiled.  The operator that wants it becomes a program, which
unpacks the input and runs the operator: a fused command whose code is that of the operator by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.tiling import HostArray, Tiling
from nnc_core.engine.decide import Decider, packed_command
from nnc_core.engine.execute import Executor
from nnc_core.engine.groups import is_number
from nnc_core.engine.transposed import Transposed
from nnc_core.graph import Graph, SymbolicGraph
from nnc_core.operator import CONSTANT, Nodes, Operator
from nnc_core.operator.control import LOOP, LoopAttributes
from nnc_core.operator.fused import FUSED
from nnc_core.operator.packing import PACK, UNPACK
from nnc_core.operator.program import Input, Operand, Program, Step, StepResult
from nnc_core.operator.program import Literal as Number
from nnc_core.symbol import Literal, Node, Table, bodies_in
from nnc_core.type import TensorSpec, TupleSpec, is_static

ROUNDS = 4
"""Rounds of a loop for which packing what they read pays."""
TOGETHER = 1 << 22
"""Bytes of constants that are given up before memory goes back to the system."""


def lay_out(graph: SymbolicGraph, layer: Graph, decider: Decider, executor: Executor) -> SymbolicGraph:
    """The graph with inputs packed for those that want them so; itself, unseen, where no library code of the device
    does."""
    if not decider.abilities.wanting and not decider.abilities.replacing:
        return graph
    packed = Constants(executor, readers_of(graph), frozenset(captured_in(graph.nodes)))
    open_one = partial(LayingOut, decider=decider, packed=packed)
    laid = layer.rebuilt(graph, layer.optimiser.operator.open(open_one))
    moved = layer.hoist(laid)
    return laid if moved is laid else layer.rebuilt(moved, layer.optimiser.operator.open(open_one))


def readers_of(graph: SymbolicGraph) -> Counter[Literal]:
    """Count how often each constant is read; none is counted where bodies may read it as well."""
    if any(node.op.bodies for node in graph.nodes):
        return Counter()
    read = [*graph.outputs.values(), *[x for node in graph.nodes for x in node.inputs]]
    return Counter([x.attributes[0] for x in read if x.op is CONSTANT])


def captured_in(nodes: Iterable[Node]) -> Iterator[Node]:
    """Placeholders in bodies of loops that stand for the same in all of several rounds."""
    for node in nodes:
        if node.op is LOOP:
            loop = LoopAttributes.of(node)
            if loop.cond is None and isinstance(loop.length, int) and loop.length >= ROUNDS:
                yield from loop.captured
        for body in bodies_in(node.attributes) if node.op.bodies else ():
            yield from captured_in(body.nodes)


class Constants:
    """Constants packed by now, on the device; `fixed`: what is packed once for many rounds of a loop."""

    def __init__(self, executor: Executor, readers: Mapping[Literal, int], fixed: frozenset[Node]) -> None:
        self.executor, self.readers, self.fixed, self._given_up = executor, readers, fixed, 0
        self._known: dict[tuple[Node, Tiling], Literal] = {}

    def packed(self, x: Node, tiling: Tiling) -> Literal | None:
        """A constant, or a view of one, packed; None for anything else."""
        key = (x, tiling)
        if key not in self._known:
            host = self._host(x)
            if host is None:
                return None
            packed = Literal(self.executor.upload(tiling.pack(host)), self.executor.device.spec.id)
            del host
            self._known[key] = packed
            if x.op is CONSTANT and x.attributes[0].spare and self.readers[x.attributes[0]] == 1:
                self._give_up(x, partial(self._unpacked, packed, tiling, x.spec.static_shape))
        return self._known[key]

    def _give_up(self, x: Node, make: Callable[[], Any]) -> None:
        """Let the memory of a constant go: of several together, since that takes a while."""
        x.attributes[0].give_up(make)
        self._given_up += x.spec.nbytes
        if self._given_up >= TOGETHER:
            self.executor.device.trim()
            self._given_up = 0

    def _unpacked(self, packed: Literal, tiling: Tiling, shape: tuple[int, ...]) -> Any:
        """Undo the packing, for whoever wants a constant as it was all the same."""
        return tiling.unpack(self.executor.seen(packed.array), shape)

    def knows(self, x: Node) -> bool:
        """Tell whether a node is a constant, the same in all rounds of a loop, or a view of one of these."""
        behind = _behind_views(x)[0]
        return behind.op is CONSTANT or behind in self.fixed

    def _host(self, x: Node) -> Any:
        x, views = _behind_views(x)
        if x.op is not CONSTANT:
            return None
        literal: Literal = x.attributes[0]
        host = self.executor.seen(literal.array) if literal.device else literal.array
        for view in reversed(views):
            assert view.op.reference is not None
            host = view.op.reference(host, *view.attributes)
        return host


def _behind_views(x: Node) -> tuple[Node, list[Node]]:
    """The node that views are of, and these, the last first."""
    views: list[Node] = []
    while x.op.view is not None and x.op.exact and len(x.inputs) == 1:
        views.append(x)
        (x,) = x.inputs
    return x, views


class LayingOut(Nodes):
    """Nodes that read what they want packed."""

    def __init__(self, operator: Operator, table: Table, decider: Decider, packed: Constants) -> None:
        super().__init__(operator, table)
        self.decider, self.packed = decider, packed
        self.transposed = Transposed(self)

    def fresh(self) -> LayingOut:
        return self.operator.open(partial(LayingOut, decider=self.decider, packed=self.packed))

    def stays(self, x: Node) -> bool:
        """Tell whether a node is a constant, or the same in all of several rounds of a loop: what is made of it alone
        is made once."""
        return self.packed.knows(x)

    def constant_of(self, array: HostArray) -> Node:
        """A constant with the elements of a host array."""
        return self.constant(Literal(array), TensorSpec(array.shape, array.dtype))

    def simplify(self, node: Node) -> Node:
        if self.transposed.known and (sunk := self.transposed.sunk(node)) is not None:
            return sunk
        if node.op is PACK:
            literal = self.packed.packed(node.inputs[0], node.attributes[0])
            return node if literal is None else self.constant(literal, node.spec)
        abilities, name = self.decider.abilities, node.op.name
        if (name not in abilities.wanting and name not in abilities.replacing) or not _is_plain(node):
            return node
        if name in abilities.replacing and (other := self._instead(node)) is not None:
            return other
        wanted = self._wanted(node)
        return self._reading_packed(node, wanted) if wanted else node

    def _instead(self, node: Node) -> Node | None:
        """The result by other operators, which library code asks for that would go before the node's, or is that."""
        command = packed_command(node)
        if self.decider.pins.of(command) is not None:
            return None
        chosen = self.decider.decide(node.op, command).candidate
        for backend in self.decider.device.all_backends(node.op.name):
            found: Node | None = backend.instead(self, node.inputs, command)
            if found is not None:
                return self.transposed.note(found)
            if backend is chosen:
                return None
        return None

    def _wanted(self, node: Node) -> Mapping[int, Tiling]:
        """The conversions that the node's code wants, and takes."""
        command = packed_command(node)
        backend = self.decider.decide(node.op, command).candidate
        wanted = {} if backend is None else backend.wants(command)
        if not wanted:
            return {}
        assert backend is not None
        if backend.packs:
            wanted = {i: tiling for i, tiling in wanted.items() if self.packed.knows(node.inputs[i])}
            if not wanted:
                return {}
        program = reading_packed(node, wanted)
        layouts = tuple([x.layout() for x in program.inputs])
        taken = Command(FUSED.name, (program,), layouts, command.outputs)
        refused = program in self.decider.refused_programs or backend.refuse(taken) is not None
        return {} if refused else wanted

    def _reading_packed(self, node: Node, wanted: Mapping[int, Tiling]) -> Node:
        given = [self.apply(PACK, (x,), (wanted[i],)) if i in wanted else x
                 for i, x in enumerate(node.inputs) if not is_number(x)]
        return self.apply(FUSED, tuple(given), (reading_packed(node, wanted),))


def reading_packed(node: Node, wanted: Mapping[int, Tiling]) -> Program:
    """The program of a node some of whose inputs are packed."""
    steps, operands, inputs = list[Step](), list[Operand](), list[Any]()
    for i, x in enumerate(node.inputs):
        if is_number(x):
            assert x.op.reference is not None
            operands.append(Number.of(x.op.reference(*x.attributes), x.dtype))
            continue
        spec = x.spec if i not in wanted else PACK.infer(x.spec, wanted[i])
        inputs.append(spec)
        operands.append(Input(len(inputs) - 1))
        if i in wanted:
            steps.append(Step(UNPACK, (wanted[i], x.spec.static_shape), (operands[-1],), x.spec))
            operands[-1] = StepResult(len(steps) - 1)
    steps.append(Step(node.op, node.attributes, tuple(operands), node.spec))
    return Program(tuple(steps), tuple(inputs), (len(steps) - 1,), library=len(steps) - 1)


def _is_plain(node: Node) -> bool:
    return not isinstance(node.spec, TupleSpec) and all(is_static(x.shape) for x in (node, *node.inputs))

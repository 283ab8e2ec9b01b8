"""Steps of several operators that one program has computed: one entry of the dynamic graph for all who go by calls,
operator by operator for all who ask for the inputs of a value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

from nnc_core.engine import ComputationGraph
from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Line, Node
from nnc_core.values.value import Step, Value

_unfolding = threading.RLock()


@dataclass(frozen=True, slots=True, eq=False)
class JointProgram:
    """A function written down as nodes, and compiled; two of them are the same if they are one object."""

    run: ComputationGraph
    read: tuple[tuple[str, int], ...]
    """Inputs of the graph, with the places of the operands whose arrays they are."""
    inputs: tuple[Node, ...]
    """The placeholders of all operands."""
    nodes: tuple[Node, ...]
    """Each operator, inputs first."""
    followed: frozenset[Node]
    """Nodes that a gradient may be asked through."""
    results: tuple[Node, ...]
    saved: tuple[Node, ...]
    """What the way back reads besides operands."""
    classes: tuple[type, ...]
    """Each result is a value, or a tensor."""
    whole: Callable[..., Any] | None
    """Makes the tuple or the list that holds them; None where there is one result alone."""


class JointCall:
    """A run of a program: what it was given, what its way back reads, and its results, while they live."""

    __slots__ = ("arrays", "inputs", "line", "program", "results", "unfolded")

    def __init__(self, program: JointProgram, inputs: tuple[Value, ...], arrays: Sequence[Any],
                 line: Line | None) -> None:
        self.program, self.inputs, self.arrays, self.line = program, inputs, arrays, line
        self.results: list[ref[Value]] = []
        self.unfolded: Mapping[Node, Value] | None = None

    def values(self) -> Mapping[Node, Value]:
        """A value for each node, with its step; of arrays those that were saved."""
        with _unfolding:
            if self.unfolded is None:
                self.unfolded = self._made()
            return self.unfolded

    def _made(self) -> dict[Node, Value]:
        program, stack = self.program, self.inputs[0].stack
        saved = dict(zip(program.saved, self.arrays, strict=True))
        known = {node: v for node, held in zip(program.results, self.results, strict=True) if (v := held()) is not None}
        made = dict(zip(program.inputs, self.inputs, strict=True))
        for node in program.nodes:
            v = known.get(node)
            if v is None:
                step = Step(node.op, tuple([made[x] for x in node.inputs]), node.attributes, self.line)
                v = Value(saved.get(node), stack, node.spec, step, node in program.followed)
            made[node] = v
        return made


class JointStep(Step):
    """The origin of a result: the operator that gives it, whose own inputs are made when somebody asks for them."""

    __slots__ = ("call", "node")

    def __init__(self, call: JointCall, node: Node) -> None:
        self.call, self.node, self.line = call, node, call.line
        self.op, self.attributes = node.op, node.attributes

    @property
    def inputs(self) -> tuple[Value, ...]:  # type: ignore[override]
        values = self.call.values()
        return tuple([values[x] for x in self.node.inputs])


def is_operator(node: Node) -> bool:
    """Tell whether a node computes something of operands."""
    return node.op is not PLACEHOLDER

"""The meaning of a compiled program: what each of its commands should read, without memory.

Every element of every value has a number of its own.  The blocks of a plan are carried out as the graph means them;
which way conditions and branches go is made up, so that every branch and several lengths of loops are seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import boolean
from nnc_core.base.layout import Layout
from nnc_core.engine import ComputationGraph
from nnc_core.engine.groups import is_number
from nnc_core.engine.program_tree import BranchesItem, Item, LoopItem, PlannedCommand
from nnc_core.operator import CONSTANT
from nnc_core.operator.control import PICK, is_tape
from nnc_core.symbol import Body, Node
from nnc_core.type import TupleSpec

Numbers = np.ndarray[Any, np.dtype[np.int64]]
"""One for each element of a value; a tape's value is a list of these, that of several results too."""
ROUNDS = (5, 0, 3, 1, 2, 9)
"""How often loops under conditions run, one after another."""
MOST_CALLS = 1500
"""Programs that run more calls are not followed to the end."""
MOVED = ("concat", "copy", "update_slice")
"""Operators besides views that move elements and compute nothing."""


class PlanError(AssertionError):
    """A record does something else than the graph means."""


class TooLongError(Exception):
    """The program runs more calls than are followed."""


class Execution(NamedTuple):
    """What one execution of a command should read, and what it computes."""

    inputs: list[Any]
    outputs: list[Numbers]


class Meaning:
    """The commands of a plan carried out on numbers, without memory."""

    def __init__(self, compiled: ComputationGraph, run: int) -> None:
        self.compiled, self.run = compiled, run
        self.next = 1
        self.leaves: dict[Node, Any] = {}
        self.executions: dict[int, list[Execution]] = {}
        """For each step, by its id."""
        self.decisions: list[tuple[Numbers, int]] = []
        """What conditions and indices are asked, in order, and what they are said to hold."""
        self.asked: Counter[int] = Counter()
        self.calls = 0
        self.scope: dict[Node, Any] = {}
        self.items(compiled.plan.items)
        self.outputs = {name: self.value(node) for name, node in compiled.outputs.items()}

    def fresh(self, shape: Sequence[int]) -> Numbers:
        size = int(np.prod(shape, dtype=np.int64))
        found = np.arange(self.next, self.next + size, dtype=np.int64).reshape(tuple(shape))
        self.next += size
        return found

    def leaf(self, node: Node) -> Any:
        if node not in self.leaves:
            if is_tape(node.spec):
                rows = ROUNDS[self.run]
                self.leaves[node] = [self.fresh(node.spec.shape[1:]) for _ in range(rows)]  # type: ignore[arg-type]
            else:
                self.leaves[node] = self.fresh(node.spec.static_shape)
        return self.leaves[node]

    def value(self, node: Node) -> Any:
        """What a node is now: computed, given, or seen in what is."""
        if node in self.scope:
            return self.scope[node]
        if node.op is CONSTANT or is_number(node) or node in self.compiled.graph.inputs.values():
            return self.leaf(node)
        if node.op is PICK:
            return self.value(node.inputs[0])[node.attributes[0]]
        if moves(node.op, node.attributes):
            return moved(node.op, [self.value(x) for x in node.inputs], node.attributes)
        raise PlanError(f"{node} is read before it is computed")

    # ---- items
    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            for step in item.planned:
                self.step(step)
            if item.group.op is PICK and item.group.node.op is not PICK:  # a result of a fused command
                self.scope[item.group.node] = self.value(item.group.inputs[0])[item.group.attributes[0]]
            if isinstance(item, LoopItem):
                self.loop(item)
            elif isinstance(item, BranchesItem):
                self.branches(item)

    def step(self, step: PlannedCommand) -> None:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise TooLongError
        op, node = step.group.op, step.group.node
        inputs = [self.value(x) for x in step.group.inputs]
        if moves(op, step.group.attributes):
            outputs = [moved(op, inputs, step.group.attributes)]
        else:
            outputs = [self.fresh(out.shape) for out in step.command.outputs]
        self.executions.setdefault(id(step), []).append(Execution(inputs, outputs))
        self.scope[node] = outputs if isinstance(node.spec, TupleSpec) else outputs[0]

    def loop(self, item: LoopItem) -> None:
        cond, body, length, n, _, reverse = item.loop
        carried, scanned, captured = item.loop.split([self.value(x) for x in item.group.inputs])
        stacked: list[list[Any]] = [[] for _ in body.outputs[n:]]
        limit = self.rounds(item, length, scanned)
        for i in count():
            if cond is None:
                if i == limit:
                    break
            elif not self.inside(cond, [*carried, *captured], item.cond, [item.test],
                                 lambda y, i=i: self.decide(y[0], i < limit)):
                break
            at = limit - 1 - i if reverse else i
            results = self.inside(body, [*carried, *[x[at] for x in scanned], *captured], item.body, item.results, list)
            carried = results[:n]
            for rows, y in zip(stacked, results[n:], strict=True):
                rows.append(y)
        if reverse:
            stacked = [rows[::-1] for rows in stacked]
        specs = item.group.node.spec.parts[n:]  # type: ignore[attr-defined]
        whole = [rows if is_tape(spec) else np.reshape(rows, spec.static_shape)
                 for rows, spec in zip(stacked, specs, strict=True)]
        self.scope[item.group.node] = [*carried, *whole]

    def rounds(self, item: LoopItem, length: Any, scanned: Sequence[Any]) -> int:
        if isinstance(length, int):
            return length
        if scanned:
            return len(scanned[0])
        self.asked[id(item)] += 1
        return ROUNDS[(self.asked[id(item)] - 1 + self.run) % len(ROUNDS)]

    def branches(self, item: BranchesItem) -> None:
        branches, _ = item.group.attributes
        index, *operands = [self.value(x) for x in item.group.inputs]
        self.asked[id(item)] += 1
        chosen = self.decide(index, (self.asked[id(item)] + self.run) % len(item.arms))
        self.scope[item.group.node] = self.inside(branches[chosen], operands, item.arms[chosen],
                                                   item.results[chosen], list)

    def decide(self, asked: Numbers, answer: int) -> int:
        self.decisions.append((asked, int(answer)))
        return answer

    def inside(self, body: Body, given: Sequence[Any], items: Sequence[Item], results: Sequence[Any],
               then: Any) -> Any:
        """`then` of the results of a body, each with memory of its own; its values are seen in it alone."""
        around, self.scope = self.scope, dict(zip(body.inputs, given, strict=True))
        self.items(items)
        found = then([self.value(y) for y in results])
        self.scope = around
        return found


def moves(op: Any, attributes: Any) -> bool:
    """Elements are moved only; a bitcast to booleans, which is no view of its operand's bytes, computes them."""
    return op.name in MOVED or (op.view is not None and (op.name, *attributes) != ("bitcast", boolean))


def moved(op: Any, inputs: Sequence[Any], attributes: Any) -> Any:
    if op.view is None:
        return op.reference(*inputs, *attributes)
    x = np.ascontiguousarray(inputs[0]).reshape(np.shape(inputs[0]))
    seen = op.view(Layout.packed(x.shape, x.dtype), *attributes)
    return np.ndarray(seen.shape, np.int64, x, seen.offset, seen.strides)

"""Programs that library code has loops of its own for: found in graphs as they are, whatever is around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from nnc_core.base.command import Command
from nnc_core.device import CommandBackend
from nnc_core.engine.groups import LEAVES, NodeGroup, is_number
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Input, Operand, Pattern, Program, Step, StepResult
from nnc_core.symbol import Node


def match(nodes: Sequence[Node], outputs: Iterable[Node], backends: Sequence[CommandBackend],
          refused: Container[Program], grouped: Mapping[Node, Sequence[NodeGroup] | None]) -> list[NodeGroup]:
    """A group for each node that computes, in the order given; earlier patterns are tried first.  `refused` programs
    are none; `grouped` are nodes that have groups already, by their results, None for the others."""
    offers = [(pattern, backend) for backend in backends for pattern in backend.programs]
    uses = Counter(x for node in nodes for x in node.inputs)
    uses.update(outputs)
    groups: list[NodeGroup] = []
    taken = set(grouped)
    first = {id(grouped[node]): node for node in reversed(nodes) if grouped.get(node) is not None}
    """Of what one command gives, all of which it computes at once."""
    for node in reversed(nodes):
        own = grouped.get(node)
        if own is not None and first[id(own)] is node:
            groups += reversed(own)
        if node.op in LEAVES or is_number(node) or node in taken:
            continue
        group = NodeGroup.of(node)
        for pattern, backend in offers:
            found = _Match(pattern, uses, taken)
            if not found.step(len(pattern) - 1, node):
                continue
            command = found.command(node)
            if command.attributes[0] not in refused and backend.refuse(command) is None:
                group = found.group(node)
                taken.update(found.steps.values())
                break
        groups.append(group)
    groups.reverse()
    return groups


class _Match:
    """Nodes in place of a pattern's steps and inputs."""

    def __init__(self, pattern: Pattern, uses: Counter[Node], taken: set[Node]) -> None:
        self.pattern, self.uses, self.taken = pattern, uses, taken
        self.steps: dict[int, Node] = {}
        self.inputs: dict[int, Node] = {}

    def step(self, number: int, node: Node) -> bool:
        """Tell whether a node can be that step, and what it reads the steps before."""
        name, operands = self.pattern[number]
        if node.op.name != name or len(node.inputs) != len(operands):
            return False
        if self.steps.setdefault(number, node) is not node:
            return False
        before = dict(self.steps), dict(self.inputs)
        orders = [node.inputs, node.inputs[::-1]] if node.op.commutative else [node.inputs]
        for inputs in orders:
            if all(self._operand(operand, x, node) for operand, x in zip(operands, inputs, strict=True)):
                return True
            self.steps, self.inputs = dict(before[0]), dict(before[1])
        return False

    def _operand(self, operand: Operand, x: Node, reader: Node) -> bool:
        if isinstance(operand, Input):
            return self.inputs.setdefault(operand.number, x) is x
        assert isinstance(operand, StepResult)
        alone = self.uses[x] == 1 and x not in self.taken and x.shape == reader.shape
        return alone and self.step(operand.number, x)

    def command(self, result: Node) -> Command:
        group = self.group(result)
        return Command(FUSED.name, group.attributes, tuple([x.spec.layout() for x in group.inputs]),
                       (result.spec.layout(),))

    def group(self, result: Node) -> NodeGroup:
        inputs = tuple([self.inputs[n] for n in range(len(self.inputs))])
        steps = tuple([Step(OPERATORS[name], self.steps[n].attributes, operands, self.steps[n].spec)
                       for n, (name, operands) in enumerate(self.pattern)])
        program = Program(steps, tuple([x.spec for x in inputs]), (len(steps) - 1,))
        lines = tuple([self.steps[n].line for n in range(len(steps))])
        return NodeGroup(FUSED, inputs, (program,), result, lines)

"""Nodes written as a program."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.engine.groups import is_number
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Input, Literal, Operand, Place, Program, Step, StepResult
from nnc_core.symbol import Line, Node


class ProgramWriter:
    """Writes nodes, inputs first, each with one result; programs among them are written out."""

    def __init__(self, members: Sequence[Node]) -> None:
        self.steps: list[Step] = []
        self.lines: list[Line | None] = []
        """The line of each step."""
        self.inputs: dict[Node, int] = {}
        self.number: dict[Node, int] = {}
        """The step that gives the value of each member."""
        self.library: dict[Node, int] = {}
        """The steps whose library code the programs among them are made for."""
        for node in members:
            if node.op is FUSED:
                self._write_out(node, node.attributes[0])
            else:
                self.steps.append(Step(node.op, node.attributes, tuple(map(self._operand, node.inputs)), node.spec))
            self.lines += [node.line] * (len(self.steps) - len(self.lines))
            self.number[node] = self.number.get(node, len(self.steps) - 1)

    def program(self, results: Sequence[Node], *, inner: tuple[int, ...] = (), anchor: Node | None = None,
                library: Node | None = None, places: tuple[Place, ...] = ()) -> Program:
        """The program that gives some of the members.  `library`: the one whose library code is to run it."""
        by = None if library is None else self.library.get(library, self.number[library])
        return Program(tuple(self.steps), tuple([x.spec for x in self.inputs]),
                       tuple([self.number[x] for x in results]), inner,
                       None if anchor is None else self.number[anchor], by, places)

    def _operand(self, x: Node) -> Operand:
        if x in self.number:
            return StepResult(self.number[x])
        if is_number(x):
            assert x.op.reference is not None
            return Literal.of(x.op.reference(*x.attributes), x.dtype)
        return Input(self.inputs.setdefault(x, len(self.inputs)))

    def _write_out(self, node: Node, program: Program) -> None:
        first, given = len(self.steps), list(map(self._operand, node.inputs))

        def moved(x: Operand) -> Operand:
            match x:
                case Input(number):
                    return given[number]
                case StepResult(number):
                    return StepResult(first + number)
                case _:
                    return x

        self.steps += [step._replace(operands=tuple(map(moved, step.operands))) for step in program.steps]
        self.number[node] = first + program.results[0]
        if program.library is not None:
            self.library[node] = first + program.library

"""Nodes written as programs: nodes of the same kinds that read each other in the same way are one program.

Clusters and groups of library code grow node by node, and networks are made of the same parts again and again.  So the
steps written so far are a place in a tree, where the next node leads on: nothing is written, hashed or compared that
was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from nnc_core.engine.decide import Decider
from nnc_core.engine.groups import is_number
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Input, Literal, Operand, Place, Program, Step, StepResult
from nnc_core.symbol import Line, Node
from nnc_core.type import TensorSpec

Read: TypeAlias = "int | Literal"
"""An operand: the number of a step, ~ the number of an input, or a number that the code holds."""


class WrittenSteps:
    """The steps written so far, and what has followed them."""

    __slots__ = ("_after", "_programs", "inputs", "library", "result", "steps")

    def __init__(self, steps: tuple[Step, ...] = (), inputs: tuple[TensorSpec, ...] = (), result: int = -1,
                 library: int = -1) -> None:
        self.steps, self.inputs, self.result, self.library = steps, inputs, result, library
        """`result`: the step that gives the value of the node written last; `library`: that whose library code it is
        made for."""
        self._after: dict[Any, WrittenSteps] = {}
        self._programs: dict[Any, Program] = {}

    def then(self, node: Node, reads: tuple[Read, ...], inputs: tuple[TensorSpec, ...]) -> WrittenSteps:
        """These steps and those of a node, which brings further inputs."""
        key = (node.op, node.attributes, node.spec, reads, inputs)
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = self._with(node, tuple(map(_operand, reads)), (*self.inputs, *inputs))
        return found

    def _with(self, node: Node, operands: tuple[Operand, ...], inputs: tuple[TensorSpec, ...]) -> WrittenSteps:
        first = len(self.steps)
        if node.op is not FUSED:
            step = Step(node.op, node.attributes, operands, node.spec)
            return WrittenSteps((*self.steps, step), inputs, first, first)
        program: Program = node.attributes[0]
        library = program.results[0] if program.library is None else program.library
        steps = _written_out(program, first, operands)
        return WrittenSteps((*self.steps, *steps), inputs, first + program.results[0], first + library)

    def program(self, results: tuple[int, ...], inner: tuple[int, ...], anchor: int | None, library: int | None,
                places: tuple[Place, ...]) -> Program:
        """The program that gives some of the steps, as one object."""
        key = (results, inner, anchor, library, places)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = Program(self.steps, self.inputs, results, inner, anchor, library, places)
        return found


def _operand(read: Read) -> Operand:
    if isinstance(read, Literal):
        return read
    return StepResult(read) if read >= 0 else Input(~read)


def _written_out(program: Program, first: int, given: Sequence[Operand]) -> list[Step]:
    """The steps of a program among others, from that number on."""
    def moved(x: Operand) -> Operand:
        match x:
            case Input(number):
                return given[number]
            case StepResult(number):
                return StepResult(first + number)
            case _:
                return x

    return [step._replace(operands=tuple(map(moved, step.operands))) for step in program.steps]


class Programs:
    """The programs of one list of nodes."""

    def __init__(self, decider: Decider) -> None:
        self.decider, self.begin = decider, WrittenSteps()
        self._numbers: dict[Node, Literal] = {}
        self._own: dict[Program, Program | None] = {}

    def own(self, program: Program) -> Program | None:
        """The program, if the device has code of its own for it: see `Decider.own_program`."""
        if program not in self._own:
            self._own[program] = self.decider.own_program(program)
        return self._own[program]

    def number(self, node: Node) -> Literal:
        """A number of the graph, as the code holds it."""
        found = self._numbers.get(node)
        if found is None:
            assert node.op.reference is not None
            found = self._numbers[node] = Literal.of(node.op.reference(*node.attributes), node.dtype)
        return found


class ProgramWriter:
    """Writes nodes, inputs first, each with one result; programs among them are written out."""

    def __init__(self, programs: Programs, members: Iterable[Node] = ()) -> None:
        self.programs, self.written = programs, programs.begin
        self.lines: list[Line | None] = []
        """The line of each step."""
        self.inputs: dict[Node, int] = {}
        """What is read, each with ~ its number."""
        self.number: dict[Node, int] = {}
        """The step that gives the value of each member."""
        self.library: dict[Node, int] = {}
        """The step whose library code each member is made for."""
        for node in members:
            self.write(node)

    def write(self, node: Node) -> None:
        """One node more."""
        reads, before = [], len(self.inputs)
        for x in node.inputs:
            read: Read | None = self.number.get(x)
            if read is None:
                read = self.programs.number(x) if is_number(x) else self.inputs.setdefault(x, ~len(self.inputs))
            reads.append(read)
        new = tuple([x.spec for x in list(self.inputs)[before:]]) if len(self.inputs) > before else ()
        self.written = self.written.then(node, tuple(reads), new)
        self.lines += [node.line] * (len(self.written.steps) - len(self.lines))
        self.number[node], self.library[node] = self.written.result, self.written.library

    def program(self, results: Sequence[Node], *, inner: tuple[int, ...] = (), anchor: Node | None = None,
                library: Node | None = None, places: tuple[Place, ...] = ()) -> Program:
        """The program that gives some of the members.  `library`: the one whose library code is to run it."""
        return self.written.program(tuple([self.number[x] for x in results]), inner,
                                    None if anchor is None else self.number[anchor],
                                    None if library is None else self.library[library], places)

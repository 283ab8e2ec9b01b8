"""Values that neighbouring points have in common: computed for as many blocks of points as there are lanes, and kept.

A block of Philox has four words of 32 bits: of sixteen neighbouring elements of a random array four ask for the same
one, which takes a hundred instructions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from nnc_core.base.dtype import boolean, int64, uint32, uint64
from nnc_core.base.loopnest import Instruction, LoopNest, Stage
from nnc_cpu.llvm.branches import readers_of
from nnc_cpu.llvm.even_odd import OPERATIONS, EvenOdd, EvenOddWriter
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.llvm.points import PointWriter

WORTH = 24
"""Instructions of a block that are worth keeping what they give."""
NOWHERE = -(1 << 63)
"""A place that no point is near."""


class Blocks(NamedTuple):
    """Instructions of a stage's body, by number, that give the same at all points of a block."""

    position: int
    """The value that tells where a point is: an integer, `1 << step` more from lane to lane."""
    step: int
    shift: int
    """The number of a block is the position shifted so far to the right."""
    members: tuple[int, ...]
    """In order; the first one shifts."""
    results: tuple[int, ...]
    """Members that others read."""

    @property
    def points(self) -> int:
        """Neighbouring points that have a block in common."""
        return 1 << self.shift - self.step


def blocks_of(nest: LoopNest, stage: Stage, first: int, axis: int | None, apart: Collection[int] = ()) -> Blocks | None:
    """The blocks of a stage whose body's first value has the number `first`, if lanes lie along an axis; without the
    instructions `apart`."""
    if axis is None or len(stage.body) < WORTH:
        return None
    fixed = _fixed(nest)
    for shifted, position, step, shift in _shifts(stage, first, axis):
        members = _members(stage.body, first, shifted, fixed)
        if len(members) >= WORTH and not set(members).intersection(apart):
            readers = {n: [r for r in readers_of(nest).get(n, []) if r not in members] for n in members}
            if all([reader > members[-1] for found in readers.values() for reader in found]):
                return Blocks(position, step, shift, tuple(members), tuple([n for n in members if readers[n]]))
    return None


def _fixed(nest: LoopNest) -> set[int]:
    """The values that are the same at all points of a nest."""
    found, number = set[int](), 0
    for stage in nest.stages:
        for n, instruction in enumerate(stage.body, number):
            access = instruction.access
            if access is not None:
                plain = not nest.arguments[access.argument].written and instruction.operation == "load"
                if plain and not any(s.coefficients or s.gather is not None for s in access.subscripts):
                    found.add(n)
            elif instruction.operation != "axis" and found.issuperset(instruction.operands):
                found.add(n)
        number += stage.values
    return found


def _shifts(stage: Stage, first: int, axis: int) -> Iterator[tuple[int, int, int, int]]:
    """Positions shifted to the right by less than the width of a vector: (number, position, step, shift)."""
    steps: dict[int, int] = {}
    for number, instruction in enumerate(stage.body, first):
        operands = instruction.operands
        if instruction.operation == "shift_right" and (step := steps.get(operands[0], 0)) > 0:
            shift = _literal(stage, first, operands[1])
            if shift is not None and step & step - 1 == 0 and 2 * step <= 1 << shift <= 16:
                yield number, operands[0], step.bit_length() - 1, shift
        found = _step(stage, first, instruction, axis, steps)
        if found is not None and instruction.dtype in (int64, uint64):
            steps[number] = found


def _step(stage: Stage, first: int, instruction: Instruction, axis: int, steps: dict[int, int]) -> int | None:
    """The difference of an integer from lane to lane, if that is known."""
    operation, operands = instruction.operation, instruction.operands
    if operation == "constant":
        return 0
    if operation == "axis":
        return int(instruction.axis == axis)
    known = [steps[n] for n in operands if n in steps]
    if len(known) < len(operands):
        return None
    if operation == "cast":
        return known[0]
    if operation == "add":
        return sum(known)
    factor = _literal(stage, first, operands[1]) if operation == "multiply" else None
    return None if factor is None else known[0] * factor


def _literal(stage: Stage, first: int, number: int) -> int | None:
    """The number that a value is, if it is a constant of the stage."""
    instruction = stage.body[number - first] if number >= first else None
    if instruction is None or instruction.operation != "constant" or instruction.literal is None:
        return None
    return int(instruction.literal)


def _members(body: Sequence[Instruction], first: int, shifted: int, fixed: set[int]) -> list[int]:
    """The instructions that depend on a shifted position, and otherwise on what is the same everywhere."""
    members = {shifted: None}
    for number, instruction in enumerate(body[shifted - first + 1 :], shifted + 1):
        others = [n for n in instruction.operands if n not in members]
        if len(others) < len(instruction.operands) and instruction.dtype != boolean and fixed.issuperset(others):
            members[number] = None
    return [*members]


class BlockWriter:
    """Writes what finds the values of blocks at the points at hand, and computes them where they are not kept."""

    def __init__(self, points: PointWriter, blocks: Blocks, body: Sequence[Instruction], first: int) -> None:
        self.points, self.blocks, self.body, self.first = points, blocks, body, first
        f = points.function
        self.start = f.variable("i64")
        """Where the points begin whose blocks are kept, in steps of the position."""
        f.variables.append(f"  store i64 {NOWHERE}, {self.start}")
        self.spread: dict[int, EvenOdd] = {}
        """What members read that is the same everywhere, in all lanes."""
        self.kept = {n: f.variable(held(points.dtypes[n]), points.width, blocks.points) for n in blocks.results}

    def steadily(self, values: Mapping[int, Register]) -> None:
        """Have those of some values that members read in all lanes, before points are gone through."""
        writer = EvenOddWriter(self.points.scalars)
        for number in self.blocks.members:
            instruction = self.body[number - self.first]
            for n in instruction.operands if instruction.operation in OPERATIONS else ():
                if n in values and n not in self.spread and self.points.dtypes[n] == uint32:
                    self.spread[n] = writer.apart(values[n], self.points.width // 2)

    def write(self) -> None:
        f, blocks, width = self.points.function, self.blocks, self.points.width
        position = f.lane(self.points.values[blocks.position], 0)
        place = f.let(f"lshr {position}, {blocks.step}", "i64")
        far = f.let(f"sub {place}, {f.get(self.start, 'i64').name}", "i64")
        with f.where(f.let(f"icmp ugt {far}, {width * (blocks.points - 1)}", "i1")):
            self.compute(f.let(f"lshr {position}, {blocks.shift}", "i64"))
        behind = f.let(f"sub {place}, {f.get(self.start, 'i64').name}", "i64")
        for number, kept in self.kept.items():
            type = held(self.points.dtypes[number])
            at = f.let(f"getelementptr {type}, {kept}, {behind}", "ptr")
            full = Register("", type, width).full
            size = self.points.dtypes[number].itemsize
            self.points.values[number] = f.let(f"load {full}, {at}, align {size}", type, width)

    def compute(self, block: Register) -> None:
        """Keep what this block and those behind it give, for each point again."""
        points, f, blocks, width = self.points, self.points.function, self.blocks, self.points.width
        f.set(self.start, f.let(f"shl {block}, {blocks.shift - blocks.step}", "i64"))
        values: dict[int, Register | EvenOdd] = {blocks.members[0]: points.places.along(block, 1)}
        writer = EvenOddWriter(points.scalars)
        for number in blocks.members[1:]:
            instruction = self.body[number - self.first]
            operands = [values[n] if n in values else self.spread.get(n, points.values[n])
                        for n in instruction.operands]
            values[number] = writer.instruction(instruction.operation, instruction.dtype, operands,
                                                points.dtypes[instruction.operands[0]])
        for number, kept in self.kept.items():
            value = f.spread(writer.together(values[number]), width)
            for n in range(blocks.points):
                lanes = f.shuffled(value, value, [(n * width + k) // blocks.points for k in range(width)])
                f.set(f.let(f"getelementptr {value.full}, {kept}, {integer(n)}", "ptr"), lanes)

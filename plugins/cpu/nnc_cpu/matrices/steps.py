"""Steps that the code of an operator of matrices consists of: all that its text depends on.

What a step works on lies in areas of scratch memory, packed row by row, of which each step is told where they begin.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal["whole", "upper"]
WHERE = ("rows", "columns", "offset", "batch", "row", "column", "place")
"""Numbers of a matrix and its area: bytes to the first, from one of the stack to the next, between rows and between
columns; where the area begins."""


class Element(NamedTuple):
    """Elements of arrays, and of areas: "float" or "double" by the type in LLVM."""

    array: str
    area: str
    is_complex: bool

    @property
    def parts(self) -> int:
        return 2 if self.is_complex else 1


class Take(NamedTuple):
    """Bring a matrix of an input to an area; `hermitian`: the mean of it and its adjoint.  `finite`: the command is
    left to others where it holds NaN or infinities."""

    input: int
    element: Element
    hermitian: bool = False
    finite: bool = False

    @property
    def needed(self) -> int:
        """Numbers that a step takes."""
        return len(WHERE)


class CallLoop(NamedTuple):
    """Call a loop of NumPy's on areas.  `fails`: it says that a matrix has no result."""

    operands: int
    sizes: int
    strides: int
    fails: bool

    @property
    def needed(self) -> int:
        """Numbers of a step: the loop, its data, places of areas, sizes and strides."""
        return 2 + self.operands + self.sizes + self.strides


class CallRoutine(NamedTuple):
    """Call a routine of LAPACK, by addresses; the last is of what became of it.  `arguments`: True for those that are
    areas, whose numbers are places; of others the number itself is what the routine reads.  `fails`: it says so."""

    arguments: tuple[bool, ...]
    fails: bool

    @property
    def needed(self) -> int:
        return 1 + len(self.arguments)


class Give(NamedTuple):
    """Bring an area to a matrix of an output, with zeros for what is not in the part.  `finite` as of inputs."""

    output: int
    element: Element
    part: Part = "whole"
    finite: bool = False

    @property
    def needed(self) -> int:
        return len(WHERE)


class Settle(NamedTuple):
    """Turn the first columns of an area to the phase of `operator/phases.py`, as numbers of an array; `against`: the
    rows of another area by as much the other way."""

    element: Element
    against: bool

    @property
    def needed(self) -> int:
        """Numbers of a step: rows, those columns and all, the place; columns and place of the other area."""
        return 6 if self.against else 4


class GiveOrder(NamedTuple):
    """Make an order of rows of their exchanges, integers of so many bits that count from 1: rows of the output,
    exchanges in place of columns."""

    output: int
    bits: int

    @property
    def needed(self) -> int:
        return len(WHERE)


Step: TypeAlias = Take | CallLoop | CallRoutine | Settle | Give | GiveOrder


class MatrixKind(NamedTuple):
    """All that the code of an operator depends on."""

    inputs: int
    outputs: int
    steps: tuple[Step, ...]

    @property
    def calls_routines(self) -> bool:
        """True if LAPACK is called directly, whose substitution has several threads of OpenBLAS' for any triangle."""
        return any([isinstance(step, CallRoutine) for step in self.steps])


HEAD = ("matrices", "each", "room", "hold", "release", "held")
"""Numbers before those of the steps: matrices in all, those of a task, bytes of scratch memory of a task, and functions
that hold the BLAS to one thread, and what they are given, or 0."""
NOTE = 64
"""Bytes of scratch memory before the rooms of tasks: the note."""

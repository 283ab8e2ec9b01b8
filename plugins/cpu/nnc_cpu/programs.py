"""ElementPrograms of operators on each element as eager kernels: one nest each, for arrays of every size.

Every call runs the nest, interpreted as long as arrays are small and compiling has not paid, by machine code from then
on; both give the same bits, so that it cannot be seen which of them ran (`decisions/0064`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.inlining import fused_nest
from nnc_core.operator.program import Program, Step
from nnc_core.type import TensorSpec
from nnc_cpu.left import LARGE
from nnc_cpu.memory import Array
from nnc_cpu.nests import NestKernels, TieredKernel

if TYPE_CHECKING:
    from nnc_cpu.llvm.any_size import AnySize

PROGRAM = "program"
"""The name of the kernel of programs, which any operators may be steps of."""
MOST_PROGRAMS = 1024
FEW = 512
"""Elements up to which a program is interpreted at first; interpreting goes through as many."""


class ElementPrograms:
    """The eager kernel of all programs."""

    def __init__(self, kernels: Callable[[], NestKernels]) -> None:
        self.kernels = kernels
        self._known: dict[Program, ProgramKernel] = {}

    def __call__(self, *arrays_and_program: Any) -> Array:
        *arrays, program = arrays_and_program
        return (self._known.get(program) or self.kernel(program)).run(arrays)

    def kernel(self, program: Program) -> ProgramKernel:
        """The kernel of a program, made once."""
        if len(self._known) >= MOST_PROGRAMS:
            self._known.clear()
        return self._known.setdefault(program, ProgramKernel(program, self.kernels()))


class ProgramKernel:
    """One program; inputs that it reads as numbers are 0-d, the others are broadcast together."""

    def __init__(self, program: Program, kernels: NestKernels) -> None:
        self.program = program
        self.dtype = program.steps[program.results[-1]].spec.dtype
        self.are_arrays = all([x.shape for x in program.inputs])
        self.are_numbers = [not x.shape for x in program.inputs]
        [self.tiered] = kernels.of([nest_of(program, LARGE)])
        self.machine: AnySize | None = None
        self._interpreted: LoopNest | None = None

    def run(self, arrays: Sequence[Array]) -> Array:
        """The result, as an array of its own."""
        shape: Any = arrays[0].shape if self.are_arrays else None
        for x in arrays:
            if x.shape != shape or x.__class__ is not np.ndarray or not x.flags.c_contiguous:
                arrays, shape = self._packed(arrays)
                break
        out = np.empty(shape, self.dtype)
        size = out.size
        if not size:
            return out
        machine = self.machine or self._ready(size)
        if machine is None:
            self._interpret(arrays, out)
        else:
            machine.run(arrays, out)
        return out

    def _packed(self, arrays: Sequence[Array]) -> tuple[Sequence[Array], tuple[int, ...]]:
        """The arrays as the code reads them, by address, and the shape of the result.

        NumPy's functions give numbers for arrays without axes, which hold their element elsewhere.
        """
        shape: tuple[int, ...] | None = None
        for x, number in zip(arrays, self.are_numbers, strict=True):
            if x.__class__ is not np.ndarray:
                break
            if number:
                continue
            if not x.flags.c_contiguous or (shape is not None and x.shape != shape):
                break
            shape = x.shape
        else:
            return arrays, shape or ()
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        return [np.asarray(x) if number or not shape else np.ascontiguousarray(np.broadcast_to(x, shape))
                for x, number in zip(arrays, self.are_numbers, strict=True)], shape

    def _ready(self, size: int) -> AnySize | None:
        """Machine code, if there is some or if it pays now."""
        tiered: TieredKernel = self.tiered
        tiered.at_once = size > FEW or not tiered.agrees
        machine: Any = tiered.ready()
        self.machine = None if machine is None else machine.of_any_size(LARGE)
        return self.machine

    def _interpret(self, arrays: Sequence[Array], out: Array) -> None:
        """Piece by piece: of what is beyond the last element nothing is seen."""
        if self._interpreted is None:
            self._interpreted = expand(nest_of(self.program, FEW), EXPANSIONS)
        begin, flat = perf_counter(), out.reshape(-1)
        for first in range(0, out.size, FEW):
            count = min(FEW, out.size - first)
            pieces = [x if number else _padded(x.reshape(-1)[first : first + count])
                      for x, number in zip(arrays, self.are_numbers, strict=True)]
            room = np.empty(FEW, self.dtype)
            interpret(self._interpreted, [x.reshape(-1).view(np.uint8) for x in (*pieces, room)])
            flat[first : first + count] = room[:count]
        self.tiered.together.spent += perf_counter() - begin


def _padded(x: Array) -> Array:
    """FEW elements, of which the first are those of x."""
    return np.concatenate([x, np.repeat(x[-1:], FEW - len(x))])


def nest_of(program: Program, size: int) -> LoopNest:
    """The nest of a program whose arrays have so many elements."""

    def sized(spec: TensorSpec) -> TensorSpec:
        return TensorSpec((size,), spec.dtype) if spec.shape else spec

    def step(s: Step) -> Step:
        return s._replace(spec=sized(s.spec))

    program = program._replace(steps=tuple(map(step, program.steps)), inputs=tuple(map(sized, program.inputs)))
    outs = tuple([program.steps[n].spec.layout() for n in program.results])
    command = Command(FUSED.name, (program,), tuple([x.layout() for x in program.inputs]), outs)
    return fused_nest(command, program)

"""The cost of any command, from the declaration of its operator.

Arithmetic operations are counted in the operator's loop nest or scalar expression, functions as many as their
expansions have; composites cost what their parts do.  Declarations say otherwise (`flops=`) where that would be wrong,
or where there is no nest.  Bytes are those of the elements that must be read and written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.cost import NOTHING, Cost
from nnc_core.base.dtype import DType, real_of
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import work
from nnc_core.operator import Namespace
from nnc_core.operator.fused import FUSED
from nnc_core.operator.loops import elementwise_nest
from nnc_core.operator.program import Program
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec

FLOPS_OF_A_FUNCTION = 40
"""Operations for each element of what has no formula in loop nests: functions of complex numbers."""


def cost_of(op: Op, command: Command) -> Cost:
    """Operations and bytes of a command of an operator; a view costs nothing."""
    if op.view is not None and op.view(command.inputs[0], *command.attributes) is not None:
        return NOTHING
    nest = _nest(op, command)
    nbytes = _bytes(command, nest)
    if op.flops is not None:
        return Cost(op.flops(command), nbytes)
    if nest is not None:
        return Cost(work.flops(nest), nbytes)
    if op.decompose is not None:
        return Cost(_flops_of_parts(op, command), nbytes)
    if op is FUSED:
        return Cost(_flops_of_steps(command.attributes[0]), nbytes)
    return Cost(FLOPS_OF_A_FUNCTION * sum(prod(x.shape) for x in command.outputs) if op.elementwise else 0, nbytes)


def _nest(op: Op, command: Command) -> LoopNest | None:
    try:
        if op.nest is not None:
            return op.nest(command)
        return None if op.scalar is None else elementwise_nest(op.scalar, command)
    except NotSupportedError:
        return None


def _bytes(command: Command, nest: LoopNest | None) -> int:
    """Elements count once, however often they are read, and not if they are not: of a table few rows may be taken."""
    layouts = (*command.inputs, *command.outputs)
    sizes = [_stored(layout) * layout.dtype.itemsize for layout in layouts]
    if nest is None:
        return sum(sizes)
    counts = work.touched(nest)
    return sum(min(size, counts[place] * real_of(layouts[place].dtype).itemsize) for place, size in enumerate(sizes))


def _stored(layout: Layout) -> int:
    """Elements in memory: axes that repeat them do not count, unless they are empty."""
    return prod(n if step or not n else 1 for n, step in zip(layout.shape, layout.strides, strict=True))


class Sized:
    """A value of which nothing but its shape and dtype is known."""

    __slots__ = ("spec",)

    def __init__(self, spec: TensorSpec) -> None:
        self.spec = spec

    @property
    def shape(self) -> Any:
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)


class Counting(Namespace[Sized]):
    """Operators that only add up the operations that they would do."""

    def __init__(self) -> None:
        self.flops = 0.0

    def apply(self, op: Op, inputs: tuple[Sized | float, ...], attributes: Attributes) -> Sized:
        operands = self.operands(op, inputs)
        spec = op.infer(*(x.spec for x in operands), *attributes)
        outs = spec.parts if isinstance(spec, TupleSpec) else (spec,)
        if not any(isinstance(x.spec, TupleSpec) for x in operands):
            command = Command(op.name, attributes, tuple(x.spec.layout() for x in operands),
                              tuple(out.layout() for out in outs))
            self.flops += cost_of(op, command).flops
        return Sized(spec)

    def number(self, value: Any, dtype: DType, like: Sized | None) -> Sized:
        return Sized(TensorSpec((), dtype))

    def is_value(self, x: Any) -> bool:
        return isinstance(x, Sized)


def _flops_of_parts(op: Op, command: Command) -> float:
    assert op.decompose is not None
    F = Counting()
    op.decompose(F, *_sized(command.inputs), *command.attributes)
    return F.flops


def _flops_of_steps(program: Program) -> float:
    """For programs that no nest is written of: those of library code."""
    return sum([cost_of(step.op, program.command_of(n)).flops for n, step in enumerate(program.steps)])


def _sized(layouts: Sequence[Layout]) -> list[Sized]:
    return [Sized(TensorSpec(layout.shape, layout.dtype)) for layout in layouts]

"""Functions of elements as one program: operators that a public function calls, written down once for all arrays.

A device may have an eager kernel for such programs (`PROGRAM` among `Device.eager`): it computes *every* call of the
function on arrays that are there, from the first on and whatever their size, so that equal numbers give equal bits
(`decisions/0064`).  The operators are asked wherever anything is recorded, followed for a gradient, looked at one by
one, or replaced, and on all other devices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from nnc_core.base.config import config
from nnc_core.base.dtype import is_complex
from nnc_core.base.errors import Error
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.operator import OPERATORS
from nnc_core.operator.program import Input, Literal, Operand, Program, StepResult
from nnc_core.operator.program import Step as ProgramStep
from nnc_core.type import TensorSpec
from nnc_core.values.dispatch import F
from nnc_core.values.modes import deferred, use_device
from nnc_core.values.value import Value
from nnc_core.values.whole import PROGRAM, as_whole, noting

LENGTH = 1 << 15
"""Elements of the arrays that programs are written for: kernels run them on arrays of every size."""
MOST_PROGRAMS = 1024
Function: TypeAlias = Callable[..., Value]
_FILLED = OPERATORS["filled"]
_programs: dict[tuple[Any, ...], Program | None] = {}
_UNKNOWN: Any = object()


def of_elements(f: Function) -> Function:
    """A function of values that calls operators on each element of them and nothing else, whose result has the shape
    that they broadcast to; what is not a value is an argument of the formula."""

    @wraps(f)
    def call(*operands: Any) -> Value:
        found = _by_program(f, operands)
        return f(*operands) if found is None else found

    return call


def _by_program(f: Function, operands: tuple[Any, ...]) -> Value | None:
    """The result of the device's kernel for programs; None where it has none, or does not take such operands."""
    if CLOSED_BY:
        return None
    values, kind = [], [f, config.default_float]
    for x in operands:
        if x.__class__ is not Value:
            kind.append(x)
        elif (x.array is None and noting.get() is None) or x.tracked:
            return None
        else:
            values.append(x)
            like = x.spec if x.array is None else x.array
            kind.append((like.dtype, bool(like.shape)))
    if not values or PROGRAM not in values[0].stack.device.eager:
        return None
    key = (*kind,)
    program = _programs.get(key, _UNKNOWN)
    if program is _UNKNOWN:
        program = _remembered(key, _written_or_none(f, operands))
    return None if program is None else as_whole(PROGRAM, (*values,), (program,))


def _remembered(key: tuple[Any, ...], program: Program | None) -> Program | None:
    if len(_programs) >= MOST_PROGRAMS:
        _programs.clear()
    return _programs.setdefault(key, program)


def _written_or_none(f: Function, operands: tuple[Any, ...]) -> Program | None:
    """None where an operator refuses operands of such dtypes, which it says when it is called."""
    try:
        return written(f, operands)
    except Error:
        return None


def written(f: Function, operands: tuple[Any, ...]) -> Program | None:
    """The program of a function for operands of such dtypes, with 0-d ones among arrays as numbers; None where it
    gives one of them as it is, and where some are complex."""
    values = [x for x in operands if x.__class__ is Value]
    if any([is_complex(v.dtype) for v in values]):
        return None
    alone = not any([v.shape for v in values])
    specs = [TensorSpec((LENGTH,) if v.shape or alone else (), v.dtype) for v in values]
    symbols = [Value(None, values[0].stack, spec) for spec in specs]
    apart = iter(symbols)
    around = noting.set(None)
    try:
        with deferred(keep_graph=True), use_device(values[0].stack):
            writer = _Writer(symbols)
            result = writer.read(f(*[next(apart) if x.__class__ is Value else x for x in operands]))
    finally:
        noting.reset(around)
    return Program((*writer.steps,), (*specs,), (result.number,)) if isinstance(result, StepResult) else None


class _Writer:
    """Writes the steps that values come from, each after those that it reads."""

    def __init__(self, inputs: list[Value]) -> None:
        self.steps: list[ProgramStep] = []
        self._known: dict[Value, Operand] = {v: Input(k) for k, v in enumerate(inputs)}

    def read(self, v: Value) -> Operand:
        """Find what gives a value; a number of the formula is held by the code."""
        if v not in self._known:
            self._known[v] = Literal.of(v.attributes[1].value, v.dtype) if v.op is _FILLED else self._step(v)
        return self._known[v]

    def _step(self, v: Value) -> Operand:
        op = v.op
        if op.scalar is None and op.source is None:
            assert op.decompose is not None, f"{op.name} is no operator on each element"
            return self.read(op.decompose(F, *v.inputs, *v.attributes))
        self.steps.append(ProgramStep(op, v.attributes, tuple([self.read(x) for x in v.inputs]), v.spec))
        return StepResult(len(self.steps) - 1)

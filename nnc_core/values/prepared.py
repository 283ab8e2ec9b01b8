"""The ways in which operators run for which no eager kernel is remembered, by operands that inference has accepted.

What the slow way finds out about operands holds for all that lie in the same way: the next of them are launched, seen
in another way, or given to the body of a composite, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nnc_core.base.config import config
from nnc_core.base.dtype import DType
from nnc_core.base.errors import Error
from nnc_core.base.fast_path import CLOSED_BY, is_watched
from nnc_core.engine.execute import Way, runs_as_compiled
from nnc_core.operator.control import CONTROL
from nnc_core.stacks import Stack
from nnc_core.symbol import checked_number, user_line
from nnc_core.type import Attributes, Op, TensorSpec
from nnc_core.type.spec import map_dims
from nnc_core.values.from_host import scalar_array
from nnc_core.values.modes import current_stack, gradients, lazy
from nnc_core.values.value import Step, Value

MOST_PREPARED = 512
"""Ways that a stack remembers at a time."""


class KnownWay(NamedTuple):
    """The way of one operator with operands that lie so."""

    run: Way
    spec: TensorSpec
    numbers: tuple[tuple[int, DType], ...]
    """The operands that are Python numbers, and the dtypes that they take."""
    version: int
    """That of the executor when it was found."""


def has_own_rule(op: Op) -> bool:
    """Tell whether values that gradients are asked through are made by the operator itself: not so composites whose
    bodies are differentiated."""
    return op.decompose is None or bool(op.vjp or op.partials)


def repeated(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value | None:
    """The result for operands that lie as others before; None for the slow way to find it."""
    if lazy.get() or op.name in CONTROL or (CLOSED_BY and is_watched()):
        return None
    arrays, tracked = [], False
    for x in inputs:
        if x.__class__ is Value:
            if x.array is None or isinstance(x.array, tuple):
                return None
            tracked = tracked or x.tracked
            arrays.append(x.array)
        else:
            arrays.append(x)
    tracked = tracked and op.differentiable and gradients.get()
    if tracked and not has_own_rule(op):
        return None
    stack = next((x.stack for x in inputs if x.__class__ is Value), None) or current_stack()
    found = stack.prepared.get(_kind(op, inputs, attributes, stack))  # type: ignore[arg-type]
    if found is None or found.version != stack.engine.executor.version:
        return None
    try:
        for place, dtype in found.numbers:
            arrays[place] = scalar_array(stack, checked_number(arrays[place], dtype))
    except Error:
        return None  # one that the dtype cannot hold, which the slow way says
    result = found.run(arrays)
    if not tracked:
        return Value(result, stack, found.spec)
    operands = [*inputs]
    for place, dtype in found.numbers:
        operands[place] = Value(arrays[place], stack, TensorSpec((), dtype))
    return Value(result, stack, found.spec, Step(op, (*operands,), attributes, user_line()), True)


def remember(op: Op, inputs: tuple[Any, ...], values: Sequence[Value], attributes: Attributes, spec: TensorSpec,
             stack: Stack, apart: Way | None) -> None:
    """Remember the way of an operator that has just run, by its eager kernel, a command, or `apart`, the body of a
    composite that is not taken whole.  `values` are its inputs, numbers made values."""
    if op.name in CONTROL or op.data_dependent or op.host or not stack.is_plain or (CLOSED_BY and is_watched()):
        return
    numbers = tuple([(i, v.dtype) for i, (x, v) in enumerate(zip(inputs, values, strict=True)) if x is not v])
    kind = _kind(op, inputs, attributes, stack)
    if kind is None or any([inputs[i].__class__ is Value for i, _ in numbers]) or _holds_names(attributes):
        return
    if len(stack.prepared) >= MOST_PREPARED:
        stack.prepared.clear()
    version = stack.engine.executor.version
    stack.prepared[kind] = KnownWay(apart or _way(op, values, attributes, spec, stack), spec, numbers, version)


def _way(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Way:
    executor, device = stack.engine.executor, stack.device
    if op.name in device.eager and not runs_as_compiled():
        return lambda arrays: executor.run(op, arrays, attributes, spec)
    return executor.prepare(op, [device.layout_of(v.array) for v in values], attributes, spec)


def _kind(op: Op, inputs: tuple[Any, ...], attributes: Attributes, stack: Stack) -> tuple[Any, ...] | None:
    """The operator with its attributes, and how each operand lies, or of which class of Python's numbers it is, which
    may take the default dtype; None for others."""
    kind: list[Any] = [op, runs_as_compiled(), attributes]
    for x in inputs:
        if x.__class__ is Value:
            if x.stack is not stack or isinstance(x.array, tuple):  # several arrays, or the lack of any
                return None
            kind.append(stack.device.layout_of(x.array))
        elif x.__class__ is float or x.__class__ is int:
            kind.append((x.__class__, config.default_float))
        else:
            return None
    return (*kind,)


def _holds_names(attributes: Attributes) -> bool:
    """Tell whether there are sizes with names, which stand for another number each time."""
    names: list[Any] = []
    map_dims(attributes, names.append)
    return bool(names)

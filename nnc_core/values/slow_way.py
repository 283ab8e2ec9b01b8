"""The slow way of an operator, which knows why: numbers to be promoted, operands that are deferred or followed,
composites, memory of others, errors.  It runs the operator, or records it."""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import FLOATS, DType
from nnc_core.base.errors import Error
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import PICK
from nnc_core.stacks import Stack
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Attributes, Op, TensorSpec, any_data_dependent
from nnc_core.values import memo
from nnc_core.values.accepted import accept
from nnc_core.values.borrowed import shares_memory, snapshot
from nnc_core.values.common import common_stack, common_trace
from nnc_core.values.comparing import by_value
from nnc_core.values.data_dependent import waits_for_sizes
from nnc_core.values.evaluation import compute, inferred, inferred_again
from nnc_core.values.modes import FORGOTTEN, KEPT, NOW, RECENT, current_trace, gradients, lazy, stack_named, use_device
from nnc_core.values.namespace import F
from nnc_core.values.prepared import has_own_rule, remember, repeated
from nnc_core.values.recorders import applied
from nnc_core.values.running import body_of, run_now
from nnc_core.values.unshaped import Unshaped
from nnc_core.values.value import UNCOMPUTED, Borrowed, PassingStep, RecentStep, Step, Value

_FLOATS = frozenset(FLOATS)
_STEPS = {NOW: Step, KEPT: Step, FORGOTTEN: PassingStep, RECENT: RecentStep}
_TRANSFER = OPERATORS["transfer"]


def apply_slowly(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    try:
        found = repeated(op, inputs, attributes)
        return _record(op, inputs, attributes, user_line()) if found is None else found
    except Error as error:
        error.locate(operator=op.name, line=show_line(user_line()))
        raise


def _record(op: Op, inputs: tuple[Any, ...], attributes: Attributes, line: Any) -> Value:
    values: tuple[Value, ...] | None = agreeing(op, inputs)
    if values is None:
        if any([x.__class__ is Unshaped for x in inputs]):
            return _on_unshaped(op, inputs, attributes)
        op, inputs = by_value(op, inputs)
        if any([x.__class__ is Borrowed for x in inputs]):
            return _on_borrowed(op, inputs, attributes, line)
        values = F.operands(op, inputs)
    stack = common_stack(values) if op is not _TRANSFER else stack_named(attributes[1])
    trace = common_trace(values)
    tracked = gradients.get() and op.differentiable and any([v.tracked for v in values])
    if tracked and not has_own_rule(op) and op not in stack.operator.replaced:
        with use_device(stack):
            return op.decompose(F, *values, *attributes)  # type: ignore[no-any-return,misc]
    spec, attributes = inferred(op, values, attributes, stack)
    if stack.operator.replaced:
        with use_device(stack):
            found = stack.operator.instead(F, op, values, attributes, spec)
        if found is not None:
            return found  # type: ignore[no-any-return]
    mode = lazy.get()
    if op.virtual or (op is PICK and values[0].array is UNCOMPUTED):
        return Value(UNCOMPUTED, stack, spec, Step(op, values, attributes, line), tracked, trace)
    if trace is not None or mode or waits_for_sizes(op, spec, values):
        return _later(Value(None, stack, spec, _STEPS[mode](op, values, attributes, line), tracked, trace))
    spec, attributes = _with_inputs_there(op, values, attributes, spec, stack)
    array = run_now(op, values, attributes, spec, stack)
    if op is not _TRANSFER:
        _remember(op, inputs, values, attributes, spec, stack)
    made = None if op.data_dependent else spec
    return Value(array, stack, made, Step(op, values, attributes, line) if tracked else None, tracked)


def _with_inputs_there(op: Op, values: tuple[Value, ...], attributes: Attributes, spec: TensorSpec,
                       stack: Stack) -> tuple[TensorSpec, Attributes]:
    """Compute the inputs that are deferred; the spec and the attributes with the sizes that are known then."""
    late = [v for v in values if v.array is None]
    if late:
        compute(late, f"{op.name} runs now and needs it")
        if any_data_dependent():
            attributes, spec = inferred_again(op, values, attributes, stack)
    return spec, attributes


def _remember(op: Op, inputs: tuple[Any, ...], values: tuple[Value, ...], attributes: Attributes, spec: TensorSpec,
              stack: Stack) -> None:
    """Have the next operands that lie so find a faster way."""
    if not (CLOSED_BY or (op.decompose is not None and stack.operator.replaced)):
        accept(op, inputs, attributes, stack)
    remember(op, inputs, values, attributes, spec, stack, body_of(op, values, attributes, spec, stack))


def _later(value: Value) -> Value:
    """The value of a step that was recorded; a trace around it learns of it where the value is none of its own."""
    running = current_trace.get()
    if running is not None and running is not value.trace:
        running.made(value)
    return value


def agreeing(op: Op, inputs: tuple[Any, ...]) -> tuple[Value, ...] | None:
    """The operands as they are, where there is nothing to promote; floats beside a float value become scalars."""
    dtype: DType | None = None
    numbers = False
    for x in inputs:
        if x.__class__ is Value:
            if dtype is None:
                dtype = x.spec.dtype
            elif x.spec.dtype is not dtype and op.promote:
                return None
        elif x.__class__ is float and op.promote:
            numbers = True
        else:
            return None
    if (numbers or op.to_float) and dtype not in _FLOATS:
        return None
    if not numbers:
        return inputs
    like = next(x for x in inputs if x.__class__ is Value)
    return tuple([x if x.__class__ is Value else F.number(x, dtype, like) for x in inputs])  # type: ignore[arg-type]


def _on_borrowed(op: Op, inputs: tuple[Any, ...], attributes: Attributes, line: Any) -> Value:
    """An operator on memory that others may change: it is read now.  A step that is recorded holds a snapshot, and a
    result that would be a view is copied."""
    recorded = lazy.get() or any([isinstance(x, Value) and (x.tracked or x.trace is not None) for x in inputs])
    read = {id(x): snapshot(x, line) if recorded else Value(x.array, x.stack, x._spec)
            for x in inputs if x.__class__ is Borrowed}
    with memo.paused():
        result = _record(op, tuple([read.get(id(x), x) for x in inputs]), attributes, line)
    if result.step is None and any([shares_memory(result, x) for x in inputs if x.__class__ is Borrowed]):
        duplicate, array = result.stack.engine.executor.duplicate, result.array
        copied = tuple(map(duplicate, array)) if isinstance(array, tuple) else duplicate(array)
        return Value(copied, result.stack, result._spec)
    return result


def _on_unshaped(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    """An operator on symbols of unknown shape: recorded, to be applied when they are known."""
    values = [x for x in inputs if isinstance(x, Value)]
    stack = common_stack(values) if op is not _TRANSFER else stack_named(attributes[1])
    return applied(F.apply, op, inputs, attributes, stack)

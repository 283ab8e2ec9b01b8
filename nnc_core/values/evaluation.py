"""Computing what is deferred, and the sizes that depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import Error, ExecutionError, ShapeError
from nnc_core.device import enqueued_for
from nnc_core.operator.control import is_tape
from nnc_core.stacks import Stack
from nnc_core.symbol import postorder, show_line
from nnc_core.type import Attributes, Dims, Op, TensorSpec, any_data_dependent, is_static, resolved
from nnc_core.values.data_dependent import (
    has_data_dependent,
    has_resolved,
    refresh,
    resolve,
    unresolved_counts,
    with_resolved_sizes,
)
from nnc_core.values.history import Round, hold_inputs
from nnc_core.values.modes import current_trace
from nnc_core.values.refusals import no_value, object_to
from nnc_core.values.running import run_now
from nnc_core.values.value import Remembered, Value


def evaluate(values: Sequence[Value]) -> None:
    """Compute what is deferred, inputs first, each once; a symbol has no value."""
    wanted = [v for v in values if v.array is None]
    if not wanted:
        return
    for v in wanted:
        if v.trace is not None:
            raise no_value(v)
    order = postorder(wanted, leaf=_is_computed)
    order.reverse()
    this_round = Round(order)
    computed = [v for v in order if v.array is None] if this_round.is_due else []
    again = [v for v in order if v.__class__ is Remembered]
    if again:
        hold_inputs(order)
    while order:  # what is done is let go at once
        v = order.pop()
        if v.array is None:
            v.array = _evaluated(v)
            this_round.settle(v)
            if any_data_dependent() and has_data_dependent(v.spec.shape):
                v._spec = _resolved_tape(v.spec) if is_tape(v.spec) else None  # the array tells it now
    for v in again:
        if v not in wanted:
            v.array = None
    if computed:
        this_round.bound(computed)


def _resolved_tape(spec: TensorSpec) -> TensorSpec:
    """It stays one: the way back goes by that, not by the number of its rows."""
    return TensorSpec((spec.shape[0], *[resolved(d) for d in spec.shape[1:]]), spec.dtype)


def compute(values: Sequence[Value], why: str) -> None:
    """`evaluate` for somebody who did not ask for it: `config.implicit_compute` may object."""
    late = [v for v in values if v.array is None]
    if late:
        object_to(late[0], why)
        evaluate(late)


def _is_computed(v: Value) -> bool:
    return v.array is not None


def _evaluated(v: Value) -> Any:
    step = v.step
    inputs = () if step is None else step.inputs
    if v.array is not None:
        return v.array  # another thread was quicker, and may have let go of the inputs
    if step is None or v.trace is not None:
        raise no_value(v)
    op, attributes, spec = step.op, step.attributes, v.spec
    try:
        if any_data_dependent():
            attributes, spec = inferred_again(op, inputs, attributes, v.stack)
        with enqueued_for(step.line):
            array = run_now(op, inputs, attributes, spec, v.stack)
        if op.data_dependent:
            resolve(op, attributes, v.stack.device.layout_of(array).shape[0])
        return array
    except Error as error:
        if op.decompose is not None:
            error.line = show_line(step.line)  # its parts run here, on the line that asks for the value
        error.locate(operator=op.name, line=show_line(step.line))
        raise
    except Exception as error:
        raise ExecutionError(f"{type(error).__name__}: {error}", operator=op.name, device=v.stack.device.spec.id,
                             line=show_line(step.line)) from error


# ---- sizes that depend on data
def inferred(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack) -> tuple[TensorSpec, Attributes]:
    """The spec of the result, and the attributes with the sizes that had to be learnt for it."""
    specs, shape, running = tuple([v.spec for v in values]), stack.shape, current_trace.get()
    try:
        return (shape.infer(op, specs, attributes) if running is None
                else shape.once(running.specs_of(shape), op, specs, attributes)), attributes
    except ShapeError:
        learnt_before = running is None and has_resolved(attributes)  # since what they come from was recorded
        if not learn_sizes(values, op.name) and not learnt_before:
            raise
        attributes = with_resolved_sizes(attributes, stack)
        return shape.infer(op, tuple([v.spec for v in values]), attributes), attributes


def inferred_again(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack) -> tuple[Attributes, Any]:
    """Attributes and spec with numbers for sizes; the values that resolve missing ones are computed."""
    if not op.data_dependent:
        evaluate(unresolved_counts(attributes))
    attributes = with_resolved_sizes(attributes, stack)
    return attributes, stack.shape.infer(op, tuple([v.spec for v in values]), attributes)


def learn_sizes(values: Sequence[Value], name: str) -> bool:
    """Shapes that do not fit may do so when the sizes that depend on data are known: compute what has them.  False if
    there is none."""
    if not any_data_dependent() or current_trace.get() is not None:
        return False
    unresolved = [v for v in values if v.trace is None and has_data_dependent(v.spec.shape)]
    if not unresolved:
        return False
    compute([v for v in unresolved if not refresh(v)], f"{name} needs to know its shape")
    return True


def shape_of(v: Value) -> Dims:
    """Numbers: a deferred value is computed if its shape depends on data.  Symbols keep their names."""
    shape = v.spec.shape
    if is_static(shape) or v.trace is not None or refresh(v) or current_trace.get() is not None:
        return v.spec.shape
    compute([v], "its shape, which depends on data, was asked for")
    return v.spec.shape

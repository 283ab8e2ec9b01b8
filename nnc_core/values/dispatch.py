"""The one dispatcher: run an operator now, or record it.

Kernel first: operands that are there and agree go straight to the device's eager kernel.  Everything else (numbers
to be promoted, tracked or lazy operands, composites, errors) takes the slow way, which knows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import FLOATS, DType, int64
from nnc_core.base.errors import Error, ExecutionError, ShapeError
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.device import enqueued_for
from nnc_core.engine.execute import Way
from nnc_core.operator import OPERATORS, Namespace
from nnc_core.operator.control import PICK, TOGETHER, is_tape
from nnc_core.stacks import Stack, moved
from nnc_core.symbol import checked_number, postorder, show_line, user_line
from nnc_core.type import Attributes, Dim, Dims, Op, TensorSpec, TupleSpec, any_data_dependent, is_static, resolved
from nnc_core.values import debug, memo
from nnc_core.values.accepted import WHOLE, accept, kernel_for
from nnc_core.values.borrowed import shares_memory, snapshot
from nnc_core.values.common import common_stack, common_trace
from nnc_core.values.comparing import by_value
from nnc_core.values.data_dependent import (
    count_on_host,
    has_data_dependent,
    has_resolved,
    refresh,
    resolve,
    unresolved_counts,
    waits_for_sizes,
    with_resolved_sizes,
)
from nnc_core.values.from_host import scalar_array
from nnc_core.values.history import Round, hold_inputs
from nnc_core.values.modes import (
    FORGOTTEN,
    KEPT,
    NOW,
    RECENT,
    computing,
    current_stack,
    current_trace,
    deferred,
    gradients,
    lazy,
    stack_named,
    use_device,
)
from nnc_core.values.prepared import has_own_rule, remember, repeated
from nnc_core.values.recorders import applied
from nnc_core.values.refusals import no_value, object_to
from nnc_core.values.unshaped import Unshaped
from nnc_core.values.value import UNCOMPUTED, Borrowed, PassingStep, RecentStep, Remembered, Step, Value

_FLOATS = frozenset(FLOATS)
_STEPS = {NOW: Step, KEPT: Step, FORGOTTEN: PassingStep, RECENT: RecentStep}
_FILLED, _TRANSFER = OPERATORS["filled"], OPERATORS["transfer"]


def dispatch(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    """Values and Python numbers in, a value out."""
    if not lazy.get() and not CLOSED_BY:
        stack, dtypes, arrays, numbers = None, None, [], 0
        for x in inputs:
            if x.__class__ is Value:
                array = x.array
                if array is None:
                    break
                if x.tracked and gradients.get():
                    return _followed(op, inputs, attributes)
                if stack is None:
                    dtypes, stack = array.dtype, x.stack
                elif x.stack is not stack:
                    break
                elif array.dtype is not dtypes:
                    dtypes = (dtypes, len(arrays), array.dtype)
                arrays.append(array)
            elif x.__class__ is float:
                numbers |= 1 << len(arrays)
                arrays.append(x)
            elif x.__class__ is int:
                numbers |= WHOLE << len(arrays)
                arrays.append(x)
            else:
                break
        else:
            if stack is not None:
                kernel = stack.accepted.get((op, dtypes, numbers))
                if kernel is None and op.names_dtype:
                    kernel = stack.accepted.get((op, dtypes, numbers, attributes))
                if kernel is not None:
                    try:
                        result = kernel(*arrays, *attributes)
                    except Exception:
                        result = NotImplemented  # the slow way finds out why
                    if result is not NotImplemented:
                        return Value(result, stack)
            elif not inputs:
                return _created(op, attributes)
    return _slow(op, inputs, attributes)


def _created(op: Op, attributes: Attributes) -> Value:
    """A value of attributes alone, on the device in use."""
    stack = current_stack()
    kernel = stack.accepted.get((op, attributes))
    if kernel is not None:
        try:
            result = kernel(*attributes)
        except Exception:
            result = NotImplemented  # the slow way finds out why
        if result is not NotImplemented:
            return Value(result, stack)
    return _slow(op, (), attributes)


def _followed(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    """A value that gradients may be asked through: by the same kernels, with the step that it comes from."""
    known = kernel_for(op, inputs, attributes) if has_own_rule(op) else None
    if known is not None:
        try:
            result = known.kernel(*known.arrays, *attributes)
        except Exception:
            result = NotImplemented  # the slow way finds out why
        if result is not NotImplemented:
            if not op.differentiable:
                return Value(result, known.stack)
            operands = inputs if known.takes_values else _agreeing(op, inputs) or F.operands(op, inputs)
            return Value(result, known.stack, None, Step(op, operands, attributes, user_line()), True)
    return _slow(op, inputs, attributes)


def _slow(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    try:
        found = repeated(op, inputs, attributes)
        return _record(op, inputs, attributes, user_line()) if found is None else found
    except Error as error:
        error.locate(operator=op.name, line=show_line(user_line()))
        raise


def _record(op: Op, inputs: tuple[Any, ...], attributes: Attributes, line: Any) -> Value:
    agreeing = _agreeing(op, inputs)
    if agreeing is None:
        if any([x.__class__ is Unshaped for x in inputs]):
            return _on_unshaped(op, inputs, attributes)
        op, inputs = by_value(op, inputs)
    if agreeing is None and any([x.__class__ is Borrowed for x in inputs]):
        return _on_borrowed(op, inputs, attributes, line)
    values = F.operands(op, inputs) if agreeing is None else agreeing
    stack = common_stack(values) if op is not _TRANSFER else stack_named(attributes[1])
    trace = common_trace(values)
    tracked = gradients.get() and op.differentiable and any([v.tracked for v in values])
    if tracked and not has_own_rule(op) and op not in stack.operator.replaced:
        with use_device(stack):
            return op.decompose(F, *values, *attributes)  # type: ignore[no-any-return,misc]
    spec, attributes = _inferred(op, values, attributes, stack)
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
    late = [v for v in values if v.array is None]
    if late:
        compute(late, f"{op.name} runs now and needs it")
        if any_data_dependent():
            attributes, spec = _inferred_again(op, values, attributes, stack)
    array = run_now(op, values, attributes, spec, stack)
    if op is not _TRANSFER:
        if not (CLOSED_BY or (op.decompose is not None and stack.operator.replaced)):
            accept(op, inputs, attributes, stack)
        remember(op, inputs, values, attributes, spec, stack, _body(op, values, attributes, spec, stack))
    made = None if op.data_dependent else spec
    return Value(array, stack, made, Step(op, values, attributes, line) if tracked else None, tracked)


def _inferred(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack) -> tuple[TensorSpec, Attributes]:
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


def _later(value: Value) -> Value:
    """The value of a step that was recorded; a trace around it learns of it where the value is none of its own."""
    running = current_trace.get()
    if running is not None and running is not value.trace:
        running.made(value)
    return value


def _agreeing(op: Op, inputs: tuple[Any, ...]) -> tuple[Value, ...] | None:
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
    return applied(dispatch, op, inputs, attributes, stack)


# ---- computing
def run_now(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    """The array of an operator whose inputs are there."""
    if not CLOSED_BY:
        return _run(op, values, attributes, spec, stack)
    watched = debug.watch(op, values, attributes, stack)
    array = memo.recalled(op, values, attributes, stack, lambda: _run(op, values, attributes, spec, stack))
    if watched is not None:
        debug.check(watched, stack, array)
    return array


def _run(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    executor = stack.engine.executor
    arrays = [v.array for v in values]
    if op.data_dependent:
        return executor.upload(count_on_host(op, [executor.download(a) for a in arrays], attributes))
    body = _body(op, values, attributes, spec, stack)
    if body is not None:
        with computing():
            return body(arrays)
    if op is _TRANSFER:
        return moved(arrays[0], values[0].stack, stack)
    return executor.run(op, arrays, attributes, spec)


def _body(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Way | None:
    """The way of a composite that the device does not take whole."""
    decompose = op.decompose
    if decompose is None or stack.engine.executor.claims(op, [v.array for v in values], attributes, spec):
        return None

    def run(arrays: Sequence[Any]) -> Any:
        with use_device(stack):
            return decompose(F, *[Value(array, stack) for array in arrays], *attributes).array

    return run


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
            attributes, spec = _inferred_again(op, inputs, attributes, v.stack)
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
def _inferred_again(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack) -> tuple[Attributes, Any]:
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


def _is_at_hand(v: Value) -> bool:
    return v.array is not None and v.array is not UNCOMPUTED and not v.tracked


class Values(Namespace[Value]):
    """All operators over values, in whatever mode."""

    def apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
        return dispatch(op, inputs, attributes)

    def is_value(self, x: Any) -> bool:
        return x.__class__ is Value

    def for_bodies(self, like: Value) -> Any:
        return like.stack.operator.open()

    def at_line_of(self, value: Value) -> None:
        if CLOSED_BY:
            debug.differentiating(value)

    def pick(self, x: Value, *, index: int) -> Value:
        """x is no array, so that no kernel is tried."""
        if x.array.__class__ is tuple and not lazy.get() and not x.tracked:
            known: Any = x._spec
            return Value(x.array[index], x.stack, None if known is None else known.parts[index])
        return _slow(PICK, (x,), (index,))

    def together(self, *x: Value) -> Value:
        """The same of several values that are there."""
        if not lazy.get() and all([v.__class__ is Value and _is_at_hand(v) for v in x]):
            return Value(tuple([v.array for v in x]), x[0].stack, TupleSpec(tuple([v.spec for v in x])))
        return _slow(TOGETHER, x, ())

    def transfer(self, x: Value, *, source: str, target: str) -> Value:
        """Never a kernel of one device."""
        return _slow(_TRANSFER, (x,), (source, target))

    def full_like(self, x: Value, value: Any) -> Value:
        with use_device(x.stack):
            return super().full_like(x, value)

    def operands(self, op: Op, inputs: tuple[Value | float, ...]) -> tuple[Value, ...]:
        if any([isinstance(x, Dim) for x in inputs]):
            like = next((x for x in inputs if x.__class__ is Value), None)
            inputs = tuple([_size(x, like) if isinstance(x, Dim) else x for x in inputs])
        return super().operands(op, inputs)

    def number(self, value: Any, dtype: DType, like: Value | None) -> Value:
        stack = like.stack if like is not None else current_stack()
        number = checked_number(value, dtype)
        stack.type.admit(dtype)
        if lazy.get() or (like is not None and like.trace is not None):
            spec = TensorSpec((), dtype)
            return Value(None, stack, spec, Step(_FILLED, (), ((), number), None))
        return Value(scalar_array(stack, number), stack, TensorSpec((), dtype))


F = Values()


def _size(d: Any, like: Any) -> Value | int:
    """A named dimension as an operand beside floats: counted where its number is known."""
    if like is None or like.dtype not in _FLOATS:
        return int(d)
    with deferred(), use_device(like.stack):
        return F.cast(F.sum(F.full(shape=(d,), value=1, dtype=int64), axis=(0,)), dtype=like.dtype)

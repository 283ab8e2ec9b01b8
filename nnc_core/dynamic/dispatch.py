"""The one dispatcher: run an operator now, or record it.

Kernel first: operands that are there and agree go straight to the device's eager kernel.  Everything else (numbers
to be promoted, tracked or lazy operands, composites, errors) takes the slow way, which knows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import FLOATS, DType, int64
from nnc_core.base.errors import DeviceError, Error, ShapeError
from nnc_core.composition import Stack, stack_for
from nnc_core.dynamic import debug, memo
from nnc_core.dynamic.borrowed import shares_memory, snapshot
from nnc_core.dynamic.evaluation import compute, inferred_again, learn_sizes, run_now
from nnc_core.dynamic.from_host import float_number, scalar_array
from nnc_core.dynamic.graphs.unknown import put_in
from nnc_core.dynamic.modes import FORGOTTEN, current_stack, current_trace, deferred, gradients, lazy, use_device
from nnc_core.dynamic.value import Borrowed, PassingStep, Step, Value
from nnc_core.operator import OPERATORS, Namespace
from nnc_core.operator.control import PICK
from nnc_core.symbol import checked_number, show_line, user_line
from nnc_core.type import Attributes, Dim, Op, TensorSpec, any_unknown

_FLOATS = frozenset(FLOATS)
_FILLED, _TRANSFER = OPERATORS["filled"], OPERATORS["transfer"]

_accepted: set[tuple[Op, DType, bool]] = set()
"""Operators on operands of one dtype (and numbers: True) that inference has accepted once; kernels check less."""
debug.closes_fast_path(_accepted.clear)


def dispatch(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    """Values and Python numbers in, a value out."""
    if not lazy.get():
        stack, dtype, arrays, numbers = None, None, [], False
        for x in inputs:
            if x.__class__ is Value:
                array = x.array
                if array is None or x.tracked or (stack is not None and x.stack is not stack):
                    break
                if dtype is None:
                    dtype, stack = array.dtype, x.stack
                elif array.dtype is not dtype and op.promote:
                    break
                arrays.append(array)
            elif x.__class__ is float or x.__class__ is int:
                numbers = True
                arrays.append(x)
            else:
                break
        else:
            if stack is not None and (op, dtype, numbers) in _accepted:
                kernel = stack.device.eager.get(op.name)
                if kernel is not None:
                    try:
                        result = kernel(*arrays, *attributes)
                    except Exception:
                        result = NotImplemented  # the slow way finds out why
                    if result is not NotImplemented:
                        return Value(result, stack)
    return _slow(op, inputs, attributes)


def _accept(op: Op, inputs: tuple[Any, ...]) -> None:
    """Remember that these operands need neither promotion nor another look at their dtypes."""
    dtypes = [x.dtype for x in inputs if x.__class__ is Value]
    numbers = len(dtypes) < len(inputs)
    if not dtypes or op is _TRANSFER or (op.promote and any(d != dtypes[0] for d in dtypes)):
        return
    if dtypes[0] in _FLOATS or not (numbers or op.to_float):
        _accepted.add((op, dtypes[0], numbers))
        if debug.WATCHING:  # looked at last, so that whoever began to watch meanwhile finds the set empty
            _accepted.clear()


def _slow(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    line = user_line()
    try:
        return _record(op, inputs, attributes, line)
    except Error as error:
        raise error.locate(operator=op.name, line=show_line(line))  # noqa: B904 - the same error, with its place


def _record(op: Op, inputs: tuple[Any, ...], attributes: Attributes, line: Any) -> Value:
    agreeing = _agreeing(op, inputs)
    if agreeing is None and any([x.__class__ is Borrowed for x in inputs]):
        return _on_borrowed(op, inputs, attributes, line)
    values = F.operands(op, inputs) if agreeing is None else agreeing
    stack = _common_stack(values) if op is not _TRANSFER else _stack_named(attributes[1])
    trace = _common_trace(values)
    tracked = gradients.get() and op.differentiable and any([v.tracked for v in values])
    if op.decompose is not None and tracked and not (op.vjp or op.partials):
        with use_device(stack):
            return op.decompose(F, *values, *attributes)  # type: ignore[no-any-return]
    try:
        spec = stack.shape.infer(op, tuple([v.spec for v in values]), attributes)
    except ShapeError:
        if not learn_sizes(op, values):
            raise
        attributes = put_in(attributes, stack)
        spec = stack.shape.infer(op, tuple([v.spec for v in values]), attributes)
    mode = lazy.get()
    if trace is not None or mode:
        step = (PassingStep if mode == FORGOTTEN else Step)(op, values, attributes, line)
        value = Value(None, stack, spec, step, tracked, trace)
        if trace is None or op.host or op.bodies:
            running = current_trace.get()
            if running is not None and running is not trace:
                running.made(value)
        return value
    late = [v for v in values if v.array is None]
    if late:
        compute(late, f"{op.name} runs now and needs it")
        if any_unknown():
            attributes, spec = inferred_again(op, values, attributes, stack)
    array = run_now(op, values, attributes, spec, stack)
    if not tracked:
        _accept(op, inputs)
    made = None if op.counted else spec
    return Value(array, stack, made, Step(op, values, attributes, line) if tracked else None, tracked)


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


def _common_stack(values: Sequence[Value]) -> Stack:
    if not values:
        return current_stack()
    stack = values[0].stack
    for v in values:
        if v.stack is not stack:
            raise DeviceError(f"operands are on {stack.and_on(v.stack)}",
                              hint="move one of them with .to(...)")
    return stack


def _stack_named(id: str) -> Stack:
    """The current one where it is of that device: a device may have several, of other layers."""
    stack = current_stack()
    return stack if stack.device.spec.id == id else stack_for(id)


def _common_trace(values: Sequence[Value]) -> Any:
    found = None
    for v in values:
        if v.trace is not None:
            if v.trace.ended:
                raise v.trace.refusal(v)
            if found is None or v.trace.depth > found.depth:
                found = v.trace
    return found


class Values(Namespace[Value]):
    """All operators over values, in whatever mode."""

    def apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
        return dispatch(op, inputs, attributes)

    def is_value(self, x: Any) -> bool:
        return x.__class__ is Value

    def for_bodies(self, like: Value) -> Any:
        return like.stack.operator.open()

    def at_line_of(self, value: Value) -> None:
        if debug.WATCHING:
            debug.differentiating(value)

    def pick(self, x: Value, *, index: int) -> Value:
        """x is no array, so that no kernel is tried."""
        return _slow(PICK, (x,), (index,))

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
        number = float_number(value, dtype) if value.__class__ is float and value else checked_number(value, dtype)
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

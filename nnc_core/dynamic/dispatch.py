"""The one dispatcher: run an operator now, or record it.

Kernel first: operands that are there and agree go straight to the device's eager kernel.  Everything else (numbers
to be promoted, tracked or lazy operands, composites, errors) takes the slow way, which knows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.base.dtype import FLOATS, DType
from nnc_core.base.errors import (
    AttributeValueError,
    DeviceError,
    Error,
    ExecutionError,
    LeakedTraceError,
    OperandError,
    SymbolValueError,
)
from nnc_core.composition import Stack, stack_for
from nnc_core.dynamic.modes import computing, current_stack, gradients, lazy, use_device
from nnc_core.dynamic.value import Step, Value
from nnc_core.operator import OPERATORS, Namespace
from nnc_core.symbol import Number, checked_number, postorder, show_line, user_line
from nnc_core.type import Attributes, Op, TensorSpec, admit_numpy, default_float

_FLOATS = frozenset(FLOATS)
_FILLED, _TRANSFER = OPERATORS["filled"], OPERATORS["transfer"]


_accepted: set[tuple[Op, DType, bool]] = set()
"""Operators on operands of one dtype (and numbers: True) that inference has accepted once; kernels check less."""


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
    if not dtypes or (op.promote and any(d != dtypes[0] for d in dtypes)):
        return
    if dtypes[0] in _FLOATS or not (numbers or op.to_float):
        _accepted.add((op, dtypes[0], numbers))


def _slow(op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
    line = user_line()
    try:
        return _record(op, inputs, attributes, line)
    except Error as error:
        raise error.locate(operator=op.name, line=show_line(line))  # noqa: B904 - the same error, with its place


def _record(op: Op, inputs: tuple[Any, ...], attributes: Attributes, line: Any) -> Value:
    values = _agreeing(op, inputs) or F._operands(op, inputs)
    stack = _common_stack(values) if op is not _TRANSFER else stack_for(attributes[1])
    trace = _common_trace(values)
    tracked = gradients.get() and op.differentiable and any([v.tracked for v in values])
    if op.decompose is not None and tracked and not (op.vjp or op.partials):
        with use_device(stack):
            return op.decompose(F, *values, *attributes)  # type: ignore[no-any-return]
    spec = stack.shape.infer(op, tuple([v.spec for v in values]), attributes)
    if trace is not None or lazy.get():
        return Value(None, stack, spec, Step(op, values, attributes, line), tracked, trace)
    late = [v for v in values if v.array is None]
    if late:
        evaluate(late)
    array = run_now(op, values, attributes, spec, stack)
    if not tracked:
        _accept(op, inputs)
    return Value(array, stack, spec, Step(op, values, attributes, line) if tracked else None, tracked)


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
    return tuple([x if x.__class__ is Value else F._number(x, dtype, like) for x in inputs])  # type: ignore[arg-type]


def run_now(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    """The array of an operator whose inputs are there."""
    executor = stack.engine.executor
    arrays = [v.array for v in values]
    if op.decompose is not None and not executor.claims(op, arrays, attributes, spec):
        plain = [Value(v.array, v.stack, v._spec) for v in values]
        with computing(), use_device(stack):
            return op.decompose(F, *plain, *attributes).array
    if op is _TRANSFER:
        return stack.engine.executor.upload(values[0].stack.engine.executor.download(arrays[0]))
    return executor.run(op, arrays, attributes, spec)


def _common_stack(values: Sequence[Value]) -> Stack:
    if not values:
        return current_stack()
    stack = values[0].stack
    for v in values:
        if v.stack is not stack:
            raise DeviceError(f"operands are on {stack.device.spec.id} and {v.stack.device.spec.id}",
                              hint="move one of them with .to(...)")
    return stack


def _common_trace(values: Sequence[Value]) -> Any:
    found = None
    for v in values:
        if v.trace is not None:
            if v.trace.ended:
                raise LeakedTraceError("a symbolic tensor outlived the function that was traced",
                                       hint="return it from the function instead of storing it outside")
            found = v.trace
    return found


def evaluate(values: Sequence[Value]) -> None:
    """Compute what is deferred, inputs first, each once; a symbol has no value."""
    wanted = [v for v in values if v.array is None]
    for v in wanted:
        if v.trace is not None:
            raise _no_value(v)
    for v in postorder(wanted, leaf=_is_computed):
        if v.array is None:
            v.array = _evaluated(v)


def _is_computed(v: Value) -> bool:
    return v.array is not None


def _no_value(v: Value) -> SymbolValueError:
    return SymbolValueError(f"a symbol {v.spec} has no value", line=show_line(v.line or user_line()),
                            hint="call the compiled graph, or assign the symbol and eval")


def _evaluated(v: Value) -> Any:
    if v.step is None or v.trace is not None:
        raise _no_value(v)
    try:
        return run_now(v.op, v.inputs, v.attributes, v.spec, v.stack)
    except Error as error:
        raise error.locate(operator=v.op.name, line=show_line(v.line))  # noqa: B904
    except Exception as error:
        raise ExecutionError(f"{type(error).__name__}: {error}", operator=v.op.name, device=v.stack.device.spec.id,
                             line=show_line(v.line)) from error


class Values(Namespace[Value]):
    """All operators over values, in whatever mode."""

    def _apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> Value:
        return dispatch(op, inputs, attributes)

    def _is_value(self, x: Any) -> bool:
        return x.__class__ is Value

    def transfer(self, x: Value, *, source: str, target: str) -> Value:
        """Never a kernel of one device."""
        return _slow(_TRANSFER, (x,), (source, target))

    def full_like(self, x: Value, value: Any) -> Value:
        with use_device(x.stack):
            return super().full_like(x, value)

    def _number(self, value: Any, dtype: DType, like: Value | None) -> Value:
        stack = like.stack if like is not None else current_stack()
        number = _float_number(value, dtype) if value.__class__ is float and value else checked_number(value, dtype)
        stack.type.admit(dtype)
        if lazy.get() or (like is not None and like.trace is not None):
            spec = TensorSpec((), dtype)
            return Value(None, stack, spec, Step(_FILLED, (), ((), number), None))
        return Value(_scalar_array(stack, number), stack, TensorSpec((), dtype))


F = Values()


@lru_cache(maxsize=1024)
def _float_number(value: float, dtype: DType) -> Number:
    """Not for zeros: 0.0 and -0.0 are one key."""
    return Number(value, dtype)


_scalars: dict[tuple[Stack, Number], Any] = {}


def _scalar_array(stack: Stack, number: Number) -> Any:
    """Scalars on the device, so that `x * 2` uploads the 2 once."""
    key = (stack, number)
    array = _scalars.get(key)
    if array is None:
        if len(_scalars) >= 1024:
            _scalars.clear()
        array = _scalars[key] = stack.engine.executor.upload(np.asarray(number.value).reshape(()))
    return array


def _host_array(x: Any, dtype: DType | None) -> Any:
    try:
        return np.asarray(x, dtype)
    except TypeError as error:
        raise OperandError(f"{type(x).__name__} is no array of numbers: {error}") from None
    except (ValueError, OverflowError) as error:
        wanted = "numbers" if dtype is None else dtype
        raise AttributeValueError(f"{type(x).__name__} is no array of {wanted}: {error}") from None


def host_value(x: Any, dtype: Any = None, stack: Stack | None = None) -> Value:
    """A host array (or nested lists of numbers) as a value of a device: a copy."""
    stack = stack or current_stack()
    host = _host_array(x, None if dtype is None else admit_numpy(dtype))
    if dtype is None and host.dtype == np.float64 and not isinstance(x, (np.ndarray, np.generic)):
        host = host.astype(default_float())
    admitted = stack.type.admit(admit_numpy(host.dtype))
    return Value(stack.engine.executor.upload(host.astype(admitted, copy=False)), stack)

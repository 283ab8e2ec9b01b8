"""All operators over values, in whatever mode.

Bodies of composites are run through it, and the dispatcher runs those: hence `F` is made here, and what its operators
do is given to it by `dispatch`, from which everybody else imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from nnc_core.base.dtype import FLOATS, DType, int64
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.operator import OPERATORS, Namespace
from nnc_core.operator.control import PICK, TOGETHER
from nnc_core.symbol import checked_number
from nnc_core.type import Attributes, Dim, Op, TensorSpec, TupleSpec
from nnc_core.values import debug
from nnc_core.values.from_host import scalar_array
from nnc_core.values.modes import current_stack, deferred, lazy, use_device
from nnc_core.values.value import UNCOMPUTED, Step, Value

Apply: TypeAlias = Callable[[Op, tuple[Any, ...], Attributes], Value]
"""Gives the value of an operator: of its inputs, values and Python numbers, and its attributes."""
_FILLED, _TRANSFER = OPERATORS["filled"], OPERATORS["transfer"]


class Values(Namespace[Value]):
    """All operators over values, in whatever mode."""

    apply: Apply  # type: ignore[assignment]
    """Tries the kernels of the device first."""
    apply_slowly: Apply
    """Tries none."""

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
        return self.apply_slowly(PICK, (x,), (index,))

    def together(self, *x: Value) -> Value:
        """The same of several values that are there."""
        if not lazy.get() and all([v.__class__ is Value and _is_at_hand(v) for v in x]):
            return Value(tuple([v.array for v in x]), x[0].stack, TupleSpec(tuple([v.spec for v in x])))
        return self.apply_slowly(TOGETHER, x, ())

    def transfer(self, x: Value, *, source: str, target: str) -> Value:
        """Never a kernel of one device."""
        return self.apply_slowly(_TRANSFER, (x,), (source, target))

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


def _is_at_hand(v: Value) -> bool:
    return v.array is not None and v.array is not UNCOMPUTED and not v.tracked


def _size(d: Any, like: Any) -> Value | int:
    """A named dimension as an operand beside floats: counted where its number is known."""
    if like is None or like.dtype not in FLOATS:
        return int(d)
    with deferred(), use_device(like.stack):
        return F.cast(F.sum(F.full(shape=(d,), value=1, dtype=int64), axis=(0,)), dtype=like.dtype)

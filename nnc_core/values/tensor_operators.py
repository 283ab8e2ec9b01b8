"""Python's operators of tensors: a row for each, with the operator of the graph that it is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.dtype import is_inexact, is_integer
from nnc_core.base.errors import AttributeValueError
from nnc_core.operator import OPERATORS
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Dim, TensorSpec
from nnc_core.values.dispatch import dispatch
from nnc_core.values.operands import listed_value, value_of
from nnc_core.values.recorders import Late
from nnc_core.values.tensor import Tensor
from nnc_core.values.unshaped import Unshaped
from nnc_core.values.value import Value

ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
"""x + y, with y + x of what is no tensor, and x += y."""
COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
               "ge": "greater_equal"}
SIGNS = {"neg": "negative", "abs": "abs", "invert": "bitwise_invert"}
OPERANDS = (Tensor, int, float, complex, np.generic, np.ndarray, list, Dim)
Binary: TypeAlias = Callable[[Tensor, Any], Tensor]


def _binary(name: str, swapped: bool = False) -> Binary:
    op = OPERATORS[name]

    def method(self: Tensor, other: Any) -> Tensor:
        cls = other.__class__
        if cls is Tensor:
            b: Any = value_of(other)
        elif cls is float or cls is int:
            b = other
        else:
            b = _foreign(self, other)
            if b is NotImplemented:
                return NotImplemented  # type: ignore[no-any-return]
        a = value_of(self)
        return Tensor(dispatch(op, (b, a) if swapped else (a, b), ()))

    return method


def _foreign(self: Tensor, other: Any) -> Any:
    """An operand that is no tensor: arrays and lists go to this tensor's device."""
    if isinstance(other, (bool, complex, np.generic, Dim)):
        return other
    if isinstance(other, (np.ndarray, list)):
        if self._value.__class__ is Unshaped:
            kept = deepcopy(other)
            return Late(lambda like: _listed(kept, like))
        return _listed(other, self._value)
    if isinstance(other, Tensor):
        return value_of(other)
    return value_of(other.__nnc_tensor__()) if hasattr(type(other), "__nnc_tensor__") else NotImplemented


def _listed(x: Any, like: Value) -> Value:
    return listed_value(x, like.stack, like.dtype if is_inexact(like.dtype) else None)


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    op = OPERATORS[name]

    def method(self: Tensor) -> Tensor:
        return Tensor(dispatch(op, (value_of(self),), ()))

    return method


def check_exponent(spec: TensorSpec, exponent: Any) -> None:
    """Integers have no negative powers, which is known of a Python number; in arrays they are rounded towards zero."""
    if exponent.__class__ is int and exponent < 0 and is_integer(spec.dtype):
        raise AttributeValueError(f"{spec} to the power of {exponent}: integers have no negative powers",
                                  operator="power", line=show_line(user_line()), hint="cast with astype to a float")


def _power(self: Tensor, other: Any) -> Tensor:
    if self._value.__class__ is not Unshaped:
        check_exponent(self.spec, other)
    elif other.__class__ is int and other < 0:
        return Tensor(dispatch(OPERATORS["power"], (self._value, Late(lambda x: _checked(x.spec, other))), ()))
    return _any_power(self, other)


def _checked(spec: TensorSpec, exponent: int) -> int:
    check_exponent(spec, exponent)
    return exponent


_any_power = _binary("power")


def _in_place(compute: Binary) -> Binary:
    def method(self: Tensor, other: Any) -> Tensor:
        if not (isinstance(other, OPERANDS) or hasattr(type(other), "__nnc_tensor__")):
            return NotImplemented  # type: ignore[no-any-return]
        return self._rebind(lambda: compute(self, other)._value)

    return method


def install() -> None:
    """Give Tensor its operators."""
    for name, operator in ARITHMETIC.items():
        forward = _power if name == "pow" else _binary(operator)
        _bind(name, forward)
        _bind("r" + name, _binary(operator, swapped=True))
        _bind("i" + name, _in_place(forward))
    for name, operator in COMPARISONS.items():
        _bind(name, _binary(operator))
    for name, operator in SIGNS.items():
        _bind(name, _unary(operator))


def _bind(name: str, method: Callable[..., Tensor]) -> None:
    name = f"__{name}__"
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    setattr(Tensor, name, method)

"""Elementwise functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf, nan
from typing import overload

from nnc_core.base.dtype import boolean, is_complex
from nnc_core.base.errors import DTypeError, Error
from nnc_core.functions.pointwise import binary as _binary
from nnc_core.functions.pointwise import unary as _unary
from nnc_core.functions.selection import nonzero
from nnc_core.operator import OPERATORS
from nnc_core.values.arguments import (
    ArrayLike,
    as_operands,
    as_value,
    float_among,
    name_error,
    names_itself,
    stack_of,
)
from nnc_core.values.dispatch import F
from nnc_core.values.operands import operand
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.tensor_operators import check_exponent
from nnc_core.values.unshaped import Unshaped
from nnc_core.values.value import Value

__all__ = [
    "abs", "add", "clip", "cos", "divide", "equal", "exp", "floor_divide", "greater", "greater_equal",
    "isnan", "less", "less_equal", "log", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "multiply", "negative", "not_equal", "positive", "pow", "relu", "remainder", "sigmoid", "sign",
    "sin", "sqrt", "square", "stop_gradient", "subtract", "tanh", "where",
]  # fmt: skip


def _of_truth(name: str) -> Callable[[ArrayLike, ArrayLike], Tensor]:
    """A logical operator; numbers are true if they are not zero."""
    operator = _binary(name)

    def by_truth(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
        return operator(_truth(x1), _truth(x2))

    by_truth.__name__ = by_truth.__qualname__ = name
    by_truth = names_itself(by_truth)

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
        if not (_holds_numbers(x1) or _holds_numbers(x2)):
            with suppress(DTypeError):
                return operator(x1, x2)
        return by_truth(x1, x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{OPERATORS[name].doc}

Elementwise; numbers are true if they are not zero.  The two operands are broadcast together.
Raises ShapeError where they do not broadcast."""
    return by_shapes(function)


def _holds_numbers(x: ArrayLike) -> bool:
    """Tell of a tensor whether it has, or may have, other elements than booleans."""
    return x.__class__ is Tensor and (x._value.__class__ is Unshaped or x._value.dtype != boolean)


def _truth(x: ArrayLike) -> ArrayLike:
    """Booleans as they are, numbers compared with zero; the dtype has to be known."""
    v = as_value(x)
    return x if v.dtype == boolean else Tensor(F.cast(v, dtype=boolean))


add, subtract, multiply = _binary("add"), _binary("subtract"), _binary("multiply")
divide, floor_divide, remainder = _binary("divide"), _binary("floor_divide"), _binary("remainder")
_pow = _binary("power", "pow")
maximum, minimum = _binary("maximum"), _binary("minimum")
equal, not_equal = _binary("equal"), _binary("not_equal")
less, less_equal = _binary("less"), _binary("less_equal")
greater, greater_equal = _binary("greater"), _binary("greater_equal")
logical_and, logical_or, logical_xor = _of_truth("logical_and"), _of_truth("logical_or"), _of_truth("logical_xor")
_not = _unary("logical_not")
negative, abs, _sign = _unary("negative"), _unary("abs"), _unary("sign")
exp, log, sqrt, sin, cos = _unary("exp"), _unary("log"), _unary("sqrt"), _unary("sin"), _unary("cos")
tanh, sigmoid, relu = _unary("tanh"), _unary("sigmoid"), _unary("relu")
stop_gradient = _unary("stop_gradient")


@names_itself
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 to the power of x2; of integers with negative exponents in an array rounded towards zero, and 0 of 0."""
    if x2.__class__ is int and x2 < 0:
        check_exponent(as_value(x1).spec, x2)
    return _pow(x1, x2)


@names_itself
def positive(x: ArrayLike, /) -> Tensor:
    """x itself."""
    return Tensor(as_value(x))


@names_itself
def logical_not(x: ArrayLike, /) -> Tensor:
    """True where x is false; numbers are true if they are not zero."""
    return _not(_truth(x))


@names_itself
def sign(x: ArrayLike, /) -> Tensor:
    """-1, 0 or 1; of complex numbers x / |x|, 0 of 0, and the direction of an infinite part, NaN of two."""
    v = operand(x)
    if isinstance(v, complex):
        v = as_value(v)
    if not isinstance(v, Value) or not is_complex(v.dtype):
        return _sign(x)
    size = F.abs(v)
    endless = F.equal(size, inf)
    v = F.where(endless, _direction(v), v)
    return Tensor(F.divide(v, F.where(F.logical_or(endless, F.equal(size, 0)), 1, size)))


def _direction(z: Value) -> Value:
    """1, -1, 1j or -1j where one part of a complex number is infinite, NaN where both are."""
    parts = F.real(z), F.imag(z)
    found = [F.where(F.equal(F.abs(part), inf), F.sign(part), 0) for part in parts]
    both = F.logical_and(*[F.equal(F.abs(part), inf) for part in parts])
    return F.where(both, nan, F.complex_(*found))


@names_itself
def square(x: ArrayLike, /) -> Tensor:
    """x * x, elementwise."""
    v = operand(x)
    return Tensor(F.multiply(v, v))


@names_itself
def isnan(x: ArrayLike, /) -> Tensor:
    """True where x is not a number."""
    v = as_value(x)
    return Tensor(F.not_equal(v, v))


@overload
def where(condition: ArrayLike, /) -> tuple[Tensor, ...]: ...
@overload
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def where(condition: ArrayLike, x1: ArrayLike = None, x2: ArrayLike = None, /) -> Tensor | tuple[Tensor, ...]:
    """x1 where the condition is true, x2 elsewhere; with the condition alone its `nonzero`."""
    try:
        return nonzero(condition) if x1 is None and x2 is None else _chosen(condition, x1, x2)
    except Error as error:
        name_error(error, "where")
        raise


def _chosen(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike) -> Tensor:
    stack = stack_of((condition, x1, x2))
    dtype = float_among((x1, x2)) if isinstance(x1, (list, tuple)) or isinstance(x2, (list, tuple)) else None
    return Tensor(F.where(as_value(condition, stack), operand(x1, stack, dtype), operand(x2, stack, dtype)))


@names_itself
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """x brought into [min, max]; None means no limit."""
    if min is None and max is None:
        return positive(x)
    if max is None:
        return maximum(x, min)
    return minimum(x, max) if min is None else Tensor(F.clip(*as_operands(x, min, max)))

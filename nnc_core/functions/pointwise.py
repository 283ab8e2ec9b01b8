"""Public functions made of operators: of one operand, and of two."""

from __future__ import annotations

import sys
from collections.abc import Callable

from nnc_core.base.errors import Error
from nnc_core.operator import OPERATORS
from nnc_core.shape import elementwise as rule
from nnc_core.shape import representation
from nnc_core.type import Op
from nnc_core.values.arguments import ArrayLike, P, as_operands, name_error
from nnc_core.values.dispatch import dispatch
from nnc_core.values.operands import operand, value_of
from nnc_core.values.tensor import Tensor

_TAKEN = {
    rule.arithmetic: "numbers",
    rule.magnitude: "numbers",
    rule.real_arithmetic: "real numbers",
    rule.inexact: "real or complex numbers",
    rule.floating: "real numbers",
    rule.ordering: "real numbers or booleans",
    rule.bitwise: "integers or booleans",
    rule.logical: "booleans",
    rule.comparison: "any dtype",
    representation.integers: "integers",
}
"""What operators are applied to, by their rules of inference; others say it themselves."""


def unary(name: str, public: str = "") -> Callable[[ArrayLike], Tensor]:
    """The operator of that name as a public function, under the same or another name."""
    op = OPERATORS[name]

    def function(x: ArrayLike, /) -> Tensor:
        try:
            return Tensor(dispatch(op, (operand(x),), ()))
        except Error as error:
            name_error(error, public or name)
            raise

    return _named(function, op, public, operands=1)


def binary(name: str, public: str = "") -> Callable[[ArrayLike, ArrayLike], Tensor]:
    """The same of two operands."""
    op = OPERATORS[name]

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
        try:
            if x1.__class__ is Tensor and x2.__class__ is Tensor:
                return Tensor(dispatch(op, (value_of(x1), value_of(x2)), ()))
            return Tensor(dispatch(op, tuple(as_operands(x1, x2)), ()))
        except Error as error:
            name_error(error, public or name)
            raise

    return _named(function, op, public, operands=2)


def described(op: Op, operands: int) -> str:
    """The docstring of an operator as a function: what it gives, then what it takes, as its declaration has it."""
    what, taken = op.doc.partition("\n\n")[0], _TAKEN.get(op.infer)
    if taken is None:
        return f"{what}\n\nElementwise."
    about = f"Elementwise, of {taken}"
    if op.to_float:
        about += "; integers and booleans become floats first"
    about += "." if operands == 1 else ".\na and b, the two operands, are broadcast together and promoted to one dtype."
    if op.infer is rule.real_arithmetic and not op.differentiable:
        about += "\nTo differentiation it is a constant."
    errors = ["ShapeError where they do not broadcast"] if operands == 2 else []
    if op.infer is not rule.comparison:
        errors.append("DTypeError for other dtypes")
    return f"{what}\n\n{about}" + (f"\nRaises {' and '.join(errors)}." if errors else "")


def _named(function: Callable[P, Tensor], op: Op, public: str, operands: int) -> Callable[P, Tensor]:
    function.__name__ = function.__qualname__ = public or op.name
    function.__module__ = sys._getframe(2).f_globals["__name__"]  # where it is called so: pickles look there
    function.__doc__ = described(op, operands)
    return function

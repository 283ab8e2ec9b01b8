"""Public functions made of operators: of one operand, and of two."""

from __future__ import annotations

import sys
from collections.abc import Callable

from nnc_core.base.errors import Error
from nnc_core.operator import OPERATORS
from nnc_core.values.arguments import ArrayLike, P, as_operands, name_error
from nnc_core.values.dispatch import dispatch
from nnc_core.values.operands import operand, value_of
from nnc_core.values.tensor import Tensor


def unary(name: str, public: str = "") -> Callable[[ArrayLike], Tensor]:
    """The operator of that name as a public function, under the same or another name."""
    op = OPERATORS[name]

    def function(x: ArrayLike, /) -> Tensor:
        try:
            return Tensor(dispatch(op, (operand(x),), ()))
        except Error as error:
            name_error(error, public or name)
            raise

    return _named(function, name, public)


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

    return _named(function, name, public)


def _named(function: Callable[P, Tensor], name: str, public: str) -> Callable[P, Tensor]:
    function.__name__ = function.__qualname__ = public or name
    function.__module__ = sys._getframe(2).f_globals["__name__"]  # where it is called so: pickles look there
    function.__doc__ = OPERATORS[name].doc or f"Elementwise {name.replace('_', ' ')}."
    return function

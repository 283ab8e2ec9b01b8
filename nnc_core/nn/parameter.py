"""Weights: cells that a gradient may be taken by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from nnc_core.base.dtype import is_inexact
from nnc_core.base.errors import DTypeError, GradientError
from nnc_core.functions.creation import asarray, zeros_like
from nnc_core.nn.weights.frozen import changed
from nnc_core.values.cell import Cell
from nnc_core.values.modes import current_trace, gradients
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Adjoint, Value

_NONE: Mapping[Cell, Tensor] = {}
_leaves: ContextVar[Mapping[Cell, Tensor]] = ContextVar("nnc_parameter_leaves", default=_NONE)
"""The tensors that parameters are read as while a gradient by them is taken, in this context only."""


class Parameter(Cell):
    """A weight.  `read()` gives the tensor; inside `nn.value_and_grad` the leaf that is differentiated by.

    With `requires_grad` it is a variable of the dynamic graph: what is computed from it eagerly is recorded, and
    `backward` adds to its `grad`.  One that is `frozen` is not trained.
    """

    __slots__ = ("_adjoint", "_frozen", "_variable")

    def __init__(self, tensor: Any, name: str = "", requires_grad: bool = False) -> None:
        first = asarray(tensor)
        if not is_inexact(first.dtype):
            raise DTypeError(f"a parameter is floating-point, not {first.spec}", hint="keep integers in a Cell")
        super().__init__(first.detach(), name)
        self._adjoint = Adjoint() if requires_grad else None
        self._variable: Value | None = None
        self._frozen = False

    @property
    def frozen(self) -> bool:
        """True if it keeps its value in training: no gradient is taken by it.  Can be set."""
        return self._frozen

    @frozen.setter
    def frozen(self, on: bool) -> None:
        self._frozen = bool(on)
        changed()

    def read(self) -> Tensor:
        """The tensor that is there now, or the leaf that stands for it."""
        leaf = _leaves.get().get(self)
        if leaf is not None and (leaf.is_symbol or current_trace.get() is None):  # else a function is being traced
            return leaf
        tensor = super().read()
        if self._adjoint is None or self._frozen or tensor.is_symbol or not gradients.get():
            return tensor
        return self._as_variable()

    def _as_variable(self) -> Tensor:
        """The same leaf until the parameter is written: its array is that of the cell."""
        held, known = self.lend(), self._variable
        if known is None or known.array is not held.array:
            known = self._variable = Value(held.array, held.stack, held.spec, None, True)
            known.adjoint = self._adjoint
        return Tensor(known)

    def write(self, tensor: Tensor) -> None:
        """Put another tensor of the same shape and dtype there; not while a gradient by this one is taken."""
        if self in _leaves.get():
            raise GradientError(f"parameter {self.name!r} is written inside the function that is differentiated by it",
                                hint="write it after the gradient, or keep what changes in a Cell")
        super().write(tensor if self._adjoint is None else tensor.detach())
        self._variable = None

    def cast(self, dtype: Any) -> None:
        """Give the weight another dtype; what was added to `grad` is forgotten."""
        super().cast(dtype)
        self._adjoint, self._variable = None if self._adjoint is None else Adjoint(), None

    def put(self, value: Value) -> None:
        super().put(value)
        self._variable = None

    @property
    def tracked(self) -> bool:
        return self._adjoint is not None and not self._frozen

    @property
    def requires_grad(self) -> bool:
        """True if `backward` gives it a gradient."""
        return self.tracked

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if on != (self._adjoint is not None):
            self._adjoint, self._variable = Adjoint() if on else None, None

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has added up; None before."""
        g = None if self._adjoint is None else self._adjoint.grad
        return None if g is None else Tensor(g)

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        if self._adjoint is None:
            raise GradientError(f"parameter {self.name!r} has no gradient", hint="parameter.requires_grad = True")
        self._adjoint.grad = None if g is None else g._value

    def __reduce__(self) -> Any:
        """Copies and pickles go through a host array; what was added to `grad` is not part of them."""
        make, arguments = super().__reduce__()
        return _made_again, (make, arguments, self._adjoint is not None, self._frozen)

    def __repr__(self) -> str:
        return f"Parameter({self.spec})"


class Parameters(list[Parameter]):
    """The parameters of a module, which a minimiser of all of them calls as the module does."""

    def __init__(self, named: Mapping[str, Parameter]) -> None:
        super().__init__(named.values())
        self.by_name: Mapping[str, Cell] = dict(named)


def _made_again(make: Any, arguments: tuple[Any, ...], requires_grad: bool, frozen: bool = False) -> Parameter:
    parameter: Parameter = make(*arguments)
    parameter.requires_grad, parameter._frozen = requires_grad, frozen
    return parameter


def accumulated(parameters: Mapping[str, Parameter]) -> dict[str, Tensor]:
    """The gradient of each, zeros where nothing was added."""
    found = {name: p.grad for name, p in parameters.items()}
    return {name: zeros_like(Tensor(parameters[name].lend())) if g is None else g for name, g in found.items()}


@contextmanager
def read_as(leaves: Mapping[Cell, Tensor]) -> Iterator[None]:
    """Parameters are read as these tensors, until the end of the block however it ends."""
    token = _leaves.set({**_leaves.get(), **leaves})
    try:
        yield
    finally:
        _leaves.reset(token)

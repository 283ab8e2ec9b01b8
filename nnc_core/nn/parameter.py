"""Weights: cells that a gradient may be taken by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from nnc_core.base.dtype import is_float
from nnc_core.base.errors import DTypeError, GradientError
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.creation import asarray
from nnc_core.dynamic.tensor import Tensor

_NONE: Mapping[Cell, Tensor] = {}
_leaves: ContextVar[Mapping[Cell, Tensor]] = ContextVar("nnc_parameter_leaves", default=_NONE)
"""What parameters are read as while a gradient by them is taken, in this context only."""


class Parameter(Cell):
    """A weight.  `read()` gives the tensor; inside `nn.value_and_grad` the leaf that is differentiated by."""

    __slots__ = ()

    def __init__(self, tensor: Any, name: str = "") -> None:
        first = asarray(tensor)
        if not is_float(first.dtype):
            raise DTypeError(f"a parameter is floating-point, not {first.spec}", hint="keep integers in a Cell")
        super().__init__(first.detach(), name)

    def read(self) -> Tensor:
        """The tensor that is there now, or the leaf that stands for it."""
        leaf = _leaves.get().get(self)
        return super().read() if leaf is None else leaf

    def write(self, tensor: Tensor) -> None:
        """Put another tensor of the same shape and dtype there; not while a gradient by this one is taken."""
        if self in _leaves.get():
            raise GradientError(f"parameter {self.name!r} is written inside the function that is differentiated by it",
                                hint="write it after the gradient, or keep what changes in a Cell")
        super().write(tensor)

    def __repr__(self) -> str:
        return f"Parameter({self.spec})"


@contextmanager
def read_as(leaves: Mapping[Cell, Tensor]) -> Iterator[None]:
    """Parameters are read as these tensors, until the end of the block however it ends."""
    token = _leaves.set({**_leaves.get(), **leaves})
    try:
        yield
    finally:
        _leaves.reset(token)


def is_substituted() -> bool:
    """Whether a gradient by parameters is being taken around this code."""
    return bool(_leaves.get())

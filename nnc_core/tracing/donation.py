"""Donated arguments: tensors that give their memory to a compiled call, and are gone afterwards.

Memory is taken over only if nobody else can see it.  A tensor's memory is seen through another handle of the same
value, through a step that will be differentiated or computed, through another value of the same array, and through
views.  All of these hold references, so that references are what is counted; whoever holds one too many gets to keep
what he sees, and the call works on a copy.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from nnc_core.base.errors import DonatedError, Error
from nnc_core.device import Device
from nnc_core.symbol import Line, show_line, user_line
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value


class Donated:
    """Stands where a trace stands: a donated tensor has no value, as a symbol has none."""

    ended = True
    word = "donated"

    def __init__(self, function: str, argument: str, line: Line | None, lost: bool = False) -> None:
        self.function, self.argument, self.line, self.lost = function, argument, line, lost

    def size_read(self, v: Value) -> None:
        """The shape of what is gone is known."""

    def refusal(self, v: Value, what: str = "the value") -> Error:
        """The error for any use."""
        how = "was lost: a call that had begun to overwrite it failed," if self.lost else "was given up"
        return DonatedError(
            f"a tensor {v.spec} {how} as the donated argument `{self.argument}` of {self.function!r} "
            f"at {show_line(self.line)}", line=show_line(user_line()),
            hint="use the results of that call, or donate a copy: nnc.asarray(x, copy=True)")


def check_not_donated(v: Value) -> None:
    """DonatedError for a value that is gone."""
    if isinstance(v.trace, Donated):
        raise v.trace.refusal(v)


def give_up(tensor: Tensor, function: str, argument: str, lost: bool = False) -> None:
    """From now on every use of the tensor is an error."""
    old = tensor._value
    tensor._value = Value(None, old.stack, old.spec, None, False, Donated(function, argument, user_line(), lost))


def array_to_overwrite(tensor: Tensor) -> Any:
    """The tensor's array, or a copy where somebody else can see its memory, or where it does not lie well."""
    value = tensor._value
    array = value.array
    del value
    is_alone, executor = _is_alone(tensor), tensor._value.stack.engine.executor
    return executor.aligned(array) if is_alone else executor.duplicate(array)


def _is_alone(tensor: Tensor) -> bool:
    """True if nothing but this handle leads to its memory; the caller holds the array once."""
    if _references(tensor, "_value") != _ALONE:
        return False
    value = tensor._value
    if value.borrowed or value.tracked or value.step is not None or _references(value, "array") != _ALONE + 1:
        return False
    return _is_memory_alone(value.stack.device, value.array)


def _is_memory_alone(device: Device, array: Any) -> bool:
    if getattr(array, "buffer", None) is not None and device.buffer_of(array) is array.buffer:
        return _references(array, "buffer") == _ALONE
    while isinstance(array, np.ndarray):
        if array.base is None or device.pool.is_claim(array):
            return True
        if _references(array, "base") != _ALONE:
            return False
        array = array.base
    return False  # memory of which we do not know who holds it


def _references(holder: Any, name: str) -> int:
    """References to an attribute's value, those of this function included."""
    held = getattr(holder, name)
    return sys.getrefcount(held)


_ALONE = _references(SimpleNamespace(held=object()), "held")

"""Methods of tensors that stand on higher floors: items, exchange, gradients, NumPy's everyday methods."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.algodiff.backward import backward
from nnc_core.algodiff.queries import detach_
from nnc_core.base.errors import DetachedWarning, OperandError, UnknownShapeError
from nnc_core.functions import (
    casts,
    complex_numbers,
    cumulative,
    diagonals,
    editing,
    elementwise,
    indexing,
    linear,
    movement,
    reduction,
    rounding,
    sorting,
)
from nnc_core.functions.interop import cuda_interface, host_view, namespace, to_dlpack
from nnc_core.indexing.items import At, get_item, set_item
from nnc_core.symbol import users_frame
from nnc_core.values.arguments import located
from nnc_core.values.dispatch import F
from nnc_core.values.dropped_writes import OF_TEMPORARY, warn_of_temporary
from nnc_core.values.in_place import write_in_place
from nnc_core.values.operands import copied, value_of
from nnc_core.values.postponed import one, postponable, postponed
from nnc_core.values.tensor import Tensor

METHODS = {
    "astype": casts, "clip": elementwise, "conj": complex_numbers, "diagonal": diagonals, "dot": linear,
    "ravel": movement,
    "round": rounding, "squeeze": movement, "swapaxes": movement, "take": indexing, "trace": diagonals,
}  # fmt: skip
REDUCTIONS = ("sum", "prod", "max", "min", "all", "any", "mean", "argmax", "argmin")


def _positional_axis(name: str) -> Callable[..., Tensor]:
    """x.sum(0): the axis may be positional, as in NumPy, whose np.sum(x) calls this with `dtype` and `out`."""
    function = getattr(reduction, name)

    def method(self: Tensor, axis: Any = None, *, out: None = None, **options: Any) -> Tensor:
        if out is not None:
            raise OperandError("tensors are not written through out=", operator=name, hint="y[...] = the result")
        given = {k: v for k, v in options.items() if k != "dtype" or v is not None}
        return function(self, axis=axis, **given)  # type: ignore[no-any-return]

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _spread(name: str) -> Callable[..., Tensor]:
    """x.var(0, ddof=1) and x.std(0, correction=1), as NumPy has them and calls them."""
    function = _positional_axis(name)

    def method(self: Tensor, axis: Any = None, *, ddof: float = 0, correction: float | None = None,
               **options: Any) -> Tensor:
        return function(self, axis, correction=ddof if correction is None else correction, **options)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _scan(name: str) -> Callable[..., Tensor]:
    function = getattr(cumulative, name)

    def method(self: Tensor, axis: Any = None, dtype: Any = None, out: None = None) -> Tensor:
        if out is not None:
            raise OperandError("tensors are not written through out=", operator=name, hint="y[...] = the result")
        return function(self, axis, dtype)  # type: ignore[no-any-return]

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _argsort(self: Tensor, axis: int = -1, *, descending: bool = False) -> Tensor:
    """int64 positions of the elements along an axis, from the smallest to the largest, or the other way round."""
    return sorting.argsort(self, axis=axis, descending=descending)


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """x.reshape(2, 3) or x.reshape((2, 3))"""
    return movement.reshape(self, shape[0] if len(shape) == 1 else shape)


@partial(postponable, like=one)
def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """All axes reversed, or permuted as given."""
    if not axes:
        v = value_of(self)
        return Tensor(F.permute(v, axes=tuple(range(v.ndim - 1, -1, -1))))
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return movement.permute_dims(self, given or tuple(reversed(range(self.ndim))))


def _copy(self: Tensor) -> Tensor:
    """A tensor in memory of its own with the same value: whatever is written to one never changes the other."""
    return Tensor(copied(value_of(self)))


def _flatten(self: Tensor, start: int = 0, stop: int = -1) -> Tensor:
    """The axes from `start` to `stop`, both included, made one: x.flatten(1) keeps the first."""
    return movement.flatten(self, start, stop)


def _repeat(self: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    return editing.repeat(self, repeats, axis=axis)


def _matmul(self: Tensor, other: Any) -> Tensor:
    return linear.matmul(self, other)


def _rmatmul(self: Tensor, other: Any) -> Tensor:
    return linear.matmul(other, self)


def _imatmul(self: Tensor, other: Any) -> Tensor:
    return self._rebind(lambda: linear.matmul(self, other)._value)


# ---- items
def _divmod(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    return rounding.divmod(self, other)


def _rdivmod(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    return rounding.divmod(other, self)


def _round(self: Tensor, digits: int | None = None) -> Tensor:
    """round(x, 2), as Python writes it for numbers."""
    return rounding.round(self, digits or 0)


def _contains(self: Tensor, value: Any) -> bool:
    """Tell whether some element equals the value, as NumPy's arrays have it."""
    found: Any = self == value
    return bool(reduction.any(found)) if isinstance(found, Tensor) else False


def _getitem(self: Tensor, key: Any) -> Tensor:
    try:
        return Tensor(get_item(value_of(self), key))
    except UnknownShapeError as error:
        return postponed(error, _getitem, (self, key), {}, one)  # type: ignore[no-any-return]


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    references = sys.getrefcount(self)
    if not write_in_place(self, key, value):
        self._rebind(lambda: set_item(value_of(self), key, value))
    if references == OF_TEMPORARY:
        warn_of_temporary(self)


def _at(self: Tensor) -> At:
    """`x.at[key].set(v)`, `.add(v)`, `.multiply(v)`, `.max(v)` ...: x with items changed, as a new tensor."""
    return At(self)


# ---- exchange with other libraries
def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """A host copy; with copy=False a read-only view of the tensor's own memory, or ValueError."""
    if copy is False:
        return host_view(self, dtype)
    if self._value.tracked and not self.is_symbol:
        made = f", made at {self.line}," if self._value.step else ""
        warnings.warn(f"{self.spec}{made} is handed to NumPy, where no gradient follows it: use nnc's function, or "
                      ".detach()", DetachedWarning, stacklevel=users_frame())
    return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module with the Array API's functions."""
    return namespace(api_version)


def _dlpack(self: Tensor, *, stream: Any = None, max_version: tuple[int, int] | None = None,
            dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """Memory for another library: this tensor's own, read-only, where the other side knows read-only memory (DLPack
    1.0), and a copy otherwise.  It is on the device for devices that other libraries know, such as GPUs of CUDA, and
    else in the host's memory, shared where the device computes there."""
    return to_dlpack(self, stream, max_version, dl_device, copy)


def _cuda_array_interface(self: Tensor) -> Any:
    """The tensor's own memory, to be read only, for libraries of CUDA; AttributeError on other devices."""
    return cuda_interface(self)


# ---- gradients
@located
def _backward(self: Tensor, gradient: Tensor | None = None) -> None:
    """Add the gradient of this scalar to `.grad` of every variable that it was computed from."""
    backward(self, gradient)


def _detach_(self: Tensor) -> Tensor:
    """Cut the dynamic graph here: this value becomes a constant, also to what was computed from it, and the history
    that only it kept is freed."""
    return detach_(self)


def install() -> None:
    """Give Tensor its methods."""
    for name, module in METHODS.items():
        setattr(Tensor, name, getattr(module, name))
    for name in REDUCTIONS:
        setattr(Tensor, name, _positional_axis(name))
    for name in ("var", "std"):
        setattr(Tensor, name, _spread(name))
    for name in ("cumsum", "cumprod"):
        setattr(Tensor, name, _scan(name))
    named: dict[str, Any] = {
        "reshape": _reshape, "transpose": _transpose, "flatten": _flatten, "repeat": _repeat, "copy": _copy,
        "argsort": _argsort, "backward": _backward, "detach_": _detach_, "at": property(_at),
        "__getitem__": _getitem, "__setitem__": _setitem, "__array__": _array,
        "__array_namespace__": _array_namespace, "__dlpack__": _dlpack,
        "__cuda_array_interface__": property(_cuda_array_interface), "__matmul__": _matmul,
        "__divmod__": _divmod, "__rdivmod__": _rdivmod, "__round__": _round, "__contains__": _contains,
        "__rmatmul__": _rmatmul, "__imatmul__": _imatmul, "T": property(_transpose),
        "mT": property(movement.matrix_transpose), "real": property(complex_numbers.real),
        "imag": property(complex_numbers.imag),
    }  # fmt: skip
    for name, method in named.items():
        setattr(Tensor, name, method)
        _name(method, name)


def _name(method: Any, name: str) -> None:
    """Errors and help speak of the method by the name that users write."""
    function: Any = method.fget if isinstance(method, property) else method
    if function.__module__ == __name__:
        function.__name__, function.__qualname__ = name, f"Tensor.{name}"

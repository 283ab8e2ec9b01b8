"""NumPy's everyday methods of tensors: the public functions, bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnc_core.base.errors import OperandError
from nnc_core.dynamic.functions import (
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
from nnc_core.dynamic.tensor import Tensor, value_of
from nnc_core.dynamic.value import owned

METHODS = {
    "astype": elementwise, "clip": elementwise, "conj": complex_numbers, "diagonal": diagonals, "dot": linear,
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


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """All axes reversed, or permuted as given."""
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    return movement.permute_dims(self, given or tuple(reversed(range(self.ndim))))


def _copy(self: Tensor) -> Tensor:
    """A tensor of its own with the same value: writing to one never changes the other."""
    return Tensor(owned(value_of(self)))


def _flatten(self: Tensor) -> Tensor:
    return movement.reshape(self, (-1,))


def _repeat(self: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    return editing.repeat(self, repeats, axis=axis)


def _matmul(self: Tensor, other: Any) -> Tensor:
    return linear.matmul(self, other)


def _rmatmul(self: Tensor, other: Any) -> Tensor:
    return linear.matmul(other, self)


def _imatmul(self: Tensor, other: Any) -> Tensor:
    return self._rebind(lambda: linear.matmul(self, other)._value)


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
        "argsort": _argsort,
        "__matmul__": _matmul,
        "__rmatmul__": _rmatmul, "__imatmul__": _imatmul, "T": property(_transpose),
        "mT": property(movement.matrix_transpose), "real": property(complex_numbers.real),
        "imag": property(complex_numbers.imag),
    }  # fmt: skip
    for name, method in named.items():
        setattr(Tensor, name, method)


install()

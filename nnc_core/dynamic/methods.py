"""NumPy's everyday methods of tensors: the public functions, bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnc_core.base.errors import OperandError
from nnc_core.dynamic.functions import elementwise, indexing, linear, movement, reduction
from nnc_core.dynamic.tensor import Tensor, value_of
from nnc_core.dynamic.value import owned

METHODS = {"astype": elementwise, "clip": elementwise, "squeeze": movement, "take": indexing}
REDUCTIONS = ("sum", "max", "min", "all", "any", "mean", "argmax", "argmin")


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
    named: dict[str, Any] = {
        "reshape": _reshape, "transpose": _transpose, "flatten": _flatten, "ravel": _flatten, "copy": _copy,
        "__matmul__": _matmul,
        "__rmatmul__": _rmatmul, "__imatmul__": _imatmul, "T": property(_transpose),
        "mT": property(movement.matrix_transpose),
    }  # fmt: skip
    for name, method in named.items():
        setattr(Tensor, name, method)


install()

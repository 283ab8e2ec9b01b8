"""State as an operand: what stands for a tensor is read where a tensor is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from nnc_core.base.errors import GradientError, NotSupportedError
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Specified, TensorSpec
from nnc_core.values.in_place_results import in_place_result
from nnc_core.values.modes import gradients
from nnc_core.values.tensor import Tensor


def _forward(name: str) -> Callable[..., Any]:
    """A special method of the tensor that is read."""

    def method(self: ReadAsTensor, *args: Any) -> Any:
        return getattr(self.read(), name)(*args)

    method.__name__ = name
    return method


def _in_place(name: str) -> Callable[..., Any]:
    def method(self: ReadAsTensor, other: Any) -> Any:
        return self._replace(getattr(self.read(), name)(other))

    return method


class ReadAsTensor(Specified):
    """Something with `read()`, which stands for the tensor that it gives: `x * w`, `nnc.sum(w)`, `w.shape`, `w[0]`.

    Reading is what counts in a trace and in a gradient.  Two such things are equal if they are one; beside anything
    else == goes element by element.
    """

    __slots__ = ()

    spec: TensorSpec
    __array_ufunc__: Any
    __array_function__: Any
    unknown: ClassVar[Callable[[Any, str], Any]]
    """Raises the error for an attribute that neither this nor tensors have."""

    def read(self) -> Tensor:
        """The tensor that is there now."""
        raise NotImplementedError(f"{type(self).__name__} has no read()")

    def __nnc_tensor__(self) -> Tensor:
        """The tensor that operators and functions take in its place."""
        return self.read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """A host copy, as of a tensor."""
        return self.read().__array__(dtype, copy)

    def __getattr__(self, name: str) -> Any:
        """A public attribute or method of the tensor: `w.T`, `w.sum()`, `w.numpy()`."""
        if name.startswith("_") or not hasattr(Tensor, name):
            return type(self).unknown(self, name)
        return getattr(self.read(), name)

    def _replace(self, new: Any) -> Any:
        """Put the result of an in-place operator in the place of what was there."""
        raise NotSupportedError(f"{type(self).__name__} cannot be written", line=show_line(user_line()),
                                hint="compute with it: w = w + 1")

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.read())

    def __eq__(self, other: object) -> Any:
        return self is other if isinstance(other, ReadAsTensor) else self.read() == other

    def __ne__(self, other: object) -> Any:
        return self is not other if isinstance(other, ReadAsTensor) else self.read() != other

    def __setitem__(self, key: Any, value: Any) -> None:
        self._replace(self.read().at[key].set(value))

    __hash__ = object.__hash__
    __getitem__ = _forward("__getitem__")
    __bool__, __int__, __float__ = _forward("__bool__"), _forward("__int__"), _forward("__float__")
    __complex__, __index__ = _forward("__complex__"), _forward("__index__")
    __neg__, __pos__ = _forward("__neg__"), _forward("__pos__")
    __abs__, __invert__, __round__ = _forward("__abs__"), _forward("__invert__"), _forward("__round__")
    __lt__, __le__ = _forward("__lt__"), _forward("__le__")
    __gt__, __ge__ = _forward("__gt__"), _forward("__ge__")
    __add__, __radd__ = _forward("__add__"), _forward("__radd__")
    __sub__, __rsub__ = _forward("__sub__"), _forward("__rsub__")
    __mul__, __rmul__ = _forward("__mul__"), _forward("__rmul__")
    __matmul__, __rmatmul__ = _forward("__matmul__"), _forward("__rmatmul__")
    __truediv__, __rtruediv__ = _forward("__truediv__"), _forward("__rtruediv__")
    __floordiv__, __rfloordiv__ = _forward("__floordiv__"), _forward("__rfloordiv__")
    __mod__, __rmod__ = _forward("__mod__"), _forward("__rmod__")
    __divmod__, __rdivmod__ = _forward("__divmod__"), _forward("__rdivmod__")
    __pow__, __rpow__ = _forward("__pow__"), _forward("__rpow__")
    __and__, __rand__ = _forward("__and__"), _forward("__rand__")
    __or__, __ror__ = _forward("__or__"), _forward("__ror__")
    __xor__, __rxor__ = _forward("__xor__"), _forward("__rxor__")
    __lshift__, __rlshift__ = _forward("__lshift__"), _forward("__rlshift__")
    __rshift__, __rrshift__ = _forward("__rshift__"), _forward("__rrshift__")
    __iadd__, __isub__ = _in_place("__add__"), _in_place("__sub__")
    __imul__, __itruediv__ = _in_place("__mul__"), _in_place("__truediv__")
    __ifloordiv__, __imod__ = _in_place("__floordiv__"), _in_place("__mod__")
    __ipow__, __imatmul__ = _in_place("__pow__"), _in_place("__matmul__")


class WrittenAsTensor(ReadAsTensor):
    """The same of something with `write` too: `w -= 0.1 * g` and `w[0] = 1` write what they compute."""

    __slots__ = ()

    @property
    def tracked(self) -> bool:
        """True if what is read out is a variable, whose gradient may be asked."""
        return False

    def write(self, tensor: Tensor) -> None:
        """Put another tensor of the same shape and dtype there."""
        raise NotImplementedError(f"{type(self).__name__} has no write()")

    def _replace(self, new: Any) -> Any:
        if new is NotImplemented:
            return NotImplemented
        if self.tracked and gradients.get():
            raise GradientError(f"in-place change of {self!r}, a variable whose gradient is followed",
                                line=show_line(user_line()), hint="with nnc.no_grad(): ...")
        self.write(Tensor(in_place_result(new._value, self.spec)))
        return self

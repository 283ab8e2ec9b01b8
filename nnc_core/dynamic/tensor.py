"""The one array type: a handle that points at a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.errors import DeferredInplaceError, OperandError, ShapeError, SymbolValueError
from nnc_core.composition import stack_for
from nnc_core.device import Device, DeviceSpec
from nnc_core.dynamic.dispatch import F, dispatch, evaluate, host_value
from nnc_core.dynamic.modes import current_trace, gradients, lazy
from nnc_core.dynamic.value import Value
from nnc_core.operator import OPERATORS
from nnc_core.symbol import show_line
from nnc_core.type import Dims, Op, TensorSpec

if TYPE_CHECKING:
    from nnc_core.dynamic.indexing import At


class Tensor:
    """An n-dimensional array of one dtype on one device.

    Its value may be there, deferred until somebody looks, or the symbol of a graph; operations are the same.  In-place
    operators and item assignment make the handle point at a new value; other tensors never see them.
    """

    __slots__ = ("__weakref__", "_value")
    __array_priority__ = 1000

    def __init__(self, value: Value) -> None:
        self._value = value

    # ---- what it is
    @property
    def spec(self) -> TensorSpec:
        return self._value.spec

    @property
    def shape(self) -> Dims:
        return self._value.spec.shape

    @property
    def dtype(self) -> DType:
        return self._value.spec.dtype

    @property
    def ndim(self) -> int:
        return len(self._value.spec.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for d in self.shape:
            count = count * d  # type: ignore[assignment]
        return count

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes

    @property
    def device(self) -> DeviceSpec:
        return self._value.stack.device.spec

    @property
    def is_deferred(self) -> bool:
        """Not computed yet, but computable."""
        return self._value.array is None and self._value.trace is None

    @property
    def is_symbol(self) -> bool:
        """Part of a graph under construction; has no value of its own."""
        return self._value.trace is not None

    @property
    def line(self) -> str:
        """The user's line that made it; "?" where none was kept."""
        return show_line(self._value.line)

    # ---- its elements
    def realize(self) -> Tensor:
        """Compute the value if it is deferred."""
        if self._value.array is None:
            evaluate([self._value])
        return self

    def wait(self) -> Tensor:
        """Block until the value is there; errors of asynchronous work are raised here."""
        self.realize()
        self._value.stack.device.default_stream.synchronize()
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        """A host copy."""
        array: np.ndarray[Any, Any] = self._value.stack.engine.executor.download(self.realize()._value.array)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def item(self) -> Any:
        """The only element, as a Python number."""
        if any(d != 1 for d in self.shape):
            raise ShapeError(f"{self.spec} has not exactly one element", hint="index it or reduce it first")
        return self.numpy().item()

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def _scalar(self, what: str) -> Any:
        if self.is_symbol:
            raise SymbolValueError(f"{what} of a symbol {self.spec}: it has a value only when its graph is called",
                                   line=show_line(self._value.line), hint="use nnc.where for a choice by data")
        return self.item()

    def __bool__(self) -> bool:
        return bool(self._scalar("the truth value"))

    def __int__(self) -> int:
        return int(self._scalar("the integer value"))

    def __float__(self) -> float:
        return float(self._scalar("the float value"))

    def __index__(self) -> int:
        value = self._scalar("the index value")
        if not isinstance(value, int):
            raise OperandError(f"{self.spec} is no integer index")
        return value

    def __len__(self) -> int:
        if not self.shape:
            raise OperandError("a 0-dimensional tensor has no length")
        return self.shape[0].__index__()

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self.is_symbol:
            return f"Tensor(symbol, {self.spec}, device={self.device.id})"
        if self.is_deferred:
            return f"Tensor(deferred, {self.spec}, device={self.device.id})"
        text = np.array2string(self.numpy(), prefix="Tensor(", threshold=200)
        return f"Tensor({text}, dtype={self.dtype}, device={self.device.id})"

    __hash__ = object.__hash__

    # ---- devices
    def to(self, device: str | Device) -> Tensor:
        """The same value on another device; itself if it is there already."""
        stack = stack_for(device)
        if stack is self._value.stack:
            return self
        return Tensor(F.transfer(value_of(self), source=self.device.id, target=stack.device.spec.id))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Array API spelling of `to`."""
        return self.to(device.id if isinstance(device, DeviceSpec) else device)

    # ---- gradients
    @property
    def grad(self) -> Tensor | None:
        """What `backward` has added up for a variable; None before."""
        g = self._value.grad
        return None if g is None else Tensor(g)

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        self._value.grad = None if g is None else g._value

    @property
    def requires_grad(self) -> bool:
        """A variable, or computed from one."""
        return self._value.tracked

    def backward(self, gradient: Tensor | None = None) -> None:
        """Add the gradient of this scalar to `.grad` of every variable that it was computed from."""
        from nnc_core.dynamic.gradients import backward

        backward(self, gradient)

    def detach(self) -> Tensor:
        """The same value as a constant to differentiation."""
        v = self._value
        if v.array is not None:
            return Tensor(Value(v.array, v.stack, v._spec))
        return Tensor(F.stop_gradient(value_of(self)))

    # ---- items
    def __getitem__(self, key: Any) -> Tensor:
        from nnc_core.dynamic.indexing import get_item

        return Tensor(get_item(value_of(self), key))

    def __setitem__(self, key: Any, value: Any) -> None:
        from nnc_core.dynamic.indexing import set_item

        self._rebind(lambda: set_item(value_of(self), key, operand(value)))

    @property
    def at(self) -> At:
        """`x.at[key].set(v)` and `x.at[key].add(v)`: x with items changed, as a new tensor."""
        from nnc_core.dynamic.indexing import At

        return At(self)

    def _rebind(self, make: Callable[[], Value]) -> Tensor:
        """Point at a new value; a variable changed under no_grad stays a variable."""
        old = self._value
        if (old.array is None and old.trace is None) or lazy.get() or old.trace is not None:
            raise DeferredInplaceError(f"in-place change of a {'symbol' if old.trace else 'deferred tensor'} {old.spec}",
                                       line=show_line(old.line), hint="x = x + y, or x = x.at[key].set(y)")
        new = make()
        if new.shape != old.shape or new.dtype != old.dtype:
            raise ShapeError(f"the result is {new.spec}, which cannot take the place of {old.spec}",
                             hint="write x = x + y instead of x += y")
        if old.tracked and old.step is None and not gradients.get():
            new.tracked, new.grad = True, old.grad
        self._value = new
        return self

    # ---- NumPy's everyday methods are set by nnc_core.dynamic.methods


def value_of(t: Tensor) -> Value:
    """The value a tensor points at; a running trace notes that it was read from outside."""
    value = t._value
    trace = current_trace.get()
    if trace is not None and value.trace is None:
        trace.note(t)
    return value


def operand(x: Any) -> Any:
    """A value, or a Python number as it is; NumPy arrays and lists become values of the current device."""
    if x.__class__ is Tensor:
        return value_of(x)
    if isinstance(x, (bool, int, float, np.generic)):
        return x
    if isinstance(x, Tensor):
        return value_of(x)
    if isinstance(x, (np.ndarray, list, tuple)):
        return host_value(x)
    raise OperandError(f"{type(x).__name__} is no array and no number", hint="make it an array with nnc.asarray")


def _binary(op: Op, swapped: bool = False) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        cls = other.__class__
        if cls is Tensor:
            b: Any = value_of(other)
        elif cls is float or cls is int:
            b = other
        else:
            b = _foreign(self, other)
            if b is NotImplemented:
                return NotImplemented
        a = value_of(self)
        return Tensor(dispatch(op, (b, a) if swapped else (a, b), ()))

    return method


def _foreign(self: Tensor, other: Any) -> Any:
    """An operand that is no tensor: arrays and lists go to this tensor's device."""
    if isinstance(other, (bool, np.generic)):
        return other
    if isinstance(other, (np.ndarray, list)):
        return host_value(other, stack=self._value.stack)
    return value_of(other) if isinstance(other, Tensor) else NotImplemented


def _unary(op: Op) -> Any:
    def method(self: Tensor) -> Tensor:
        return Tensor(dispatch(op, (value_of(self),), ()))

    return method


def _in_place(op: Op) -> Any:
    compute = _binary(op)

    def method(self: Tensor, other: Any) -> Tensor:
        return self._rebind(lambda: compute(self, other)._value)

    return method


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "logical_and", "or": "logical_or", "xor": "logical_xor",
}  # fmt: skip
for _python, _name in _OPERATORS.items():
    _op = OPERATORS[_name]
    setattr(Tensor, f"__{_python}__", _binary(_op))
    setattr(Tensor, f"__r{_python}__", _binary(_op, swapped=True))
    setattr(Tensor, f"__i{_python}__", _in_place(_op))
for _python, _name in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                       "ge": "greater_equal"}.items():
    setattr(Tensor, f"__{_python}__", _binary(OPERATORS[_name]))
for _python, _name in {"neg": "negative", "abs": "abs", "invert": "logical_not"}.items():
    setattr(Tensor, f"__{_python}__", _unary(OPERATORS[_name]))
Tensor.__pos__ = lambda self: self  # type: ignore[attr-defined]

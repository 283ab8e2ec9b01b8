"""The one array type: a handle that points at a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.errors import DeferredInplaceError, Error, GradientError, OperandError, ShapeError
from nnc_core.device import DeviceSpec
from nnc_core.stacks import stack_for
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Dims, TensorSpec, any_data_dependent
from nnc_core.values.bound_methods import BoundMethods
from nnc_core.values.data_dependent import refresh
from nnc_core.values.dispatch import F
from nnc_core.values.dropped_writes import is_part, is_unread, unread
from nnc_core.values.evaluation import compute, evaluate, shape_of
from nnc_core.values.from_host import ordered
from nnc_core.values.hooks import HookHandle, register_accumulation_hook, register_hook
from nnc_core.values.in_place_results import in_place_result
from nnc_core.values.modes import current_trace, gradients, use_device
from nnc_core.values.operands import value_of
from nnc_core.values.refusals import no_value
from nnc_core.values.unshaped import text_of
from nnc_core.values.value import Value, owned


def _traced_change(old: Value) -> Error:
    """The error for an in-place change of what others see as well: eager code would change it at each call."""
    trace, running = old.trace, current_trace.get()
    if trace is not None and trace.ended:
        return trace.refusal(old)  # type: ignore[no-any-return]
    if trace is None:
        what = f"tensor {text_of(old)} while operations are recorded, which comes from outside"
    elif running is None:
        what = f"symbol {text_of(old)}"
    elif trace is running:
        what = f"symbol {text_of(old)}, an argument, which the caller of {running.name!r} holds"
    else:
        what = f"symbol {text_of(old)}, which comes from around {running.name!r}"
    return DeferredInplaceError(f"in-place change of a {what}", line=show_line(user_line()),
                                hint="x = x.copy() first, x = x + y, or x = x.at[key].set(y)")


class Tensor(BoundMethods):
    """An n-dimensional array of one dtype on one device.

    Its value may be there, deferred until somebody looks, or the symbol of a graph; operations are the same.  In-place
    operators and item assignment make the handle point at a new value; other tensors never see them.
    """

    __slots__ = ()

    def __init__(self, value: Value) -> None:
        self._value = value

    # ---- what it is
    @property
    def spec(self) -> TensorSpec:
        return self._value.spec

    @property
    def shape(self) -> Dims:
        """Numbers; a deferred tensor whose shape depends on data is computed for them.  A symbol may have names."""
        v = self._value
        if v.trace is not None:
            v.trace.size_read(v)
        return shape_of(v) if any_data_dependent() else v.spec.shape

    @property
    def static_shape(self) -> tuple[int | None, ...]:
        """The shape as far as it is known without computing anything: None for a dimension that has no number."""
        refresh(self._value)
        return tuple([d if isinstance(d, int) else None for d in self._value.spec.shape])

    @property
    def dtype(self) -> DType:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return len(self._value.spec.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for d in self.shape:
            count = count * d
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

    def numpy(self, order: str = "C") -> np.ndarray[Any, Any]:
        """A host copy, its elements in C order or, with "F", in Fortran's: the first index changes quickest."""
        trace = current_trace.get()
        if trace is not None and self._value.trace is None:
            trace.concretized(self)
        if self._value.array is None:
            compute([self._value], "it was converted")
        array: np.ndarray[Any, Any] = self._value.stack.engine.executor.download(self._value.array)
        return array if order == "C" else ordered(array, order)

    def __format__(self, spec: str) -> str:
        """Format a number as Python writes it: `f"{loss:.3f}"`."""
        return format(self.item(), spec) if spec and self.ndim == 0 else super().__format__(spec)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of what `__dlpack__` gives: the device's where other libraries know that, else the host's."""
        return self._value.stack.device.dlpack_device or (1, 0)

    def item(self) -> Any:
        """The only element, as a Python number."""
        shape = self.shape
        if shape and any([d != 1 for d in shape]):
            raise ShapeError(f"{self.spec} has not exactly one element", hint="index it or reduce it first")
        return self.numpy().item()

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def _scalar(self, what: str) -> Any:
        if self.is_symbol:
            raise no_value(self._value, what)
        return self.item()

    def __bool__(self) -> bool:
        try:
            return bool(self._scalar("the truth value"))
        except ShapeError as error:
            if error.operator is None and self.size != 1:
                error.locate(operator="bool", line=show_line(user_line()))
                error.hint = "nnc.all(x) or nnc.any(x); & and | instead of `and` and `or`"
            raise

    def __int__(self) -> int:
        return int(self._scalar("the integer value"))

    def __float__(self) -> float:
        return float(self._scalar("the float value"))

    def __complex__(self) -> complex:
        return complex(self._scalar("the complex value"))

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
            word, spec = getattr(self._value.trace, "word", "symbol"), text_of(self._value)
            return f"Tensor({word}, {spec}, device={self.device.id})"
        if self.is_deferred:
            return f"Tensor(deferred, {self.spec}, device={self.device.id})"
        text = np.array2string(self.numpy(), prefix="Tensor(", threshold=200)
        return f"Tensor({text}, dtype={self.dtype}, device={self.device.id})"

    __hash__ = object.__hash__

    # ---- devices
    def to(self, device: Any = None, dtype: Any = None) -> Tensor:
        """The same value on another device, as a tensor of its own: later item assignments do not reach it.

        With a dtype, `x.to(nnc.float16)` too, cast before it is moved.
        """
        if isinstance(device, np.dtype) or (isinstance(device, type) and issubclass(device, np.generic)):
            device, dtype = dtype, device
        value = value_of(self if dtype is None else self.astype(dtype))
        stack = value.stack if device is None else stack_for(device)
        if stack is value.stack:
            return Tensor(value)
        with use_device(stack):
            return Tensor(F.transfer(value, source=self.device.id, target=stack.device.spec.id))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Array API spelling of `to`."""
        return self.to(device.id if isinstance(device, DeviceSpec) else device)

    # ---- gradients
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has added up for a variable; None before."""
        g = self._value.grad
        return None if g is None else Tensor(g)

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        self._value.grad = None if g is None else owned(g._value)

    @property
    def requires_grad(self) -> bool:
        """A variable, or computed from one; PyTorch's way of making one is refused."""
        return self._value.tracked

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if on != self._value.tracked:
            raise GradientError(f"a tensor is {'no' if on else 'a'} variable for good",
                                hint="x = nnc.variable(x)" if on else "x = x.detach()", line=show_line(user_line()))

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call `hook` with the gradient of this value when a backward pass has it complete; what it gives, unless
        None, takes the gradient's place.  `remove()` of the result takes the hook away."""
        return register_hook(self._value, hook, Tensor)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> HookHandle:
        """Call `hook` with this variable whenever a backward pass has added to its `.grad`."""
        return register_accumulation_hook(self, hook, Tensor)

    def detach(self) -> Tensor:
        """The same value as a constant to differentiation."""
        v = self._value
        if v.borrowed:
            return Tensor(v)
        if v.array is not None:
            return Tensor(Value(v.array, v.stack, v._spec))
        return Tensor(F.stop_gradient(value_of(self)))

    def __pos__(self) -> Tensor:
        return Tensor(self._value)  # a tensor of its own, as NumPy's: what is written into it reaches no other

    def _rebind(self, make: Callable[[], Value]) -> Tensor:
        """Point at a new value, recorded in deferred mode; a variable is changed under no_grad alone, and stays one."""
        written = self.__class__ is not Tensor and is_unread(self)
        old = self._value
        trace = current_trace.get()
        if trace is not None or old.trace is not None:
            if trace is None or not trace.owns(self):
                raise _traced_change(old)
            trace.let_go(self)
        is_variable = old.tracked and old.step is None
        if is_variable and gradients.get():
            raise GradientError(f"in-place change of a variable {old.spec}, whose gradient is followed",
                                line=show_line(user_line()),
                                hint="with nnc.no_grad(): ..., or y = v * 2 and y.at[key].set(x) for a result of it")
        of_another = written or (self.__class__ is Tensor and is_part(old))
        new = in_place_result(make(), old)
        if is_variable:
            evaluate([new])  # a variable has a value and no history
            new = Value(new.array, new.stack, new._spec, None, True)
            new.adjoint = old.kept_adjoint()
        self._value = new
        if of_another:
            unread(self)
        return self

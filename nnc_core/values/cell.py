"""State: the only thing that changes besides handles."""

from __future__ import annotations

from collections import deque
from threading import RLock
from typing import Any

from nnc_core.base.errors import DeviceError, DTypeError, LostCellError, NotSupportedError, ShapeError
from nnc_core.device import DeviceSpec
from nnc_core.stacks import Stack, stack_for
from nnc_core.symbol import postorder
from nnc_core.type import TensorSpec
from nnc_core.values.copies import reduce_value
from nnc_core.values.dispatch import F
from nnc_core.values.evaluation import evaluate
from nnc_core.values.from_host import host_value
from nnc_core.values.history import Round, cut, was_computed
from nnc_core.values.in_place import is_held_once, references
from nnc_core.values.modes import current_trace
from nnc_core.values.reading import WrittenAsTensor
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Trace, guarded
from nnc_core.values.value import PassingStep, Value, owned

__all__ = ["LONGEST_PAST", "Cell", "Trace", "guarded"]

LONGEST_PAST = 256
"""Deferred writes that a cell remembers."""
SHORT_PAST = 16
"""The same where computed values are to be forgotten."""


class Cell(WrittenAsTensor):
    """A mutable place for one tensor: a weight, a running statistic, a step count, a random key.

    Read in a trace it is an input of the graph, written an output that takes the input's memory.  A compiled graph
    overwrites a cell's array only if nobody else can hold it: a cell that was read out is copied first, unless its
    array is seen to have no other holder.

    Operators and functions take a cell for the tensor that is there.
    """

    __slots__ = ("__weakref__", "_lock", "_lost", "_past", "_shared", "_value", "_written_at", "name", "roams")

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        self._value = owned(tensor._value)
        self._shared = True
        self._lost = ""
        self._past: deque[Value] = deque()
        self._written_at = -1
        """`Round.made` at the latest write."""
        self._lock = RLock()  # held while the array is overwritten, or read to be written again
        self.name = name
        self.roams = False
        """Whoever needs it brings it to its own device, compiled code too."""

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]
        return self._value.spec

    @property
    def device(self) -> DeviceSpec:
        return self.stack.device.spec

    @property
    def stack(self) -> Stack:
        """The stack that computes there; a device that was opened again under the same id has another one."""
        return self._value.stack

    def __reduce__(self) -> Any:
        """Copies and pickles go through a host array."""
        held = Tensor(self.lend())
        if current_trace.get() is not None:
            reduce_value(self.read()._value)  # of a symbol: an error
        return _made_again, (type(self), held.numpy(), self.device.id, self.name)

    def read(self) -> Tensor:
        """The tensor that is there now."""
        trace = current_trace.get()
        if trace is not None:
            return trace.read(self)
        self._check()
        self._shared = True
        return Tensor(self._value)

    def write(self, tensor: Tensor) -> None:
        """Put another tensor of the same shape and dtype there."""
        held, new = self._value, tensor._value
        if new.array is None or (new.shape, new.dtype, new.stack) != (held.shape, held.dtype, held.stack):
            self._check_fit(tensor)
        trace = current_trace.get()
        if trace is not None:
            trace.write(self, tensor._value)
        else:
            self._value, self._shared, self._lost = owned(tensor._value), True, ""
            if self._past or held.array is None or held.step is not None:
                self._past.append(held)
                self._forget()
            self._written_at = Round.made

    def advance(self, after: Value) -> None:
        """`write` of what was made, eagerly, of the value that is there: it fits."""
        if self._past or self._value.step is not None:
            self.write(Tensor(after))
        else:
            self._value, self._shared = after, True

    def _check_fit(self, tensor: Tensor) -> None:
        spec = self._value.spec
        if tensor.shape != spec.shape:
            raise ShapeError(f"cell {self.name!r} holds {spec}, not {tensor.spec}")
        if tensor.dtype != spec.dtype:
            raise DTypeError(f"cell {self.name!r} holds {spec}, not {tensor.spec}", hint="cast with astype")
        if tensor._value.stack is not self.stack:
            raise DeviceError(f"cell {self.name!r} and the tensor are on {self.stack.and_on(tensor._value.stack)}",
                              hint="move one of them: cell.move(...) or tensor.to(...)")

    def _forget(self) -> None:
        """Former values that are computed lose their history, or deferred training would keep all of its past.

        What nobody looks at is computed now and then for that reason: a step count seldom, a running statistic soon,
        since it holds arrays of a step that somebody has looked at.
        """
        if len(self._past) > LONGEST_PAST or (self._written_at != Round.made and self._is_left_behind()):
            evaluate([self._past[-1]])
        while self._past and (self._past[0].array is not None or len(self._past) > LONGEST_PAST):
            old = self._past.popleft()
            if not old.tracked:
                cut(old)

    def _is_left_behind(self) -> bool:
        """Tell whether the latest former value waits, while what it was recorded with has been computed."""
        last = self._past[-1]
        if last.array is not None or last.trace is not None:
            return False
        if last.step.__class__ is PassingStep:  # computed values do not tell how they came about
            return len(self._past) > SHORT_PAST
        before = {id(v) for v in list(self._past)[-2:-1]}
        order = postorder([last], before, leaf=lambda v: v.array is not None)
        return any(map(was_computed, order))

    def move(self, device: Any) -> None:
        """Bring the tensor to another device."""
        self._check()
        self._value, self._shared = Tensor(self._value).to(device)._value, True

    def cast(self, dtype: Any) -> None:
        """Give the tensor another dtype; code that was compiled with the old one is compiled again."""
        if current_trace.get() is not None:
            raise NotSupportedError(f"cell {self.name!r} is cast while code that uses it is traced",
                                    hint="cast before the first call")
        self._check()
        self._value, self._shared = owned(F.cast(self._value, dtype=self.stack.type.admit(dtype))), True

    def _check(self) -> None:
        if self._lost:
            raise LostCellError(f"the value of cell {self.name!r} is lost: {self._lost}",
                                hint="write it again, for example from the last checkpoint")

    # ---- for compiled graphs
    def lend(self) -> Value:
        """The value, to be read only."""
        self._check()
        if self._value.array is None:
            evaluate([self._value])
        return self._value

    def take(self) -> Any:
        """The array, to be overwritten."""
        v = self._value
        if self._lost or v.array is None:
            v = self.lend()
        if self._shared:
            counted = references(v)
            if not is_held_once(v, counted):
                return v.stack.engine.executor.duplicate(v.array)
            v = self._settle()  # whoever it was read out to is gone
        return v.array

    def _settle(self) -> Value:
        """The value, where it will be overwritten from now on."""
        v = self._value
        array = v.stack.engine.executor.aligned(v.array)
        if array is not v.array:
            v = self._value = Value(array, v.stack, v.spec)
        self._shared = False
        return v

    def put(self, value: Value) -> None:
        """Put in an array that a compiled graph has made; nobody else holds it."""
        self._value, self._shared, self._lost = value, False, ""

    def lose(self, why: str) -> None:
        """A call failed after it had begun to overwrite the array."""
        self._lost = why


def _made_again(kind: type[Cell], host: Any, device: str, name: str) -> Cell:
    return kind(Tensor(host_value(host, stack=stack_for(device))), name)

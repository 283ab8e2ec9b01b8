"""Sizes that only a call computes, as dimensions: each is the length of a row that is counted when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import NotSupportedError
from nnc_core.functions.creation import zeros
from nnc_core.functions.editing import repeat
from nnc_core.functions.movement import reshape
from nnc_core.io.onnx.reading.lanes import Lane, Sizes, sizes, to_host
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value


@dataclass
class CountedSizes:
    """The rows that are counted for one call, by the numbers that say how long they are."""

    rows: dict[Value, Tensor] = field(default_factory=dict)

    def of(self, value: Lane) -> Sizes:
        """Integers for Python, with a dimension for each element that only a call computes."""
        try:
            return to_host(value)
        except NotSupportedError:
            found = sizes(map(self._size, _counted(value)))
        return found if value.ndim else found.reshape(())

    def numbers(self, value: Lane) -> list[Any]:
        """The elements one by one, those that only a call computes as scalar tensors."""
        try:
            return to_host(value).reshape(-1).tolist()
        except NotSupportedError:
            return [reshape(n, ()) if isinstance(n, Tensor) else n for n in _counted(value)]

    def _size(self, part: Any) -> Any:
        """A number, or the length of a row of as many elements."""
        if not isinstance(part, Tensor):
            return part
        number = _number(part._value)
        if number not in self.rows:
            self.rows[number] = repeat(zeros((1,), dtype=bool, device=part.device), reshape(Tensor(number), (1,)))
        return self.rows[number].shape[0]

    def before(self, result: Lane) -> Lane:
        """A result that waits for what is counted, since its size alone does not say by what it is."""
        if not (self.rows and isinstance(result, Tensor) and result.is_symbol):
            return result
        return Tensor(F.after(result._value, [row._value for row in self.rows.values()]))


def _counted(value: Tensor) -> Sequence[Any]:
    """The elements of a row that only a call computes; what is known of them as integers and dimensions."""
    if not is_integer(value.dtype) or value.ndim > 1 or not isinstance(value.size, int):
        to_host(value)  # which says so
    return _parts(value)


def _parts(value: Tensor) -> Sequence[Any]:
    """The elements of a row, as numbers where it was joined of such."""
    step = value._value.step
    if step is None or step.op.name != "concat":
        return [value] if value.size == 1 else [value[i] for i in range(value.size)]
    return [part for x in step.inputs for part in _known_or_parts(Tensor(x))]


def _known_or_parts(value: Tensor) -> Sequence[Any]:
    try:
        return to_host(value).tolist()  # type: ignore[no-any-return]
    except NotSupportedError:
        return _parts(value)


def _number(v: Value) -> Value:
    """The number of which another has only the shape, so that sizes are known to be the same."""
    while v.step is not None and v.step.op.name == "reshape":
        (v,) = v.step.inputs
    return v

"""Values of a model's names while it runs: tensors, or something that Python knows.

Three lanes: tensors of a device; host values, which are NumPy arrays (texts have dtype object); and sizes, host values
too, of dtype object where a `Dim` is among them, and `CastSizes` where the model has them in another dtype than int64.
A sequence is a list of values, an absent optional None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.errors import NotSupportedError, SymbolValueError
from nnc_core.functions.casts import astype
from nnc_core.functions.creation import asarray, ones
from nnc_core.functions.joining import stack
from nnc_core.functions.movement import reshape
from nnc_core.functions.reduction import sum as total
from nnc_core.type import Dim
from nnc_core.values.tensor import Tensor

Host: TypeAlias = np.ndarray[Any, Any]
Lane: TypeAlias = Any
"""A Tensor, a Host, a list of these, or None."""
Sizes: TypeAlias = np.ndarray[Any, Any]
"""A Host of integers, with dimensions for those that only a call computes."""
Numbers: TypeAlias = "list[Any]"
"""Integers and dimensions one by one, in whose places scalar tensors are where only a call computes them."""
Known: TypeAlias = Any
"""A Host where that can be had, else a Tensor: what decides about control flow."""
Statistic: TypeAlias = Tensor
"""A tensor that training does not touch by gradients: an initialiser that is given for it is a buffer."""


def is_host(value: Lane) -> bool:
    return isinstance(value, np.ndarray)


def sizes(numbers: Iterable[Any]) -> Host:
    """Integers, dimensions among them or not, as a host value."""
    found = list(numbers)
    if any(isinstance(n, Dim) for n in found):
        array = np.empty(len(found), object)
        array[:] = found
        return array
    return np.asarray(found, np.int64)


class CastSizes(np.ndarray[Any, Any]):
    """Integers with dimensions among them that are of another dtype than int64, to which the model has cast them."""

    element: np.dtype[Any] = np.dtype(np.int64)

    def __array_finalize__(self, whole: Any) -> None:
        """Keep the dtype in what is a part of it, or computed from it."""
        self.element = getattr(whole, "element", CastSizes.element)


def has_dims(value: Tensor | Host) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object and any(isinstance(n, Dim) for n in value.flat)


def element_of(value: Tensor | Host) -> np.dtype[Any]:
    """The dtype of the elements; of texts that of objects."""
    if not has_dims(value):
        return value.dtype
    return value.element if isinstance(value, CastSizes) else CastSizes.element


def as_element(array: Host, dtype: np.dtype[Any]) -> Host:
    """Integers that Python computed, as objects, in the dtype that they have in the model; all else as it is."""
    if array.dtype != object or any(isinstance(n, (str, bytes)) for n in array.flat):
        return array
    if not has_dims(array):
        return array.astype(dtype) if array.size else array
    if dtype == CastSizes.element:
        return array.view(np.ndarray)
    made = array.view(CastSizes)
    made.element = dtype
    return made


def to_host(value: Lane) -> Host:
    """The value for Python.  Raises NotSupportedError for a tensor that only a call will know."""
    if isinstance(value, Tensor):
        try:
            return np.asarray(value)
        except SymbolValueError as error:
            raise NotSupportedError("a size or setting depends on values that only a call computes", hint=(
                "call the model eagerly, without jit, hybridize or graph(), or give graph() the values of the inputs "
                "that say sizes")) from error
    return value if is_host(value) else np.asarray(value)


def to_tensor(value: Lane, device: Any) -> Tensor:
    """The value as a tensor of the device."""
    if isinstance(value, Tensor):
        return value
    if value.dtype == object:
        return _of_dims(value, device)
    return asarray(value, device=device)


def _of_dims(array: Host, device: Any) -> Tensor:
    if any(isinstance(n, (str, bytes)) for n in array.flat):
        raise NotSupportedError("texts are values of the host: no device computes with them")
    if not has_dims(array):
        return asarray(array.astype(np.int64), device=device)
    made = [_of_size(n, device) for n in array.flat]
    return astype(reshape(made[0] if len(made) == 1 else stack(made), array.shape), element_of(array), copy=False)


def _of_size(size: Any, device: Any) -> Tensor:
    """An int64 scalar whose value is a size that nobody knows yet."""
    if not isinstance(size, Dim):
        return asarray(np.int64(size), device=device)
    return total(ones((size,), dtype=np.int64, device=device), dtype=np.int64)

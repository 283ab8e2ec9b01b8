"""Values for the inputs of a model, as callers give them: matched by name, checked against what the model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import DTypeError, OperandError, ShapeError
from nnc_core.io.onnx.reading.fixed import Fixed
from nnc_core.io.onnx.reading.graph import ValueInfo
from nnc_core.io.onnx.reading.lanes import to_host, to_tensor
from nnc_core.type import Dim, TensorSpec
from nnc_core.values.tensor import Tensor


def matched(declared: Sequence[ValueInfo], args: Sequence[Any], kwargs: Mapping[str, Any], model: str) -> list[Any]:
    """One value for each declared input, None for those left out."""
    names = [x.name for x in declared]
    if len(args) > len(names):
        raise OperandError(f"{model} has {len(names)} inputs, {len(args)} were given", hint=", ".join(names))
    unknown = [name for name in kwargs if name not in names]
    if unknown:
        raise OperandError(f"{model} has no input {unknown[0]!r}", hint=f"its inputs are {', '.join(names)}")
    given = dict(zip(names, args, strict=False))
    twice = [name for name in kwargs if name in given]
    if twice:
        raise OperandError(f"the input {twice[0]!r} of {model} was given twice")
    given.update(kwargs)
    missing = [x.name for x in declared if x.name not in given and x.kind != "optional"]
    if missing:
        raise OperandError(f"the input {missing[0]!r} of {model} is missing", hint=f"its inputs are {', '.join(names)}")
    return [given.get(name) for name in names]


def admitted(declared: ValueInfo, value: Any, known: bool, device: Any) -> Any:
    """The value as a tensor, or where Python must know it (`known`, and texts) by its value."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and declared.kind in ("sequence", "optional"):
        return [admitted(ValueInfo(declared.name, None, None, "tensor"), x, known, device) for x in value]
    array = _array(declared, value)
    check(declared, array.dtype, array.shape)
    if isinstance(array, Tensor) and array.is_symbol:
        return array  # whoever needs its value says so
    if known or array.dtype == object:
        return Fixed.of(to_host(array))
    return to_tensor(array, device)


def _array(declared: ValueInfo, value: Any) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        return _texts(value) if isinstance(value, np.ndarray) and value.dtype.kind in "USO" else value
    if isinstance(value, (str, list)) and declared.dtype == np.dtype(object):
        return _texts(np.asarray(value, object))
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value, declared.dtype)


def _texts(array: Any) -> Any:
    made = np.empty(array.size, object)
    made[:] = [x.decode() if isinstance(x, bytes) else x if x is None else str(x) for x in array.flat]
    return made.reshape(array.shape)


def check(declared: ValueInfo, dtype: Any, shape: Sequence[Any]) -> None:
    """Raise DTypeError or ShapeError for an input that is not what the model declares."""
    if declared.dtype is not None and dtype != declared.dtype:
        raise DTypeError(f"the input {declared.name!r} is {declared.dtype}, not {dtype}",
                         hint=f"nnc.astype(x, {str(declared.dtype)!r})")
    if not fits(declared, shape):
        raise ShapeError(f"the input {declared.name!r} is {text_of(declared.shape)}, not {text_of(shape)}")


def fits(declared: ValueInfo, shape: Sequence[Any]) -> bool:
    """Tell whether a shape agrees with all numbers that are declared."""
    return declared.shape is None or (len(shape) == len(declared.shape) and all(
        not isinstance(d, int) or isinstance(n, Dim) or n == d for n, d in zip(shape, declared.shape, strict=True)))


def text_of(shape: Sequence[Any] | None) -> str:
    """A shape as it is written, "?" for what nobody says."""
    return f"[{', '.join('?' if d is None else str(d) for d in shape or ())}]"


def dimensions_of(declared: ValueInfo) -> list[int | str]:
    """Numbers and names, made up where the model says none."""
    return [f"{declared.name}_{i}" if d is None else d for i, d in enumerate(declared.shape or ())]


def spec_of(declared: ValueInfo, sizes: Mapping[str, int]) -> TensorSpec:
    """The spec of a tensor, with the numbers that `sizes` gives to dimensions.  Raises OperandError where the model
    does not say its shape."""
    if declared.kind != "tensor" or declared.dtype is None or declared.shape is None:
        raise OperandError(f"the model does not say the shape of its input {declared.name!r}, or it is no tensor",
                           hint="call the module instead, with hybridize() for compiled code")
    shape = (d if isinstance(d, int) else sizes[d] if d in sizes else Dim(d) for d in dimensions_of(declared))
    return TensorSpec(tuple(shape), declared.dtype)

"""Functions of two or more operands that are broadcast, and the first versions', which were told how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from nnc_core.base.dtype import is_float, is_integer
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import on_host, operator
from nnc_core.values.tensor import Tensor

Binary = Callable[[Tensor, Tensor], Tensor]


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a / b, of integers rounded towards zero."""
    if not is_integer(a.dtype):
        return nnc.divide(a, b)
    return nnc.floor_divide(nnc.subtract(a, nnc.fmod(a, b)), b)


def power(a: Tensor, b: Tensor) -> Tensor:
    """a to the power of b, of the dtype of a."""
    if a.dtype == b.dtype:
        return nnc.pow(a, b)
    if is_float(a.dtype):
        return nnc.pow(a, nnc.astype(b, a.dtype))
    wide = b.dtype if is_integer(b.dtype) else np.dtype(np.float64)
    return nnc.astype(nnc.pow(nnc.astype(a, wide), nnc.astype(b, wide)), a.dtype)


BINARY: Mapping[str, Binary] = {
    "Add": nnc.add, "Sub": nnc.subtract, "Mul": nnc.multiply, "Div": divide, "Pow": power, "And": nnc.logical_and,
    "Or": nnc.logical_or, "Xor": nnc.logical_xor, "Equal": nnc.equal, "Less": nnc.less, "Greater": nnc.greater,
}  # fmt: skip
LATER: Mapping[str, Binary] = {
    "LessOrEqual": nnc.less_equal, "GreaterOrEqual": nnc.greater_equal, "BitwiseAnd": nnc.bitwise_and,
    "BitwiseOr": nnc.bitwise_or, "BitwiseXor": nnc.bitwise_xor,
}  # fmt: skip


def _register(name: str, function: Binary, since: int) -> None:
    @operator(name, since=since)
    def broadcasting(a: Tensor, b: Tensor) -> Tensor:
        return function(a, b)


def _register_first(name: str, function: Binary) -> None:
    """Before version 7: `broadcast` asks for it, and `axis` says where the second operand's dimensions lie."""

    @operator(name)
    def first(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0,
              consumed_inputs: Any = ()) -> Tensor:
        if broadcast and axis is not None and b.ndim:
            missing = a.ndim - (axis % a.ndim) - b.ndim
            b = nnc.reshape(b, (*b.shape, *[1] * missing))
        return function(a, b)


for _name, _function in BINARY.items():
    _register_first(_name, _function)
    _register(_name, _function, 7)
for _name, _function in LATER.items():
    _register(_name, _function, 1)


# ---- more than two
FOLDED: Mapping[str, Binary] = {"Max": nnc.maximum, "Min": nnc.minimum, "Sum": nnc.add}


def _register_folded(name: str, function: Binary) -> None:
    @operator(name)
    def folded(*xs: Tensor, consumed_inputs: Any = ()) -> Tensor:
        return reduce(function, xs)


for _name, _function in FOLDED.items():
    _register_folded(_name, _function)


@operator("Mean")
def mean(*xs: Tensor, consumed_inputs: Any = ()) -> Tensor:
    return nnc.divide(reduce(nnc.add, xs), len(xs))


@operator("Mod")
def modulo(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    return nnc.fmod(a, b) if fmod else nnc.remainder(a, b)


@operator("BitShift")
def bit_shift(a: Tensor, b: Tensor, *, direction: str) -> Tensor:
    return nnc.left_shift(a, b) if direction == "LEFT" else nnc.right_shift(a, b)


# ---- on the host: sizes and what is computed of them
def _divide(a: Host, b: Host) -> Any:
    if a.dtype == object or b.dtype == object:
        return a // b  # sizes, which are not negative
    return (a - np.fmod(a, b)) // b if a.dtype.kind in "iu" else a / b


def _register_on_host(name: str, function: Callable[..., Any]) -> None:
    @on_host(name)
    def computed(*arrays: Host, **attributes: Any) -> Any:
        return function(*arrays)


HOST: Mapping[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divide, "Neg": np.negative,
    "Equal": lambda a, b: np.asarray(a == b, bool), "Less": lambda a, b: np.asarray(a < b, bool),
    "Greater": lambda a, b: np.asarray(a > b, bool), "LessOrEqual": lambda a, b: np.asarray(a <= b, bool),
    "GreaterOrEqual": lambda a, b: np.asarray(a >= b, bool), "And": np.logical_and, "Or": np.logical_or,
    "Not": np.logical_not, "Abs": np.abs, "Ceil": np.ceil, "Floor": np.floor, "Sqrt": np.sqrt, "Where": np.where,
    "Relu": lambda x: np.maximum(x, 0), "Pow": lambda a, b: np.power(a, b).astype(a.dtype),
    "Max": lambda *xs: reduce(np.maximum, xs), "Min": lambda *xs: reduce(np.minimum, xs),
}  # fmt: skip
for _name, _computed in HOST.items():
    _register_on_host(_name, _computed)


@on_host("Mod")
def _modulo(a: Host, b: Host, *, fmod: int = 0) -> Any:
    if a.dtype == object or b.dtype == object:
        return a - a // b * b
    return np.fmod(a, b) if fmod else np.mod(a, b)

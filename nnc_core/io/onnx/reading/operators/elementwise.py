"""Functions of single elements that are public functions of the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.base.dtype import is_float
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor

UNARY: Mapping[str, Callable[..., Tensor]] = {
    "Abs": nnc.abs, "Acos": nnc.acos, "Acosh": nnc.acosh, "Asin": nnc.asin, "Asinh": nnc.asinh, "Atan": nnc.atan,
    "Atanh": nnc.atanh, "BitwiseNot": nnc.bitwise_invert, "Ceil": nnc.ceil, "Cos": nnc.cos, "Cosh": nnc.cosh,
    "Erf": nnc.erf, "Exp": nnc.exp, "Floor": nnc.floor, "IsNaN": nnc.isnan, "Log": nnc.log, "Neg": nnc.negative,
    "Not": nnc.logical_not, "Reciprocal": nnc.reciprocal, "Round": nnc.round, "Sigmoid": nnc.sigmoid,
    "Sign": nnc.sign, "Sin": nnc.sin, "Sinh": nnc.sinh, "Softplus": nnc.softplus, "Softsign": nnc.softsign,
    "Sqrt": nnc.sqrt, "Tan": nnc.tan, "Tanh": nnc.tanh, "Relu": nnc.relu, "HardSwish": nnc.hardswish,
    "Mish": nnc.mish,
}  # fmt: skip


def _register(name: str, function: Callable[..., Tensor]) -> None:
    """Early versions have an attribute that let them overwrite their input."""

    @operator(name)
    def first(x: Tensor, *, consumed_inputs: Any = ()) -> Tensor:
        return function(x)

    @operator(name, since=6)
    def later(x: Tensor) -> Tensor:
        return function(x)


for _name, _function in UNARY.items():
    _register(_name, _function)


@operator("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if not is_float(x.dtype) or not (detect_negative or detect_positive):
        return nnc.zeros_like(x, dtype=bool)
    if detect_negative and detect_positive:
        return nnc.isinf(x)
    return nnc.isneginf(x) if detect_negative else nnc.isposinf(x)


@operator("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return nnc.where(condition, x, y)


@operator("Clip")
def clip_first(x: Tensor, *, min: float | None = None, max: float | None = None,
               consumed_inputs: Any = ()) -> Tensor:
    return nnc.clip(x, min, max)


@operator("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    return x if low is None and high is None else nnc.clip(x, low, high)

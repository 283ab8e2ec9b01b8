"""Functions of several steps that compute float16 and bfloat16 in float32 and round once; operands of one dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from nnc_core.base.dtype import accumulator, is_inexact
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.reduction import all_inexact
from nnc_core.type import promote
from nnc_core.values.arguments import as_value, as_value_beside, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

P = ParamSpec("P")


def in_wide(f: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """f with its first array made wide, which makes wide what it meets; the result has the array's dtype."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        v: Any = as_value(args[0], stack_of(args))
        wide = accumulator(v.dtype)
        if wide == v.dtype:
            return f(*args, **kwargs)
        first: Any = Tensor(F.cast(v, dtype=wide))
        y = f(first, *args[1:], **kwargs)  # type: ignore[arg-type]
        return Tensor(F.cast(y._value, dtype=v.dtype))

    return call


def _are_alike(values: Sequence[Value]) -> bool:
    """Tell whether these are floats of one dtype already."""
    dtype = values[0].dtype
    return is_inexact(dtype) and all([v.dtype is dtype for v in values])


def one_dtype(values: Sequence[Value]) -> list[Value]:
    """As floats of the dtype that all of them are promoted to."""
    if _are_alike(values):
        return [*values]
    floats = all_inexact(values)
    common = floats[0].dtype
    for v in floats[1:]:
        common = promote(common, v.dtype)
    return [v if v.dtype == common else F.cast(v, dtype=common) for v in floats]


def as_like(x: Any, like: Value) -> Value:
    """A Python number in the dtype of a value, an array in its own; on the value's device."""
    if isinstance(x, (bool, int, float)):
        return constant_beside(like, x, like.dtype)
    return as_value_beside(x, like)

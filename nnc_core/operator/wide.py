"""Composites of which float16 and bfloat16 are computed in float32 from end to end, and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import accumulator, is_float
from nnc_core.operator.declare import Method, V

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def widely(body: Method) -> Method:
    """The same for wide operands; the result has the dtype of the first one."""

    @wraps(body)
    def formula(F: Namespace[V], *inputs: V, **attributes: Any) -> Any:
        wide = [widened_operand(F, x) for x in inputs]
        return narrowed(F, body(F, *wide, **attributes), inputs[0].dtype)

    return formula  # type: ignore[return-value]


def widely_ruled(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A derivative along one operand, (F, cotangent or tangent, y, *inputs, *attributes), in wide numbers."""

    def formula(F: Namespace[V], g: V, y: V, *rest: Any) -> Any:
        dtype = g.dtype
        if accumulator(dtype) == dtype:
            return rule(F, g, y, *rest)
        wide = [widened_operand(F, x) if hasattr(x, "spec") else x for x in (g, y, *rest)]
        return narrowed(F, rule(F, *wide), dtype)

    return formula


def widened_operand(F: Namespace[V], x: V) -> V:
    """Halves as float32; anything else itself."""
    dtype = x.dtype
    return F.cast(x, dtype=accumulator(dtype)) if is_float(dtype) and accumulator(dtype) != dtype else x


def narrowed(F: Namespace[V], y: V, dtype: Any) -> V:
    return y if y.dtype == dtype else F.cast(y, dtype=dtype)

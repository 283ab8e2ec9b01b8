"""Casts of casts, where the first one loses nothing, or nothing that the second one would keep."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType, is_float, is_integer
from nnc_core.operator import Nodes
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node


def holds_all(wide: DType, narrow: DType) -> bool:
    """True if each value of one dtype is a value of the other; complex numbers hold only what is casted from
    booleans."""
    if narrow == dt.boolean or wide == narrow:
        return True
    if is_integer(narrow) and is_integer(wide):
        a, b = np.iinfo(wide), np.iinfo(narrow)
        return bool(a.min <= b.min and b.max <= a.max)
    if is_integer(narrow) and is_float(wide):
        bits = 8 * narrow.itemsize - (narrow.kind == "i")
        return bits <= _float(wide).nmant + 1 and bits < int(_float(wide).maxexp)
    if is_float(narrow) and is_float(wide):
        a, b = _float(wide), _float(narrow)
        return bool(a.nmant >= b.nmant and a.maxexp >= b.maxexp and a.minexp <= b.minexp)
    return False


def _float(dtype: DType) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def skips(first: DType, second: DType, third: DType) -> bool:
    """True if first -> second -> third is first -> third, to the bit."""
    if holds_all(second, first):
        if is_float(second) and is_integer(first) and third != first:
            return third in (dt.boolean, dt.float32, dt.float64)  # integers wrap where floats saturate
        return True
    return is_integer(first) and is_integer(second) and is_integer(third) and third.itemsize <= second.itemsize


@rewrite("cast-again", "cast", tag="simplify")
def cast_again(F: Nodes, node: Node) -> Node | None:
    """Casts compose where the first is exact (and to narrower integers, which wrap alike)."""
    (x,) = node.inputs
    if x.op is not node.op or not skips(x.inputs[0].dtype, x.dtype, node.dtype):
        return None
    return F.cast(x.inputs[0], dtype=node.dtype)


ROUNDING = ("floor", "ceil", "trunc", "round")


@rewrite("round-whole-numbers", *ROUNDING, tag="simplify")
def round_whole_numbers(F: Nodes, node: Node) -> Node | None:
    """Rounding an integer, what was rounded already, a sign or what was an integer."""
    (x,) = node.inputs
    whole = x.op.name in (*ROUNDING, "sign") or (x.op.name == "cast" and _counts(x.inputs[0].dtype))
    return x if _counts(x.dtype) or whole else None


def _counts(dtype: DType) -> bool:
    return is_integer(dtype) or dtype == dt.boolean


REWRITES = (cast_again, round_whole_numbers)

"""How near a result must be to the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_float
from nnc_core.type import Op
from nnc_plugins.conformance.case import Array, float_limits

ROUNDINGS = {"power": 16, "remainder": 4, "normal": 64, "arange": 4}
"""Units in the last place for operators that differ from the others, which may have FUNCTION_ROUNDINGS."""
FUNCTION_ROUNDINGS = 4
SUM_ROUNDINGS = 256
"""For sums in any order, relative to the largest result."""
EITHER_ZERO = frozenset(("maximum", "minimum", "max", "min", "relu", "clip", "max_pool2d", "sign"))
"""Operators whose zeros may have either sign: processors disagree on the larger of 0.0 and -0.0."""


def assert_agree(op: Op, result: Array, expected: Array, what: str = "") -> None:
    """Dtype and shape are equal; so are the bits where the operator is exact or the result no float,
    NaN being NaN whatever its payload.  Elsewhere elements may differ by a few roundings."""
    what = f"{op.name} {what}"
    assert result.dtype == expected.dtype, f"{what}: {result.dtype} instead of {expected.dtype}"
    assert result.shape == expected.shape, f"{what}: shape {result.shape} instead of {expected.shape}"
    if op.exact or not is_float(expected.dtype):
        wrong = ~(same_bits(result, expected) | ((expected == 0) & (result == 0) & (op.name in EITHER_ZERO)))
    else:
        wrong = ~_near(op, result, expected)
    assert not wrong.any(), f"{what}: {_show(result, expected, wrong)}"


def same_bits(a: Array, b: Array) -> Array:
    """Elementwise; -0.0 is not 0.0, but every NaN is every other."""
    if not is_float(a.dtype):
        return np.asarray(a == b)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    same = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    return np.asarray(same.reshape(a.shape) | ((a != a) & (b != b)))


def _near(op: Op, result: Array, expected: Array) -> Array:
    got, wanted = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wanted)
    absolute, relative = tolerances(op, expected.dtype)
    scale = float(np.abs(wanted[finite]).max(initial=0))
    limits = float_limits(expected.dtype)
    sizes = np.abs(np.where(finite, wanted, 0))
    slack = absolute * scale + relative * sizes + float(limits.smallest_normal)
    with np.errstate(all="ignore"):
        inside = np.abs(got - wanted) <= slack
        near_the_end = np.abs(wanted) >= float(limits.max) * (1 - relative)
        overflown = np.isinf(got) & near_the_end & (np.sign(got) == np.sign(wanted))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return np.asarray(np.where(finite, inside | overflown, same))


def tolerances(op: Op, dtype: DType) -> tuple[float, float]:
    """(relative to the largest element, relative to each element)"""
    eps = float(float_limits(dtype).eps)
    if op.elementwise:
        return 0.0, ROUNDINGS.get(op.name, FUNCTION_ROUNDINGS) * eps
    whole = SUM_ROUNDINGS if dtype.itemsize > 2 else 2  # half floats are summed in float32
    return whole * eps, ROUNDINGS.get(op.name, FUNCTION_ROUNDINGS) * eps


def _show(result: Array, expected: Array, wrong: Array) -> str:
    places = [tuple(map(int, place)) for place in np.argwhere(wrong)[:4]]
    lines: list[Any] = [f"{place}: {result[place]!r} instead of {expected[place]!r}" for place in places]
    return f"{int(wrong.sum())} of {wrong.size} elements differ; " + ", ".join(lines)

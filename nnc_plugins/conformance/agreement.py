"""How near a result must be to the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_complex, is_float, real_of
from nnc_core.type import Op
from nnc_plugins.conformance.case import Array, float_limits

ROUNDINGS = {
    "polygamma": 32, "zeta": 64, "betaln": 16, "prod": 256, "cumulative_prod": 256, "vector_norm": 64, "power": 16,
    "remainder": 4, "normal": 64, "arange": 4,
}  # fmt: skip
"""Units in the last place for operators that differ from the others, which may have FUNCTION_ROUNDINGS."""
FUNCTION_ROUNDINGS = 4
SUM_ROUNDINGS = 256
"""For sums in any order, relative to the largest result."""
EITHER_ZERO = frozenset(("maximum", "minimum", "max", "min", "relu", "clip", "max_pool", "sign", "cummax", "cummin",
                         "fmax", "fmin"))
"""Operators whose zeros may have either sign: processors disagree on the larger of 0.0 and -0.0."""
CROSSING = frozenset(("logaddexp", "logaddexp2", "lgamma", "digamma", "polygamma", "betaln"))
"""Operators that pass through zero as the difference of numbers near 1: there the error is relative to 1."""


def assert_agree(op: Op, result: Any, expected: Any, what: str = "") -> None:
    """Dtype and shape are equal; so are the bits where the operator is exact or the result no float,
    NaN being NaN whatever its payload.  Elsewhere elements may differ by a few roundings.  Of tuples each result."""
    if isinstance(expected, tuple):
        for i, (part, wanted) in enumerate(zip(result, expected, strict=True)):
            assert_agree(op, part, wanted, f"{what}, result {i}")
        return
    what = f"{op.name} {what}"
    assert result.dtype == expected.dtype, f"{what}: {result.dtype} instead of {expected.dtype}"
    assert result.shape == expected.shape, f"{what}: shape {result.shape} instead of {expected.shape}"
    if is_complex(expected.dtype):
        wrong = ~_near_complex(op, result, expected)
    elif op.exact or not is_float(expected.dtype):
        wrong = ~(same_bits(result, expected) | ((expected == 0) & (result == 0) & (op.name in EITHER_ZERO)))
    else:
        wrong = ~_near(op, result, expected)
    assert not wrong.any(), f"{what}: {_show(result, expected, wrong)}"


def same_bits(a: Array, b: Array) -> Array:
    """Elementwise; -0.0 is not 0.0, but every NaN is every other."""
    if is_complex(a.dtype):
        return same_bits(a.real, b.real) & same_bits(a.imag, b.imag)
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
    slack = absolute * scale + relative * sizes + float(limits.smallest_normal) + relative * (op.name in CROSSING)
    with np.errstate(all="ignore"):
        inside = np.abs(got - wanted) <= slack
        near_the_end = np.abs(wanted) >= float(limits.max) * (1 - relative)
        overflown = np.isinf(got) & near_the_end & (np.sign(got) == np.sign(wanted))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return np.asarray(np.where(finite, inside | overflown, same))


def _near_complex(op: Op, result: Array, expected: Array) -> Array:
    """A part may be a difference of larger products: it is as near as the whole number's size allows, whatever holds
    for real numbers."""
    relative = sum(tolerances(op, real_of(expected.dtype)))
    with np.errstate(all="ignore"):
        near = np.abs(result - expected) <= relative * np.abs(expected)
    same = [(a == b) | ((a != a) & (b != b)) for a, b in ((result.real, expected.real), (result.imag, expected.imag))]
    return np.asarray(np.where(np.isfinite(expected), near, same[0] & same[1]))


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

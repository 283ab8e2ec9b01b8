"""The distance that a result may have from the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_complex, is_float, is_storage, real_of
from nnc_core.type import Op
from nnc_plugins.conformance.case import Array, float_limits

ROUNDINGS = {
    "polygamma": 32, "zeta": 64, "betaln": 16, "prod": 256, "cumulative_prod": 256, "vector_norm": 64, "power": 16,
    "remainder": 4, "normal": 64, "silu": 6, "det": 256,
}  # fmt: skip
"""Units in the last place for operators that differ from the others, which may have FUNCTION_ROUNDINGS."""
FUNCTION_ROUNDINGS = 4
SUM_ROUNDINGS = 256
"""For sums in any order, relative to the largest result."""
CONDITIONED = {"svd": 24}
"""The same for each row of vectors, where that is more: they turn by a matrix's roundings over the distance of its
values, which are near 1, 2 ... in the kit."""
BITS = "bits"
"""In place of a bound: every bit is the same."""
EITHER_ZERO = frozenset(("maximum", "minimum", "max", "min", "relu", "clip", "max_pool", "sign", "cummax", "cummin",
                         "fmax", "fmin"))
"""Operators whose zeros may have either sign: processors disagree on the larger of 0.0 and -0.0."""
OF_PARTS = frozenset(("multiply", "sqrt", "abs"))
"""Operators that are exact for real numbers, and round more than once on the way from the parts of complex ones."""
CROSSING = frozenset(("logaddexp", "logaddexp2", "lgamma", "digamma", "polygamma", "betaln"))
"""Operators that pass through zero as the difference of numbers near 1: there the error is relative to 1."""


SIGNED = {"eigh": (1, None), "svd": (0, 2), "qr": (0, 1)}
"""Operators whose vectors may have either sign, which nothing but LAPACK's own steps settles: the results that hold
them in columns, and in rows of the same signs."""


def assert_agree(op: Op, result: Any, expected: Any, what: str = "", operand: DType | None = None) -> float:
    """Dtype and shape are equal; so are the bits where the operator is exact or the result no float,
    NaN being NaN whatever its payload.  Elsewhere elements may differ by a few roundings.  Of tuples each result.
    operand: the dtype of the first operand, where it is not known to be that of the result.
    Gives the largest part of the allowed error that there was."""
    if isinstance(expected, tuple):
        parts = enumerate(zip(result, with_signs_of(op, result, expected), strict=True))
        return max([assert_agree(op, part, wanted, f"{what}, result {i}", operand) for i, (part, wanted) in parts],
                   default=0.0)
    what = f"{op.name} {what}"
    assert result.dtype == expected.dtype, f"{what}: {result.dtype} instead of {expected.dtype}"
    assert result.shape == expected.shape, f"{what}: shape {result.shape} instead of {expected.shape}"
    part = np.zeros(expected.shape)
    exact = op.exact and not (is_complex(operand or expected.dtype) and op.name in OF_PARTS)
    if is_complex(expected.dtype) and not exact:
        wrong, part = _near_complex(op, result, expected)
    elif exact or not is_float(expected.dtype):
        wrong = ~same_bits(result, expected)
        if op.name in EITHER_ZERO:
            wrong &= ~((expected == 0) & (result == 0))
    else:
        wrong, part = _near(op, result, expected)
    assert not wrong.any(), f"{what}: {_show(result, expected, wrong)}"
    return float(part.max(initial=0))


def with_signs_of(op: Op, result: Any, expected: tuple[Any, ...]) -> tuple[Any, ...]:
    """Expected results, with the signs that vectors of the result have where either is right."""
    columns, rows = SIGNED.get(op.name, (None, None))
    if columns is None or any(x.shape != y.shape for x, y in zip(result, expected, strict=True)):
        return expected
    turned = list(expected)
    signs = _signs(result[columns], expected[columns], -2)
    turned[columns] = expected[columns] * signs[..., None, :]
    if rows is not None:
        own = _signs(result[rows], expected[rows], -1)
        k = min(own.shape[-1], signs.shape[-1])
        own[..., :k] = signs[..., :k]
        turned[rows] = expected[rows] * own[..., :, None]
    return tuple(turned)


def _signs(x: Array, y: Array, axis: int) -> Array:
    """-1 for vectors that point away from each other, else 1; of the dtype of real parts."""
    with np.errstate(all="ignore"):
        return np.where((x.conj() * y).sum(axis).real < 0, -1, 1).astype(y.real.dtype)


def same_bits(a: Array, b: Array) -> Array:
    """Elementwise; -0.0 is not 0.0, but every NaN is every other."""
    if is_complex(a.dtype):
        return same_bits(a.real, b.real) & same_bits(a.imag, b.imag)
    if not is_float(a.dtype) and not is_storage(a.dtype):
        return np.asarray(a == b)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    same = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    with np.errstate(invalid="ignore"):  # of signalling NaN
        return np.asarray(same.reshape(a.shape) | ((a != a) & (b != b)))


def assert_same_bits(a: Any, b: Any, what: str = "") -> None:
    """Dtype, shape and bits are equal; of tuples each result."""
    if isinstance(a, tuple):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same_bits(x, y, f"{what}, result {i}")
        return
    assert (a.dtype, a.shape) == (b.dtype, b.shape), what
    wrong = ~same_bits(a, b)
    assert not wrong.any(), f"{what}: {_show(a, b, wrong)}"


def assert_ulps(found: Any, expected: Any, dtype: Any, *, each: float, beside: float = 0.0, of: float = 1.0,
                what: str = "") -> None:
    """Each element differs by at most `each` units in its last place, and `beside` units of a number of size `of`, in
    a dtype."""
    a, b = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert a.shape == b.shape, f"{what}: shape {a.shape} instead of {b.shape}"
    allowed = float(float_limits(np.dtype(dtype)).eps) * (each * np.abs(b) + beside * of)
    with np.errstate(all="ignore"):
        wrong = ~((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)))
    assert not wrong.any(), f"{what}: {_show(a, b, wrong)}"


def _near(op: Op, result: Array, expected: Array) -> tuple[Array, Array]:
    """The elements that are too far away, and the part of the allowed error that was used."""
    got, wanted = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wanted)
    absolute, relative = tolerances(op, expected.dtype, _rows(expected))
    scale = float(np.abs(wanted[finite]).max(initial=0))
    limits = float_limits(expected.dtype)
    sizes = np.abs(np.where(finite, wanted, 0))
    slack = absolute * scale + relative * sizes + float(limits.smallest_normal) + relative * (op.name in CROSSING)
    with np.errstate(all="ignore"):
        error = np.abs(got - wanted)
        inside = error <= slack
        near_the_end = np.abs(wanted) >= float(limits.max) * (1 - relative)
        overflown = np.isinf(got) & near_the_end & (np.sign(got) == np.sign(wanted))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return ~np.where(finite, inside | overflown, same), np.where(finite & inside, error / slack, 0)


def _near_complex(op: Op, result: Array, expected: Array) -> tuple[Array, Array]:
    """A part may be a difference of larger products: it is as near as the whole number's size allows, whatever holds
    for real numbers."""
    absolute, relative = tolerances(op, real_of(expected.dtype), _rows(expected))
    finite = np.isfinite(expected)
    with np.errstate(all="ignore"):
        sizes = np.abs(np.where(finite, expected, 0))
        error, slack = np.abs(result - expected), absolute * sizes.max(initial=0) + relative * sizes
        near = error <= slack
        part = np.where(finite & near & (slack > 0), error / slack, 0)
    same = [(a == b) | ((a != a) & (b != b)) for a, b in ((result.real, expected.real), (result.imag, expected.imag))]
    return ~np.where(finite, near, same[0] & same[1]), part


def _rows(matrix: Array) -> int:
    return matrix.shape[-2] if matrix.ndim > 1 else 1


def tolerances(op: Op, dtype: DType, rows: int = 1) -> tuple[float, float]:
    """(relative to the largest element, relative to each element) of a result with so many rows"""
    eps = float(float_limits(dtype).eps)
    if op.elementwise:
        return 0.0, ROUNDINGS.get(op.name, FUNCTION_ROUNDINGS) * eps
    whole = max(SUM_ROUNDINGS, CONDITIONED.get(op.name, 0) * rows)
    if dtype.itemsize <= 2:
        whole = 2  # half floats are summed in float32
    return whole * eps, ROUNDINGS.get(op.name, FUNCTION_ROUNDINGS) * eps


def rounding(op: Op) -> str:
    """The bound in words: units in the last place of each element, and of the largest one."""
    own = ROUNDINGS.get(op.name, FUNCTION_ROUNDINGS)
    whole = f"{SUM_ROUNDINGS}" + (f" or {CONDITIONED[op.name]} a row" if op.name in CONDITIONED else "")
    return BITS if op.exact else f"{own}" if op.elementwise else f"{own} + {whole} of max"


def _show(result: Array, expected: Array, wrong: Array) -> str:
    places = [tuple(map(int, place)) for place in np.argwhere(wrong)[:4]]
    lines: list[Any] = [f"{place}: {result[place]!r} instead of {expected[place]!r}" for place in places]
    return f"{int(wrong.sum())} of {wrong.size} elements differ; " + ", ".join(lines)

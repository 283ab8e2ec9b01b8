"""One way to call an operator, for any dtype it takes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import (
    NUMBERS,
    STORAGE,
    DType,
    bits_of,
    boolean,
    is_complex,
    is_float,
    is_integer,
    is_storage,
    real_of,
)
from nnc_core.type import Attributes, Op

Array: TypeAlias = np.ndarray[Any, Any]
Maker: TypeAlias = Callable[[np.random.Generator, DType], tuple[Array, ...]]
Named: TypeAlias = Mapping[str, Hashable]

ALL = (boolean, *NUMBERS)
MOVED = ALL + STORAGE
"""What operators take that compute nothing; complex numbers have a table of their own."""
MANY = 2**16
"""Elements that many work groups share."""
LARGE = (257, 259)
"""A shape of more, which leaves a rest whatever the size of groups and vectors."""
FEW = (dt.float32, dt.float16, dt.int8)
"""Dtypes of three sizes, for cases that take long."""


@dataclass(frozen=True, slots=True)
class Case:
    """`make` draws the inputs for one of `dtypes`: of the main inputs or, if they are fixed, of the result.

    `attributes` are by name, or a function of the dtype that gives them.  `smooth`: the operator is
    differentiable near these inputs, so that finite differences can be compared with derivatives.
    """

    label: str
    make: Maker
    dtypes: tuple[DType, ...]
    attributes: Named | Callable[[DType], Named] = field(default_factory=dict)
    smooth: bool = False

    def inputs(self, rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return self.make(rng, dtype)

    def attribute_values(self, op: Op, dtype: DType) -> Attributes:
        """In the order of the operator's declaration."""
        named = self.attributes(dtype) if callable(self.attributes) else self.attributes
        assert set(named) == set(op.attributes), f"{op.name}: {self.label} has attributes {sorted(named)}"
        return tuple(named[name] for name in op.attributes)


def draw(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], low: float = -3,
         high: float = 3) -> Array:
    """Between low and high, both included; unsigned integers from 0 on, booleans of both kinds, what is only stored
    with any bits."""
    if is_storage(dtype):
        return drawn_bits(rng, shape, bits_of(dtype)).view(dtype)
    if is_float(dtype):
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    if is_complex(dtype):
        real, imag = (draw(rng, real_of(dtype), shape, low, high) for _ in range(2))
        return np.asarray(real + np.asarray(imag) * 1j).astype(dtype)
    if is_integer(dtype):
        least = max(int(low), int(np.iinfo(dtype).min))
        return rng.integers(least, max(int(high), least), shape, dtype=np.int64, endpoint=True).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def drawn_bits(rng: np.random.Generator, shape: tuple[int, ...], bits: int) -> Array:
    """Unsigned integers below 2**bits."""
    words = np.dtype(f"u{max(bits // 8, 1)}")
    return np.asarray(rng.integers(0, 2**bits - 1, shape, words, endpoint=True))


def arrays(*shapes: tuple[int, ...], low: float = -3, high: float = 3) -> Maker:
    """Inputs of these shapes."""
    return lambda rng, dtype: tuple(draw(rng, dtype, shape, low, high) for shape in shapes)


def fixed(*inputs: Any) -> Maker:
    """These numbers, whatever the dtype."""
    return lambda rng, dtype: tuple(np.asarray(x).astype(dtype) for x in inputs)


SPECIAL = (np.nan, 1.0, np.inf, -0.0, -2.0, 0.0, -np.inf)


def specials(*shapes: tuple[int, ...]) -> Maker:
    """NaN, infinities, zeros of both signs and numbers, over and over; for floats and complex numbers."""
    return lambda rng, dtype: tuple([np.resize(np.array(SPECIAL), shape).astype(dtype) for shape in shapes])


def few(dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    """Those of them that long cases are for."""
    return tuple([d for d in dtypes if d in FEW])


def extremes(dtype: DType) -> Array:
    """Signed zeros, units, infinities, NaN and the ends of the range; whatever there is of what is only stored."""
    if is_storage(dtype):
        return np.arange(2 ** bits_of(dtype), dtype=np.uint8).view(dtype)
    if is_float(dtype):
        limits = float_limits(dtype)
        ends = [limits.max, -limits.max, limits.smallest_normal, -limits.smallest_normal]
        return np.array([0, -0.0, 1, -1, 0.5, -2.5, np.inf, -np.inf, np.nan, *map(float, ends)]).astype(dtype)
    if is_integer(dtype):
        ends = [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)]
        near = {n for n in (*ends, ends[0] + 1, ends[1] - 1, -2, -1, 0, 1, 2) if ends[0] <= n <= ends[1]}
        return np.array(sorted(near), dtype)
    return np.array([False, True])


def wrapping(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """The largest integers, whose sums and products wrap around."""
    return (np.full((3, 4), np.iinfo(dtype).max, dtype),)


def subnormals(dtype: DType) -> Array:
    """Floats smaller than normal ones, and their normal neighbours."""
    limits = float_limits(dtype)
    least, normal = float(limits.smallest_subnormal), float(limits.smallest_normal)
    return np.array([least, -least, 3 * least, normal - least, normal / 2, normal, -2 * normal,
                     1]).astype(dtype)


def subnormal_pairs(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Each of them beside each."""
    return subnormals(dtype)[:, None], subnormals(dtype)[None, :]


def float_limits(dtype: DType) -> Any:
    """numpy.finfo, for bfloat16 as well."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def extreme_pairs(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Every extreme number with every other."""
    values = extremes(dtype)
    return values[:, None], values[None, :]


def extreme_values(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return (extremes(dtype),)

"""Integers as bits and as whole numbers: logic bit by bit, shifts, common divisors and multiples."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import (
    UNSIGNED,
    DType,
    accumulator,
    boolean,
    complex64,
    complex128,
    float32,
    is_storage,
    uint8,
    uint32,
    uint64,
)
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.pairs import Pair
from nnc_core.codegen.scalar import Scalar
from nnc_core.codegen.storage import StoredScalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.loops import elementwise_nest
from nnc_core.shape import elementwise as rule
from nnc_core.shape import representation


def _least_multiple(a: Scalar, b: Scalar) -> Scalar:
    """|a / gcd * b|, and 0 where a or b is 0."""
    divisor = a.apply("gcd", b)
    sizes = (a, b) if a.dtype in UNSIGNED else (abs(a), abs(b))
    return sizes[0].apply("floor_divide", divisor) * sizes[1]


def _word(dtype: DType) -> DType:
    """The unsigned integer of an element's size; complex128, whose bits are read as nothing else, itself."""
    return dtype if dtype == complex128 else np.dtype(f"u{dtype.itemsize}")


def _numpy_bitcast(x: Any, dtype: DType) -> Any:
    x = np.asarray(x)
    bits = np.ascontiguousarray(x).reshape(x.shape).view(_word(x.dtype))
    return np.not_equal(bits, 0) if dtype == boolean else bits.view(dtype)


def _bitcast_view(x: Layout, dtype: DType) -> Layout | None:
    """Bytes are no booleans: those are 0 and 1."""
    return None if dtype == boolean else x._replace(dtype=dtype)


def _bitcast_nest(command: Command) -> LoopNest:
    """Words are copied, which keeps each bit of what a processor would make another NaN of."""
    (x,), out, (dtype,) = command.inputs, command.output, command.attributes
    words = Command(command.name, (), (x._replace(dtype=_word(x.dtype)),), (out._replace(dtype=_word(out.dtype)),))
    return elementwise_nest((lambda v: v.not_equal(0)) if dtype == boolean else lambda v: v, words)


def _bitcast(x: Any, dtype: DType) -> Any:
    if any(accumulator(d) != d for d in (x.dtype, dtype)):
        raise NotSupportedError("a NaN of 16 bits does not keep its bits where it is computed with in 32")
    return x if x.dtype == dtype else _of_word(_as_word(x), dtype)


def _as_word(x: Any) -> Scalar:
    """The bits of a scalar as an unsigned integer."""
    if isinstance(x, StoredScalar):
        return x.bits
    if isinstance(x, Pair):
        low, high = (part.bitcast(uint32).cast(uint64) for part in (x.re, x.im))
        return low | (high << 32)  # type: ignore[no-any-return]
    if x.dtype == boolean:
        return x.cast(uint8)  # type: ignore[no-any-return]
    return x if x.dtype in UNSIGNED else x.bitcast(_word(x.dtype))  # type: ignore[no-any-return]


def _of_word(word: Scalar, dtype: DType) -> Any:
    if is_storage(dtype):
        return StoredScalar(word, dtype)
    if dtype == complex64:
        return Pair(*[part.cast(uint32).bitcast(float32) for part in (word, word >> 32)])
    if dtype == boolean:
        return word.not_equal(0)
    return word if dtype == word.dtype else word.bitcast(dtype)


class Bits(Base[V], Generic[V]):
    """Operators on the bits of integers; on booleans the bitwise operators are the logical ones."""

    @op(infer=rule.bitwise, reference=np.bitwise_and, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a & b)
    def bitwise_and(self, a: V | int, b: V | int) -> V:
        """The bits that both have; of booleans, logical and."""
        ...

    @op(infer=rule.bitwise, reference=np.bitwise_or, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a | b)
    def bitwise_or(self, a: V | int, b: V | int) -> V:
        """The bits that at least one has; of booleans, logical or."""
        ...

    @op(infer=rule.bitwise, reference=np.bitwise_xor, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a ^ b)
    def bitwise_xor(self, a: V | int, b: V | int) -> V:
        """The bits that exactly one has; of booleans, where they differ."""
        ...

    @op(infer=rule.bitwise, reference=np.bitwise_not, promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: ~x)
    def bitwise_invert(self, x: V | int) -> V:
        """All bits turned over, -x - 1 of signed integers; of booleans, logical not."""
        ...

    @op(infer=representation.bitcast, reference=_numpy_bitcast, exact=True, storage=True, differentiable=False,
        scalar=_bitcast, nest=_bitcast_nest, view=_bitcast_view)
    def bitcast(self, x: V, *, dtype: DType) -> V:
        """The bits of the elements, read as another dtype of as many bits; as booleans those that are not zero."""
        ...

    @op(infer=representation.integers, reference=np.left_shift, promote=ALL_INPUTS, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a << b)
    def bitwise_left_shift(self, a: V | int, b: V | int) -> V:
        """a * 2**b modulo the dtype's range; counts below 0 or beyond the width shift everything out."""
        ...

    @op(infer=representation.integers, reference=np.right_shift, promote=ALL_INPUTS, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a >> b)
    def bitwise_right_shift(self, a: V | int, b: V | int) -> V:
        """a / 2**b rounded down; counts below 0 or beyond the width shift everything out but the sign."""
        ...

    @op(infer=representation.integers, reference=np.gcd, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, differentiable=False, scalar=lambda a, b: a.apply("gcd", b))
    def gcd(self, a: V | int, b: V | int) -> V:
        """The greatest common divisor of |a| and |b|; that of 0 and 0 is 0."""
        ...

    @op(infer=representation.integers, reference=np.lcm, promote=ALL_INPUTS, commutative=True, inplace=(0, 1),
        exact=True, differentiable=False, scalar=_least_multiple)
    def lcm(self, a: V | int, b: V | int) -> V:
        """The least common multiple of |a| and |b|, modulo the dtype's range; 0 where one of them is 0."""
        ...

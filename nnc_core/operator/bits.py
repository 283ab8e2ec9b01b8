"""Integers as bits and as whole numbers: logic bit by bit, shifts, common divisors and multiples."""

from __future__ import annotations

from typing import Generic

import numpy as np

from nnc_core.base.dtype import UNSIGNED
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.shape import elementwise as rule
from nnc_core.shape import representation


def _least_multiple(a: Scalar, b: Scalar) -> Scalar:
    """|a / gcd * b|, and 0 where a or b is 0."""
    divisor = a.apply("gcd", b)
    sizes = (a, b) if a.dtype in UNSIGNED else (abs(a), abs(b))
    return sizes[0].apply("floor_divide", divisor) * sizes[1]


class Bits(Base[V], Generic[V]):
    """Operators on the bits of integers; on booleans the bitwise operators are the logical ones."""

    @op(infer=rule.bitwise, reference=np.bitwise_and, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a & b)
    def bitwise_and(self, a: V | int, b: V | int) -> V: ...

    @op(infer=rule.bitwise, reference=np.bitwise_or, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a | b)
    def bitwise_or(self, a: V | int, b: V | int) -> V: ...

    @op(infer=rule.bitwise, reference=np.bitwise_xor, promote=ALL_INPUTS, commutative=True, inplace=(0, 1), exact=True,
        differentiable=False, scalar=lambda a, b: a ^ b)
    def bitwise_xor(self, a: V | int, b: V | int) -> V: ...

    @op(infer=rule.bitwise, reference=np.bitwise_not, promote=ALL_INPUTS, inplace=(0,), exact=True,
        differentiable=False, scalar=lambda x: ~x)
    def bitwise_invert(self, x: V | int) -> V: ...

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

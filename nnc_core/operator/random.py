"""Random numbers: pure functions of a key (see `philox`)."""

from __future__ import annotations

from math import pi, prod
from typing import Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout, packed_strides
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.distributions import Distributions
from nnc_core.operator.flops import sorting
from nnc_core.operator.loops import Index, InlinedCommand, open_nest
from nnc_core.operator.philox import block_words, lane_of, philox_words
from nnc_core.shape import random as rule
from nnc_core.type import DimLike, Dims


def _random_bits(key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    words = philox_words(key, prod(shape) * dtype.itemsize // 4)
    if dtype == dt.uint64:
        words = words[0::2].astype(np.uint64) << np.uint64(32) | words[1::2]
    return words.reshape(shape)


def _bits_nest(command: Command) -> LoopNest:
    """Each element computes its own block."""
    _, dtype = command.attributes
    out = command.output
    if out.contiguous and not isinstance(command, InlinedCommand):
        out = Layout.packed((out.size,), out.dtype, out.offset)
        command = command._replace(outputs=(out,))
    nest = open_nest(command)
    at = nest.outer(*out.shape)
    seed, draw = nest.load(0, 0), nest.load(0, 1)
    place = sum((i * n for i, n in zip(at, packed_strides(out.shape, 1), strict=True)), Index())
    position = nest.position(place).cast(dt.uint64)
    words = block_words(nest, seed, draw, position >> (2 if dtype == dt.uint32 else 1))
    if dtype == dt.uint32:
        nest.store(0, lane_of(words, position & 3), *at)
    else:
        odd = (position & 1).equal(1)
        high, low = odd.select(words[2], words[0]), odd.select(words[3], words[1])
        nest.store(0, (high.cast(dt.uint64) << 32) | low.cast(dt.uint64), *at)
    return nest.build()


def _permutation(key: Any, size: int) -> Any:
    return np.argsort(_random_bits(key, (size,), dt.uint64), kind="stable").astype(np.int64, copy=False)


class Bits(Base[V], Generic[V]):
    """The state that makes each draw differ is a Cell above this floor; nothing here remembers anything."""

    @op(infer=rule.bits, reference=_random_bits, nest=_bits_nest, exact=True, random=True, differentiable=False)
    def random_bits(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """uint32: one word for each element; uint64: two, the upper half first."""
        ...

    @op(composite=True, infer=rule.floats, random=True, differentiable=False)
    def uniform(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """Multiples of 2^-24 (float64: 2^-53) in [0, 1); half floats are rounded down from float32's."""
        F: Any = self
        wide = dtype == dt.float64
        kept = {dt.float64: 53, dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}[dtype]
        # without names, so that eager code holds no more of the steps than it needs
        top = F.cast(F.floor_divide(F.random_bits(key, shape=shape, dtype=dt.uint64 if wide else dt.uint32),
                                    2 ** ((64 if wide else 32) - kept)), dtype=dtype)
        return F.multiply(top, 2.0**-kept)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.wide_floats, random=True, differentiable=False)
    def open_uniform(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """Odd multiples of 2^-24 (float64: 2^-53) strictly between 0 and 1: what logarithms can be taken of."""
        F: Any = self
        bits, kept = (64, 52) if dtype == dt.float64 else (32, 23)
        top = F.cast(F.floor_divide(F.random_bits(key, shape=shape, dtype=dt.uint64 if bits == 64 else dt.uint32),
                                    2 ** (bits - kept)), dtype=dtype)
        return F.multiply(F.add(top, 0.5), 2.0**-kept)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.floats, random=True, differentiable=False)
    def normal(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """Mean 0 and variance 1, by Box and Muller's transform."""
        F: Any = self
        wide = dtype if dtype == dt.float64 else dt.float32
        pairs = F.uniform(key, shape=(*shape, 2), dtype=wide)
        first, second = (F.reshape(F.slice(pairs, start=(*(0,) * len(shape), k), stop=(*shape, k + 1),
                                           step=(1,) * (len(shape) + 1)), shape=shape) for k in (0, 1))
        radius = F.sqrt(F.multiply(F.log(F.subtract(1.0, first)), -2.0))
        return F.cast(F.multiply(radius, F.cos(F.multiply(second, 2 * pi))), dtype=dtype)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.bernoulli, random=True, differentiable=False)
    def bernoulli(self, key: V, *, shape: Dims, probability: float) -> V:
        """True with the given probability, to within 2^-32."""
        F: Any = self
        threshold = round(probability * 2**32)
        if threshold == 2**32:
            return F.full(shape=shape, value=True, dtype=dt.boolean)  # type: ignore[no-any-return]
        bits = F.random_bits(key, shape=shape, dtype=dt.uint32)
        return F.less(bits, threshold)  # type: ignore[no-any-return]

    @op(infer=rule.permutation, reference=_permutation, exact=True, random=True, host=True, differentiable=False,
        flops=sorting)
    def permutation(self, key: V, *, size: DimLike) -> V:
        """0 … size-1 in the order of so many words of uint64, equal ones in their own order.

        Sorted on the host where a device has no kernel of its own; the key is all that is fetched for it.
        """
        ...


class Random(Bits[V], Distributions[V], Generic[V]):
    """All random operators."""

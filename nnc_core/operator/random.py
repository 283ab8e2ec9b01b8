"""Random numbers: pure functions of a key.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).  A key is two uint64:
the seed, and the number of the draw.  The seed is the cipher's key; its counter is (block, draw), where words 4b to
4b+3 of the result are the output of block b.  So every element can be computed alone, and its bits are the same on
every device and in every mode.
"""

from __future__ import annotations

from math import pi, prod
from typing import Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.base.layout import Layout, packed_strides
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import Index, NestBuilder, Scalar
from nnc_core.shape.movement import check_shape
from nnc_core.type import DimLike, Dims, TensorSpec

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_CHUNK = 1 << 14  # blocks at a time: the working set stays in the cache


def philox_words(key: Any, count: int) -> Any:
    """The first `count` uint32 words of the stream of a key."""
    seed, draw = (int(k) for k in np.asarray(key))
    blocks = -(-count // 4)
    out = np.empty((blocks, 4), np.uint32)
    for first in range(0, blocks, _CHUNK):
        last = min(first + _CHUNK, blocks)
        _philox_blocks(seed, draw, np.arange(first, last, dtype=np.uint64), out[first:last])
    return out.reshape(-1)[:count]


def _philox_blocks(seed: int, draw: int, block: Any, out: Any) -> None:
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1 = block & low, block >> half
    c2, c3 = np.full_like(block, draw & 0xFFFFFFFF), np.full_like(block, draw >> 32)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ np.uint64(k0), p1 & low, (p0 >> half) ^ c3 ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    for lane, word in enumerate((c0, c1, c2, c3)):
        out[:, lane] = word


def _random_bits(key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    words = philox_words(key, prod(shape) * dtype.itemsize // 4)
    if dtype == dt.uint64:
        words = words[0::2].astype(np.uint64) << np.uint64(32) | words[1::2]
    return words.reshape(shape)


def _bits_spec(key: TensorSpec, shape: Dims, dtype: DType) -> TensorSpec:
    if key.dtype != dt.uint64:
        raise DTypeError(f"a key is uint64[2] (seed, draw), not {key}")
    if key.shape != (2,):
        raise ShapeError(f"a key is uint64[2] (seed, draw), not {key}")
    if dtype not in (dt.uint32, dt.uint64):
        raise DTypeError(f"bits come as uint32 or uint64, not {dtype}")
    return TensorSpec(check_shape(shape), dtype)


def _bits_nest(command: Command) -> LoopNest:
    """Each element computes its own block."""
    _, dtype = command.attributes
    out = command.output
    if out.contiguous:
        out = Layout.packed((out.size,), out.dtype, out.offset)
    nest = NestBuilder(command._replace(outputs=(out,)))
    at = nest.outer(*out.shape)
    seed, draw = nest.load(0, 0), nest.load(0, 1)
    place = sum((i * n for i, n in zip(at, packed_strides(out.shape, 1), strict=True)), Index())
    position = nest.position(place).cast(dt.uint64)
    words = _philox(nest, seed, draw, position >> (2 if dtype == dt.uint32 else 1))
    if dtype == dt.uint32:
        nest.store(0, _lane(words, position & 3), *at)
    else:
        odd = (position & 1).compare("equal", 1)
        high, low = odd.select(words[2], words[0]), odd.select(words[3], words[1])
        nest.store(0, (high.cast(dt.uint64) << 32) | low.cast(dt.uint64), *at)
    return nest.build()


def _lane(words: list[Scalar], lane: Scalar) -> Scalar:
    value = words[3]
    for k in (2, 1, 0):
        value = lane.compare("equal", k).select(words[k], value)
    return value


def _philox(nest: NestBuilder, seed: Scalar, draw: Scalar, block: Scalar) -> list[Scalar]:
    def halves(x: Scalar) -> tuple[Scalar, Scalar]:
        return (x & 0xFFFFFFFF).cast(dt.uint32), (x >> 32).cast(dt.uint32)

    (c0, c1), (c2, c3), (k0, k1) = halves(block), halves(draw), halves(seed)
    m0, m1 = (nest.constant(m, dt.uint32) for m in MULTIPLIERS)
    for _ in range(ROUNDS):
        high0, high1 = c0.apply("multiply_high", m0), c2.apply("multiply_high", m1)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, c2 * m1, high0 ^ c3 ^ k1, c0 * m0
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return [c0, c1, c2, c3]


def _float_spec(key: TensorSpec, shape: Dims, dtype: DType) -> TensorSpec:
    if not dt.is_float(dtype):
        raise DTypeError(f"needs a floating-point dtype, not {dtype}")
    return TensorSpec(_bits_spec(key, shape, dt.uint32).shape, dtype)


def _bernoulli_spec(key: TensorSpec, shape: Dims, probability: float) -> TensorSpec:
    if not 0 <= probability <= 1:
        raise AttributeValueError(f"probability {probability} is not between 0 and 1")
    return TensorSpec(_bits_spec(key, shape, dt.uint32).shape, dt.boolean)


def _permutation_spec(key: TensorSpec, size: DimLike) -> TensorSpec:
    return TensorSpec(_bits_spec(key, (size,), dt.uint64).shape, dt.int64)


def _permutation(key: Any, size: int) -> Any:
    return np.argsort(_random_bits(key, (size,), dt.uint64), kind="stable").astype(np.int64, copy=False)


class Random(Base[V], Generic[V]):
    """The state that makes each draw differ is a Cell above this floor; nothing here remembers anything."""

    @op(infer=_bits_spec, reference=_random_bits, nest=_bits_nest, exact=True, random=True, differentiable=False)
    def random_bits(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """uint32: one word for each element; uint64: two, the upper half first."""
        ...

    @op(composite=True, infer=_float_spec, random=True, differentiable=False)
    def uniform(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """Multiples of 2^-24 (float64: 2^-53) in [0, 1); half floats are rounded down from float32's."""
        F: Any = self
        wide = dtype == dt.float64
        bits = F.random_bits(key, shape=shape, dtype=dt.uint64 if wide else dt.uint32)
        kept = {dt.float64: 53, dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}[dtype]
        top = F.floor_divide(bits, 2 ** ((64 if wide else 32) - kept))
        return F.multiply(F.cast(top, dtype=dtype), 2.0**-kept)  # type: ignore[no-any-return]

    @op(composite=True, infer=_float_spec, random=True, differentiable=False)
    def normal(self, key: V, *, shape: Dims, dtype: DType) -> V:
        """Mean 0 and variance 1, by Box and Muller's transform."""
        F: Any = self
        wide = dtype if dtype == dt.float64 else dt.float32
        pairs = F.uniform(key, shape=(*shape, 2), dtype=wide)
        first, second = (F.reshape(F.slice(pairs, start=(*(0,) * len(shape), k), stop=(*shape, k + 1),
                                           step=(1,) * (len(shape) + 1)), shape=shape) for k in (0, 1))
        radius = F.sqrt(F.multiply(F.log(F.subtract(1.0, first)), -2.0))
        return F.cast(F.multiply(radius, F.cos(F.multiply(second, 2 * pi))), dtype=dtype)  # type: ignore[no-any-return]

    @op(composite=True, infer=_bernoulli_spec, random=True, differentiable=False)
    def bernoulli(self, key: V, *, shape: Dims, probability: float) -> V:
        """True with the given probability, to within 2^-32."""
        F: Any = self
        threshold = round(probability * 2**32)
        if threshold == 2**32:
            return F.full(shape=shape, value=True, dtype=dt.boolean)  # type: ignore[no-any-return]
        bits = F.random_bits(key, shape=shape, dtype=dt.uint32)
        return F.less(bits, threshold)  # type: ignore[no-any-return]

    @op(infer=_permutation_spec, reference=_permutation, exact=True, random=True, host=True, differentiable=False)
    def permutation(self, key: V, *, size: DimLike) -> V:
        """0 … size-1 in the order of so many words of uint64, equal ones in their own order.

        Sorted on the host where a device has no kernel of its own; the key is all that is fetched for it.
        """
        ...

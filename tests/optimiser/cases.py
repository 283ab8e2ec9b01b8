"""Cases of rewrites: (specs of x0, x1, ...; a graph; what becomes of it, or KEPT)."""

from __future__ import annotations

from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.operator import Nodes
from nnc_core.symbol import Node, Number
from tests.optimiser.helpers import Build

KEPT = None  # the graph stays as it is
F4, I4, U4, B, C4 = "float32 2 3", "int32 2 3", "uint8 2 3", "bool 2 3", "complex64 2 3"
IMAGE, KERNEL, CHANNELS = "float32 2 6 6 3", "float32 3 3 3 4", "float32 4"


def full(F: Nodes, value: Any, like: Node, shape: tuple[int, ...] = ()) -> Node:
    return F.filled(shape=shape, number=Number(value, like.dtype))


def cut(F: Nodes, x: Node, *ranges: tuple[int, int]) -> Node:
    start, stop = zip(*ranges, strict=True)
    return F.slice(x, start=start, stop=stop, step=(1,) * x.ndim)


def pad(F: Nodes, x: Node, low: int, high: int, value: float = 0.0) -> Node:
    return F.pad(x, low=(low,), high=(high,), interior=(0,), value=value)


def conv(F: Nodes, x: Node, kernel: Node, layout: str = "NHWC") -> Node:
    return F.conv(x, kernel, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1, layout=layout)


POOL: dict[str, Any] = {"window": (2, 2), "strides": (2, 2), "padding": ((0, 0), (0, 0)), "dilation": (1, 1),
                        "layout": "NHWC"}  # fmt: skip


def max_pool(F: Nodes, x: Node) -> Node:
    return F.max_pool(x, **POOL)


def put_back(F: Nodes, g: Node, x: Node, layout: str = "NHWC", padding: Any = POOL["padding"]) -> Node:
    how = POOL | {"layout": layout, "padding": padding}
    return F.pool_put(g, F.max_pool_index(x, **how), size=(6, 6), **how)


def as_cast(F: Nodes, x: Node, *dtypes: Any) -> Node:
    for dtype in dtypes:
        x = F.cast(x, dtype=dtype)
    return x


def naive_softmax(F: Nodes, x: Node) -> Node:
    e = F.exp(x)
    return F.divide(e, F.sum(e, axis=(x.ndim - 1,), keepdims=True))


def picked(F: Nodes, x: Node, labels: Node) -> Node:
    hot = F.one_hot(labels, depth=x.shape[-1], dtype=x.dtype)
    return F.sum(F.multiply(hot, F.log_softmax(x, axis=1)), axis=(1,))


def moved_conv(F: Nodes, x: Node, k: Node) -> Node:
    return F.permute(conv(F, F.permute(x, axes=(0, 3, 1, 2)), k, "NCHW"), axes=(0, 2, 3, 1))


Cases = dict[str, list[tuple[list[str], Build, Build | None]]]
CASES: Cases = {
    "even-function": [
        ([F4], lambda F, x: F.cos(F.negative(x)), lambda F, x: F.cos(x)),
        ([F4], lambda F, x: F.sin(F.negative(x)), KEPT),
    ],
    "compare-with-itself": [
        ([I4], lambda F, x: F.equal(x, x), lambda F, x: F.full(shape=(2, 3), value=True, dtype=dt.boolean)),
        ([I4], lambda F, x: F.greater(x, x), lambda F, x: F.full(shape=(2, 3), value=False, dtype=dt.boolean)),
        ([F4], lambda F, x: F.less(x, x), lambda F, x: F.full(shape=(2, 3), value=False, dtype=dt.boolean)),
        ([F4], lambda F, x: F.equal(x, x), KEPT),  # NaN
        ([F4], lambda F, x: F.less_equal(x, x), KEPT),
        ([C4], lambda F, x: F.not_equal(x, x), KEPT),
        ([I4, I4], lambda F, x, y: F.equal(x, y), KEPT),
    ],
    "unsigned-below-zero": [
        ([U4], lambda F, x: F.less(x, 0), lambda F, x: F.full(shape=(2, 3), value=False, dtype=dt.boolean)),
        ([U4], lambda F, x: F.greater_equal(x, 0), lambda F, x: F.full(shape=(2, 3), value=True, dtype=dt.boolean)),
        ([I4], lambda F, x: F.less(x, 0), KEPT),
        ([U4], lambda F, x: F.less(x, 1), KEPT),
    ],
    "compare-with-truth": [
        ([B], lambda F, c: F.equal(c, True), lambda F, c: c),
        ([B], lambda F, c: F.not_equal(c, True), lambda F, c: F.logical_not(c)),
        ([I4], lambda F, x: F.equal(x, 1), KEPT),
    ],
    "not-of-comparison": [
        ([F4, F4], lambda F, x, y: F.logical_not(F.equal(x, y)), lambda F, x, y: F.not_equal(x, y)),
        ([I4, I4], lambda F, x, y: F.logical_not(F.less(x, y)), lambda F, x, y: F.greater_equal(x, y)),
        ([F4, F4], lambda F, x, y: F.logical_not(F.less(x, y)), KEPT),  # NaN is neither
    ],
    "logic-with-number": [
        ([B], lambda F, c: F.logical_and(c, True), lambda F, c: c),
        ([B], lambda F, c: F.logical_or(c, True), lambda F, c: full(F, True, c, (2, 3))),
        ([B], lambda F, c: F.logical_and(full(F, False, c, (2, 3)), c), lambda F, c: full(F, False, c, (2, 3))),
        ([B], lambda F, c: F.logical_xor(c, True), lambda F, c: F.logical_not(c)),
        ([I4], lambda F, x: F.bitwise_and(x, -1), lambda F, x: x),
        ([I4], lambda F, x: F.bitwise_xor(x, -1), lambda F, x: F.bitwise_invert(x)),
        ([U4], lambda F, x: F.bitwise_or(x, 0), lambda F, x: x),
        ([I4], lambda F, x: F.bitwise_and(x, 1), KEPT),
    ],
    "logic-with-its-opposite": [
        ([B], lambda F, c: F.logical_and(c, F.logical_not(c)), lambda F, c: full(F, False, c, (2, 3))),
        ([B], lambda F, c: F.logical_or(F.logical_not(c), c), lambda F, c: full(F, True, c, (2, 3))),
        ([B, B], lambda F, c, d: F.logical_and(c, F.logical_not(d)), KEPT),
    ],
    "absorption": [
        ([B, B], lambda F, c, d: F.logical_and(c, F.logical_or(d, c)), lambda F, c, d: c),
        ([I4, "int32 3"], lambda F, x, y: F.bitwise_or(F.bitwise_and(y, x), y),
         lambda F, x, y: F.broadcast_to(y, shape=(2, 3))),
        ([B, B], lambda F, c, d: F.logical_and(c, F.logical_and(d, c)), KEPT),
    ],
    "where-of-truth": [
        ([B], lambda F, c: F.where(c, full(F, True, c), full(F, False, c)), lambda F, c: c),
        ([B], lambda F, c: F.where(c, full(F, False, c), full(F, True, c)), lambda F, c: F.logical_not(c)),
        ([B], lambda F, c: F.where(c, 1.0, 0.0), KEPT),
    ],
    "where-not": [
        ([B, F4, F4], lambda F, c, x, y: F.where(F.logical_not(c), x, y), lambda F, c, x, y: F.where(c, y, x)),
        ([B, F4, F4], lambda F, c, x, y: F.where(c, x, y), KEPT),
    ],
    "where-again": [
        ([B, F4, F4], lambda F, c, x, y: F.where(c, F.where(c, x, y), 0.0), lambda F, c, x, y: F.where(c, x, 0.0)),
        ([B, "float32 1 3", "float32 3"], lambda F, c, x, y: F.where(c, x, F.where(c, 0.0, y)),
         lambda F, c, x, y: F.where(c, x, y)),
        ([B, B, F4], lambda F, c, d, x: F.where(c, F.where(d, x, 1.0), 0.0), KEPT),
    ],
    "cast-again": [
        (["float16 3"], lambda F, x: as_cast(F, x, dt.float64, dt.bfloat16), lambda F, x: as_cast(F, x, dt.bfloat16)),
        (["int8 3"], lambda F, x: as_cast(F, x, dt.int64, dt.uint16), lambda F, x: as_cast(F, x, dt.uint16)),
        (["int64 3"], lambda F, x: as_cast(F, x, dt.int32, dt.int8), lambda F, x: as_cast(F, x, dt.int8)),
        (["bool 3"], lambda F, x: as_cast(F, x, dt.float16, dt.int32), lambda F, x: as_cast(F, x, dt.int32)),
        (["float64 3"], lambda F, x: as_cast(F, x, dt.float32, dt.float64), KEPT),  # rounds
        (["float64 3"], lambda F, x: as_cast(F, x, dt.float32, dt.float16), KEPT),  # rounds twice
        (["int32 3"], lambda F, x: as_cast(F, x, dt.float64, dt.int8), KEPT),  # saturates, does not wrap
        (["int64 3"], lambda F, x: as_cast(F, x, dt.float64, dt.float32), KEPT),  # rounds twice
        (["int32 3"], lambda F, x: as_cast(F, x, dt.boolean, dt.int32), KEPT),
        (["float16 3"], lambda F, x: as_cast(F, x, dt.bfloat16, dt.float32), KEPT),
    ],
    "round-whole-numbers": [
        ([F4], lambda F, x: F.ceil(F.floor(x)), lambda F, x: F.floor(x)),
        ([I4], lambda F, x: F.round(x), lambda F, x: x),
        ([I4], lambda F, x: F.floor(as_cast(F, x, dt.float32)), lambda F, x: as_cast(F, x, dt.float32)),
        (["float64 3"], lambda F, x: F.floor(as_cast(F, x, dt.float32)), KEPT),
    ],
    "gather-numbers": [
        ([I4], lambda F, x: F.add(F.add(x, 2), 3), lambda F, x: F.add(x, 5)),
        ([U4], lambda F, x: F.multiply(F.multiply(x, 100), 3), lambda F, x: F.multiply(x, 44)),  # wraps
        ([I4], lambda F, x: F.minimum(F.minimum(x, 2), 3), lambda F, x: F.minimum(x, 2)),
        ([F4], lambda F, x: F.add(F.add(x, 2.0), 3.0), KEPT),
        ([I4], lambda F, x: F.add(F.multiply(x, 2), 3), KEPT),
    ],
    "add-and-subtract": [
        ([I4, I4], lambda F, x, y: F.subtract(F.add(y, x), y), lambda F, x, y: x),
        ([I4, I4], lambda F, x, y: F.add(y, F.subtract(x, y)), lambda F, x, y: x),
        ([I4, I4], lambda F, x, y: F.subtract(x, F.subtract(x, y)), lambda F, x, y: y),
        ([I4, I4], lambda F, x, y: F.subtract(x, F.add(x, y)), lambda F, x, y: F.negative(y)),
        ([F4, F4], lambda F, x, y: F.subtract(F.add(x, y), y), KEPT),
    ],
    "collect-multiples": [
        ([I4], lambda F, x: F.add(F.multiply(x, 3), F.multiply(x, 4)), lambda F, x: F.multiply(x, 7)),
        ([I4], lambda F, x: F.subtract(x, F.multiply(x, 3)), lambda F, x: F.multiply(x, -2)),
        ([F4], lambda F, x: F.add(F.multiply(x, 3.0), x), KEPT),
        ([I4], lambda F, x: F.add(x, x), KEPT),
    ],
    "minus-one": [
        ([F4], lambda F, x: F.multiply(x, -1.0), lambda F, x: F.negative(x)),
        ([F4], lambda F, x: F.divide(x, -1.0), lambda F, x: F.negative(x)),
        ([U4], lambda F, x: F.multiply(x, 255), KEPT),
        ([C4], lambda F, x: F.multiply(x, -1.0), KEPT),  # each part adds a product with 0
    ],
    "zero-minus": [
        ([I4], lambda F, x: F.subtract(0, x), lambda F, x: F.negative(x)),
        ([F4], lambda F, x: F.subtract(-0.0, x), lambda F, x: F.negative(x)),
        ([F4], lambda F, x: F.subtract(0.0, x), KEPT),  # of 0 it is 0
    ],
    "power-zero": [
        ([F4], lambda F, x: F.power(x, 0.0), lambda F, x: full(F, 1, x, (2, 3))),
        ([C4], lambda F, x: F.power(x, 0.0), KEPT),
    ],
    "divide-by-one": [
        ([I4], lambda F, x: F.floor_divide(x, 1), lambda F, x: x),
        ([I4], lambda F, x: F.remainder(x, 1), lambda F, x: full(F, 0, x, (2, 3))),
        ([F4], lambda F, x: F.floor_divide(x, 1.0), KEPT),
    ],
    "shift-by-zero": [
        ([I4], lambda F, x: F.bitwise_left_shift(x, 0), lambda F, x: x),
        ([I4], lambda F, x: F.bitwise_right_shift(x, 1), KEPT),
    ],
    "magnitude-of-negative": [
        ([F4], lambda F, x: F.abs(F.negative(x)), lambda F, x: F.abs(x)),
        ([U4], lambda F, x: F.abs(F.negative(x)), KEPT),
    ],
    "part-of-complex": [
        ([F4, F4], lambda F, x, y: F.imag(F.complex_(x, y)), lambda F, x, y: y),
        ([C4], lambda F, z: F.real(F.conj(z)), lambda F, z: F.real(z)),
        ([C4], lambda F, z: F.imag(F.conj(z)), lambda F, z: F.negative(F.imag(z))),
        ([C4], lambda F, z: F.real(F.negative(z)), KEPT),
    ],
    "complex-of-parts": [
        ([C4], lambda F, z: F.complex_(F.real(z), F.imag(z)), lambda F, z: z),
        ([C4], lambda F, z: F.complex_(F.imag(z), F.real(z)), KEPT),
    ],
    "conjugate-again": [
        ([C4], lambda F, z: F.conj(F.conj(z)), lambda F, z: z),
        ([C4], lambda F, z: F.conj(F.negative(z)), KEPT),
    ],
    "join-neighbours": [
        (["float32 9"], lambda F, x: F.concat(cut(F, x, (1, 4)), cut(F, x, (4, 6)), cut(F, x, (6, 9)), axis=0),
         lambda F, x: cut(F, x, (1, 9))),
        ([F4], lambda F, x: F.concat(cut(F, x, (0, 2), (1, 2)), cut(F, x, (0, 2), (2, 3)), x, axis=1),
         lambda F, x: F.concat(cut(F, x, (0, 2), (1, 3)), x, axis=1)),
        (["float32 9"], lambda F, x: F.concat(cut(F, x, (4, 9)), cut(F, x, (0, 4)), axis=0), KEPT),
        ([F4], lambda F, x: F.concat(cut(F, x, (0, 1), (0, 2)), cut(F, x, (1, 2), (0, 2)), axis=1), KEPT),
    ],
    "concat-again": [
        ([F4, F4], lambda F, x, y: F.concat(F.concat(x, y, axis=0), x, axis=0),
         lambda F, x, y: F.concat(x, y, x, axis=0)),
        ([F4, F4], lambda F, x, y: F.concat(F.concat(x, y, axis=0), F.concat(y, x, axis=0), axis=1), KEPT),
    ],
    "slice-of-concat": [
        ([F4, F4], lambda F, x, y: cut(F, F.concat(x, y, axis=0), (2, 3), (1, 3)),
         lambda F, x, y: cut(F, y, (0, 1), (1, 3))),
        ([F4, F4], lambda F, x, y: cut(F, F.concat(x, y, axis=0), (1, 3), (0, 3)), KEPT),
        ([F4, F4], lambda F, x, y: cut(F, F.concat(x, y, axis=0), (2, 2), (0, 3)), KEPT),
    ],
    "pad-again": [
        (["float32 3"], lambda F, x: pad(F, pad(F, x, 1, 2), 3, 4), lambda F, x: pad(F, x, 4, 6)),
        (["float32 3"], lambda F, x: pad(F, pad(F, x, 1, 2, 5.0), 3, 4), KEPT),
        (["float32 3"], lambda F, x: F.pad(pad(F, x, 1, 2), low=(0,), high=(0,), interior=(1,)), KEPT),
    ],
    "slice-of-pad": [
        (["float32 5"], lambda F, x: cut(F, pad(F, x, 2, 3), (3, 7)), lambda F, x: cut(F, x, (1, 5))),
        (["float32 5"], lambda F, x: cut(F, pad(F, x, 2, 3), (1, 7)), KEPT),
        (["float32 5"], lambda F, x: cut(F, pad(F, x, 2, 3), (3, 8)), KEPT),
    ],
    "read-what-was-written": [
        (["float32 5", "float32 2"],
         lambda F, x, v: cut(F, F.update_slice(x, v, start=(1,), step=(1,)), (1, 3)), lambda F, x, v: v),
        (["float32 5", "float32 2"],
         lambda F, x, v: cut(F, F.update_slice(x, v, start=(1,), step=(1,)), (2, 4)), KEPT),
        (["float32 5", "float32 2"],
         lambda F, x, v: cut(F, F.update_slice(x, v, start=(1,), step=(2,)), (1, 3)), KEPT),
    ],
    "transfer-back": [
        ([F4], lambda F, x: F.transfer(F.transfer(x, source="a", target="b"), source="b", target="a"),
         lambda F, x: x),
        ([F4], lambda F, x: F.transfer(x, source="a", target="a"), lambda F, x: x),
        ([F4], lambda F, x: F.transfer(F.transfer(x, source="a", target="b"), source="b", target="c"), KEPT),
    ],
    "reduce-again": [
        (["int32 2 3 4"], lambda F, x: F.sum(F.sum(x, axis=(1,)), axis=(1,)), lambda F, x: F.sum(x, axis=(1, 2))),
        (["bool 2 3"], lambda F, x: F.any(F.any(x, axis=(0,), keepdims=True), axis=(1,)),
         lambda F, x: F.reshape(F.any(x, axis=(0, 1)), shape=(1,))),
        (["float32 2 3 4"], lambda F, x: F.max(F.max(x, axis=(1,)), axis=(1,)), KEPT),  # which of 0.0 and -0.0
        (["int32 2 3 4"], lambda F, x: F.max(F.min(x, axis=(1,)), axis=(1,)), KEPT),
    ],
    "reduce-floats-again": [
        (["float32 2 3 4"], lambda F, x: F.sum(F.sum(x, axis=(1,)), axis=(1,)), lambda F, x: F.sum(x, axis=(1, 2))),
        (["float16 2 3 4"], lambda F, x: F.sum(F.sum(x, axis=(1,)), axis=(1,)), KEPT),
    ],
    "reduce-copies": [
        (["float32 1 3"], lambda F, x: F.max(F.broadcast_to(x, shape=(2, 3)), axis=(0,)),
         lambda F, x: F.reshape(x, shape=(3,))),
        (["float32 1 3"], lambda F, x: F.max(F.broadcast_to(x, shape=(2, 3)), axis=(0, 1)), KEPT),
        (["float32 1 3"], lambda F, x: F.max(F.broadcast_to(x, shape=(2, 3)), axis=(1,)), KEPT),
    ],
    "sum-copies": [
        (["int32 3"], lambda F, x: F.sum(F.broadcast_to(x, shape=(5, 3)), axis=(0,)),
         lambda F, x: F.multiply(F.reshape(x, shape=(3,)), 5)),
        (["float32 3"], lambda F, x: F.sum(F.broadcast_to(x, shape=(5, 3)), axis=(0,)), KEPT),
    ],
    "sum-float-copies": [
        (["float32 1 3"], lambda F, x: F.sum(F.broadcast_to(x, shape=(5, 3)), axis=(0,)),
         lambda F, x: F.multiply(F.reshape(x, shape=(3,)), 5.0)),
        (["float32 1 3"], lambda F, x: F.sum(F.broadcast_to(x, shape=(500, 3)), axis=(0,)), KEPT),
    ],
    "scale-into-conv": [
        ([IMAGE, KERNEL, CHANNELS], lambda F, x, k, s: F.multiply(conv(F, x, k), s),
         lambda F, x, k, s: conv(F, x, F.multiply(k, F.reshape(s, shape=(1, 1, 1, 4))))),
        ([IMAGE, KERNEL, CHANNELS], lambda F, x, k, s: F.add(F.multiply(y := conv(F, x, k), s), y), KEPT),
        ([IMAGE, KERNEL, "float32 4 1"], lambda F, x, k, s: F.multiply(conv(F, x, k), s), KEPT),
        ([IMAGE, KERNEL, "float32 2 1 1 1"], lambda F, x, k, s: F.multiply(conv(F, x, k), s), KEPT),
    ],
    "scale-past-shift": [
        ([IMAGE, KERNEL, CHANNELS, CHANNELS], lambda F, x, k, m, s: F.multiply(F.subtract(conv(F, x, k), m), s),
         lambda F, x, k, m, s: F.subtract(F.multiply(conv(F, x, k), s), F.multiply(m, s))),
        ([IMAGE, KERNEL, "float32 2 4 4 4", CHANNELS],
         lambda F, x, k, m, s: F.multiply(F.subtract(conv(F, x, k), m), s), KEPT),
    ],
    "merge-shifts": [
        ([IMAGE, KERNEL, CHANNELS, CHANNELS], lambda F, x, k, m, b: F.add(F.subtract(conv(F, x, k), m), b),
         lambda F, x, k, m, b: F.add(conv(F, x, k), F.subtract(b, m))),
        ([IMAGE, KERNEL, CHANNELS], lambda F, x, k, b: F.add(conv(F, x, k), b), KEPT),
        (["float32 1 3 3 3", "float32 1 3 3 3", KERNEL, CHANNELS],  # results of one pixel are no shifts of each other
         lambda F, x, y, k, b: F.add(F.add(conv(F, x, k), b), conv(F, y, k)), KEPT),
    ],
    "transpose-into-conv": [
        (["float32 2 6 6 3", "float32 4 3 3 3"], moved_conv,
         lambda F, x, k: conv(F, x, F.permute(k, axes=(2, 3, 1, 0)))),
        (["float32 2 6 6 3", "float32 4 3 3 3"],
         lambda F, x, k: F.permute(conv(F, F.permute(x, axes=(0, 3, 1, 2)), k, "NCHW"), axes=(0, 3, 2, 1)), KEPT),
    ],
    "mask-of-pool": [
        ([IMAGE, "float32 2 3 3 3"], lambda F, x, g: F.where(F.greater(x, 0.0), put_back(F, g, x), 0.0),
         lambda F, x, g: put_back(F, F.where(F.greater(max_pool(F, x), 0.0), g, 0.0), x)),
        ([IMAGE, "float32 2 3 3 3"], lambda F, x, g: F.where(F.greater(F.exp(x), 0.0), put_back(F, g, x), 0.0), KEPT),
        ([IMAGE, "float32 2 3 3 3"], lambda F, x, g: F.where(F.greater(x, 0.0), put_back(F, g, x), 1.0), KEPT),
    ],
    "sum-of-pool": [
        ([IMAGE, "float32 2 3 3 3"], lambda F, x, g: F.sum(put_back(F, g, x), axis=(0, 1, 2)),
         lambda F, x, g: F.sum(g, axis=(0, 1, 2))),
        ([IMAGE, "float32 2 3 3 3"], lambda F, x, g: F.sum(put_back(F, g, x), axis=(1, 2), keepdims=True),
         lambda F, x, g: F.sum(g, axis=(1, 2), keepdims=True)),
        ([IMAGE, "float32 2 3 3 3"], lambda F, x, g: F.sum(put_back(F, g, x), axis=(0, 1)), KEPT),
        (["float32 2 3 6 6", "float32 2 3 3 3"],
         lambda F, x, g: F.sum(put_back(F, g, x, "NCHW"), axis=(0, 2, 3)), lambda F, x, g: F.sum(g, axis=(0, 2, 3))),
        (["float32 2 6 6 6", "float32 2 6 3 3"],
         lambda F, x, g: F.sum(put_back(F, g, x, "NCHW"), axis=(0, 1, 2)), KEPT),
        ([IMAGE, "float32 2 4 4 3"],  # a window of nothing but padding gives what it has to nobody
         lambda F, x, g: F.sum(put_back(F, g, x, padding=((1, 1), (1, 1))), axis=(0, 1, 2)), KEPT),
        ([IMAGE, "int32 2 3 3 3", "float32 2 3 3 3"],  # nobody knows which numbers an index has
         lambda F, x, i, g: F.sum(F.pool_put(g, i, size=(6, 6), **POOL), axis=(0, 1, 2)), KEPT),
    ],
    "log-of-sigmoid": [
        ([F4], lambda F, x: F.log(F.sigmoid(x)), lambda F, x: F.negative(F.softplus(F.negative(x)))),
        ([F4], lambda F, x: F.log(F.subtract(1.0, F.sigmoid(x))), lambda F, x: F.negative(F.softplus(x))),
        ([F4], lambda F, x: F.log1p(F.negative(F.sigmoid(x))), lambda F, x: F.negative(F.softplus(x))),
        ([F4], lambda F, x: F.log(F.tanh(x)), KEPT),
    ],
    "log-of-one-plus": [
        ([F4], lambda F, x: F.log(F.add(1.0, x)), lambda F, x: F.log1p(x)),
        ([F4], lambda F, x: F.log(F.add(x, 2.0)), KEPT),
    ],
    "softplus-of-exp": [
        ([F4], lambda F, x: F.log1p(F.exp(x)), lambda F, x: F.softplus(x)),
        ([F4], lambda F, x: F.log1p(F.tanh(x)), KEPT),
    ],
    "exp-minus-one": [
        ([F4], lambda F, x: F.subtract(F.exp(x), 1.0), lambda F, x: F.expm1(x)),
        ([F4], lambda F, x: F.multiply(F.subtract(e := F.exp(x), 1.0), e), KEPT),
    ],
    "log-of-exp": [
        ([F4], lambda F, x: F.log(F.exp(x)), lambda F, x: x),
        ([F4, F4], lambda F, x, y: F.log(F.add(F.exp(x), F.exp(y))), lambda F, x, y: F.logaddexp(x, y)),
        ([C4], lambda F, x: F.log(F.exp(x)), KEPT),  # the branch of the logarithm
    ],
    "log-of-softmax": [
        ([F4], lambda F, x: F.log(F.softmax(x, axis=1)), lambda F, x: F.log_softmax(x, axis=1)),
        ([F4], lambda F, x: F.log(F.tanh(x)), KEPT),
    ],
    "exp-of-log-softmax": [
        ([F4], lambda F, x: F.exp(F.log_softmax(x, axis=1)), lambda F, x: F.softmax(x, axis=1)),
        ([F4], lambda F, x: F.add(F.exp(y := F.log_softmax(x, axis=1)), y), KEPT),
    ],
    "log-of-sum-of-exp": [
        ([F4], lambda F, x: F.log(F.sum(F.exp(x), axis=(0,))), lambda F, x: F.logsumexp(x, axis=(0,), keepdims=False)),
        ([F4], lambda F, x: F.log(F.sum(F.tanh(x), axis=(0,))), KEPT),
    ],
    "softmax-by-hand": [
        ([F4], naive_softmax, lambda F, x: F.softmax(x, axis=1)),
        ([F4], lambda F, x: F.divide(e := F.exp(x), F.sum(e, axis=(0, 1), keepdims=True)), KEPT),
    ],
    "log-softmax-by-hand": [
        ([F4], lambda F, x: F.subtract(x, F.logsumexp(x, axis=(1,), keepdims=True)),
         lambda F, x: F.log_softmax(x, axis=1)),
        ([F4, F4], lambda F, x, y: F.subtract(y, F.logsumexp(x, axis=(1,), keepdims=True)), KEPT),
    ],
    "cross-entropy-by-hand": [
        ([F4, "int64 2"], picked, lambda F, x, y: F.negative(F.cross_entropy(x, y))),
        ([F4, "int64 2"], lambda F, x, y: F.sum(F.where(F.one_hot(y, depth=3, dtype=dt.boolean),
                                                        F.log_softmax(x, axis=1), 0.0), axis=(1,)),
         lambda F, x, y: F.negative(F.cross_entropy(x, y))),
        ([F4, "int64 2"], lambda F, x, y: F.sum(F.multiply(F.one_hot(y, depth=3, dtype=dt.float32),
                                                           F.log_softmax(x, axis=0)), axis=(1,)), KEPT),
    ],
    "cancel-probability": [
        ([F4, F4], lambda F, x, g: F.multiply(F.multiply(g, F.divide(1.0, p := F.softmax(x, axis=1))), p),
         lambda F, x, g: g),
        ([F4, F4], lambda F, x, g: F.multiply(F.multiply(g, F.divide(1.0, p := F.sigmoid(x))), F.multiply(p, x)),
         lambda F, x, g: F.multiply(g, x)),
        ([F4, F4], lambda F, x, g: F.multiply(F.multiply(g, F.divide(1.0, x)), x), KEPT),  # x may be 0
    ],
}  # fmt: skip
INEXACT = frozenset((
    "square", "sum-nothing", "sum-of-pool", "transpose-into-matmul", "even-function", "reduce-floats-again",
    "sum-float-copies", "scale-into-conv", "scale-past-shift", "merge-shifts", "transpose-into-conv", "log-of-sigmoid",
    "log-of-one-plus", "softplus-of-exp", "exp-minus-one", "log-of-exp", "log-of-softmax", "exp-of-log-softmax",
    "log-of-sum-of-exp", "softmax-by-hand", "log-softmax-by-hand", "cross-entropy-by-hand", "cancel-probability",
))  # fmt: skip

"""For every operator that the CPU plugin has a kernel for: inputs and attributes to try it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.operator import OPERATORS
from nnc_core.symbol import Number

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """Inputs, and attributes in the order of the operator's declaration."""

    arrays: tuple[Array, ...]
    attributes: tuple[Any, ...] = ()


class Draw:
    """Arrays of one dtype."""

    def __init__(self, dtype: DType, seed: int = 0) -> None:
        self.dtype, self.rng = dtype, np.random.default_rng(seed)

    def any(self, *shape: int) -> Array:
        """Numbers of both signs (if there are), most of them distinct."""
        if self.dtype == dt.boolean:
            return self.rng.random(shape) < 0.5
        low = 0 if self.dtype.kind == "u" else -5
        whole = self.rng.integers(low, 10, shape)
        return (whole if dt.is_integer(self.dtype) else whole + self.rng.random(shape)).astype(self.dtype)

    def positive(self, *shape: int) -> Array:
        if dt.is_integer(self.dtype):
            return np.abs(self.any(*shape))
        return (self.rng.random(shape) + 0.25).astype(self.dtype)

    def special(self) -> Array:
        """Values on which kernels differ: signed zeros, infinities, NaN, the largest and the smallest."""
        if not dt.is_float(self.dtype):
            return self.any(16)
        values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, -2.0, 100.0, -100.0, 1e-3, 3.0, -3.0, 1e4]
        return np.array(values).astype(self.dtype)


def case(arrays: tuple[Array, ...], operator: str, **attributes: Any) -> Case:
    return Case(arrays, tuple(attributes[name] for name in OPERATORS[operator].attributes))


def unary(d: Draw) -> Iterator[Case]:
    for x in (d.any(3, 5), d.any(2, 3, 37), d.any(), d.any(0, 4), d.special()):
        yield Case((x,))


def binary(d: Draw) -> Iterator[Case]:
    for a, b in [((3, 5), (3, 5)), ((3, 1), (5,)), ((), (4,)), ((), ()), ((2, 0), (1, 1)), ((7, 33), (7, 33))]:
        yield Case((d.any(*a), d.any(*b)))
    x = d.special()
    yield Case((x[:, None], x))


def power(d: Draw) -> Iterator[Case]:
    for a, b in [((3, 5), (3, 5)), ((3, 1), (5,)), ((), ()), ((2, 0), (1, 1))]:
        yield Case((d.any(*a), d.positive(*b)))
    if dt.is_float(d.dtype):
        yield from [Case((d.special()[:, None], d.special()))]


def clip(d: Draw) -> Iterator[Case]:
    for shape in [(4, 5), (), (0, 3)]:
        yield Case((d.any(*shape), d.any(), d.any(*shape)))
    yield Case((d.special(), np.array(1).astype(d.dtype), np.array(2).astype(d.dtype)))


def where(d: Draw) -> Iterator[Case]:
    for c, a, b in [((3, 5), (3, 5), (3, 5)), ((3, 1), (), (5,)), ((), (), ()), ((0, 2), (2,), ()), ((90, 70),) * 3]:
        yield Case((d.rng.random(c) < 0.5, d.any(*a), d.any(*b)))
    yield Case((d.rng.random(16) < 0.5, d.special(), d.any(16)))


def cast(d: Draw) -> Iterator[Case]:
    for dtype in dt.DTYPES.values():
        yield Case((d.positive(3, 5),), (dtype,))
    for x, dtype in [(d.any(), dt.float32), (d.any(0, 2), dt.float16), (d.special(), dt.float16)]:
        yield Case((x,), (dtype,))


def take(d: Draw) -> Iterator[Case]:
    for shape, indices, axis in [((5, 3), (4,), 0), ((2, 6, 3), (2, 2), 1), ((4,), (), 0), ((3, 4), (0,), 1)]:
        for kind in (np.int64, np.int8, np.uint8, np.uint64):
            low = -shape[axis] if np.dtype(kind).kind == "i" else 0
            yield Case((d.any(*shape), d.rng.integers(low, shape[axis], indices).astype(kind)), (axis,))


def scatter(d: Draw) -> Iterator[Case]:
    for mode in ("set", "add") if d.dtype != dt.boolean else ("set",):
        for shape, count, axis in [((5, 3), (7,), 0), ((2, 6), (2, 2), 1), ((4,), (), 0), ((3, 4), (0,), 1)]:
            updates = d.any(*shape[:axis], *count, *shape[axis + 1 :])
            indices = d.rng.integers(-shape[axis], shape[axis], count)
            yield Case((d.any(*shape), indices, updates), (axis, mode))
    yield Case((d.any(5), np.array([1, 1, 3], np.uint64), d.any(3)), (0, "set"))


def one_hot(d: Draw) -> Iterator[Case]:
    for shape in [(4,), (2, 3), (), (0,)]:
        for dtype in (dt.float32, dt.boolean, dt.bfloat16, dt.int16):
            yield Case((d.any(*shape),), (4, dtype))


def matmul(d: Draw) -> Iterator[Case]:
    for ta, tb in product((False, True), repeat=2):
        for batch, other, (m, k, n) in [((), (), (3, 4, 5)), ((2, 1), (3,), (2, 5, 1)), ((), (), (1, 7, 1)),
                                        ((2,), (), (3, 0, 2)), ((), (), (40, 40, 40))]:
            a, b = (*batch, *((k, m) if ta else (m, k))), (*other, *((n, k) if tb else (k, n)))
            yield Case((d.any(*a), d.any(*b)), (ta, tb))
    x = d.any(9, 9)
    yield Case((x, x), (False, True))


def reshape(d: Draw) -> Iterator[Case]:
    for old, new in [((4, 6), (3, 8)), ((4, 6), (24,)), ((), (1, 1)), ((1,), ()), ((0, 3), (3, 0)),
                     ((2, 3), (2, 1, 3))]:
        yield Case((d.any(*old),), (new,))


def permute(d: Draw) -> Iterator[Case]:
    for shape, axes in [((3, 4, 5), (2, 0, 1)), ((3, 4), (1, 0)), ((), ()), ((0, 2), (1, 0))]:
        yield Case((d.any(*shape),), (axes,))


def broadcast_to(d: Draw) -> Iterator[Case]:
    for old, new in [((4,), (3, 4)), ((3, 1), (3, 5)), ((), (2, 2)), ((), ()), ((1, 2), (0, 2))]:
        yield Case((d.any(*old),), (new,))


def slice_(d: Draw) -> Iterator[Case]:
    for shape, start, stop, step in [((6, 7), (1, 0), (6, 7), (2, 3)), ((), (), (), ()), ((5,), (3,), (3,), (1,))]:
        yield Case((d.any(*shape),), (start, stop, step))


def pad(d: Draw) -> Iterator[Case]:
    for shape, low, high, interior in [((3, 2), (1, 0), (0, 2), (0, 3)), ((), (), (), ()), ((0,), (2,), (1,), (1,)),
                                       ((1, 4), (0, 0), (1, 1), (5, 0))]:
        yield case((d.any(*shape),), "pad", low=low, high=high, interior=interior, value=1.0)


def flip(d: Draw) -> Iterator[Case]:
    for shape, axes in [((3, 4, 5), (0, 2)), ((4,), (0,)), ((), ()), ((0, 2), (1,)), ((2, 3), ())]:
        yield Case((d.any(*shape),), (axes,))


def concat(d: Draw) -> Iterator[Case]:
    yield Case((d.any(2, 3), d.any(2, 0), d.any(2, 4)), (1,))
    yield Case((d.any(2, 3), d.any(1, 3)), (0,))
    yield Case((d.any(3),), (0,))


def update_slice(d: Draw) -> Iterator[Case]:
    for shape, value, start, step in [((5, 6), (2, 3), (1, 0), (3, 2)), ((), (), (), ()), ((4,), (0,), (1,), (1,)),
                                      ((4, 2), (4, 2), (0, 0), (1, 1))]:
        yield Case((d.any(*shape), d.any(*value)), (start, step))


def reduction(d: Draw) -> Iterator[Case]:
    for shape, axis in [((4, 5, 6), (0, 2)), ((4, 5, 6), (0, 1, 2)), ((3, 4), ()), ((), ()), ((0, 3), (1,)),
                        ((16,), (0,)), ((8, 8, 6, 5), (0, 1, 2)), ((96, 3), (0,)), ((7, 3), (0,)),
                        ((64, 3, 2), (0, 1))]:
        for keepdims in (False, True):
            yield Case((d.special() if shape == (16,) else d.any(*shape),), (axis, keepdims))


def sum_(d: Draw) -> Iterator[Case]:
    yield from reduction(d)
    yield Case((d.any(0, 3),), ((0,), False))


def position(d: Draw) -> Iterator[Case]:
    for shape, axis in [((4, 5, 6), 1), ((7,), 0), ((0, 3), 1), ((16,), 0)]:
        for keepdims in (False, True):
            yield Case((d.special() if shape == (16,) else d.any(*shape),), (axis, keepdims))


def along(d: Draw) -> Iterator[Case]:
    for shape, axis in [((4, 5), 1), ((4, 5, 2), 0), ((6,), 0), ((0, 3), 1)]:
        yield Case((d.any(*shape),), (axis,))


WINDOWS: list[tuple[tuple[int, int], Any, Any, Any, Any]] = [
    # image's size, window, strides, padding, dilation
    ((6, 6), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 6), (3, 2), (1, 1), ((1, 1), (1, 0)), (1, 1)),
    ((7, 8), (2, 3), (2, 3), ((1, 0), (1, 2)), (2, 1)),
    ((7, 6), (3, 3), (3, 2), ((0, 0), (2, 1)), (1, 2)),
    ((4, 5), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((5, 5), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 9), (2, 2), (4, 3), ((0, 0), (0, 0)), (1, 1)),
]
LAYOUTS = ("NHWC", "NCHW")


def image(d: Draw, layout: str, n: int, h: int, w: int, c: int) -> Array:
    return d.any(n, h, w, c) if layout == "NHWC" else d.any(n, c, h, w)


def counts(size: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> list[int]:
    return [(n + sum(p) - (k - 1) * q - 1) // s + 1
            for n, k, s, p, q in zip(size, window, strides, padding, dilation, strict=True)]


def convolutions(d: Draw) -> Iterator[tuple[Array, Array, Array, dict[str, Any]]]:
    """Image, kernel, an array of the result's shape, and geometry."""
    channels = [(2, 1, 1, 3), (2, 6, 1, 2), (2, 2, 2, 3), (1, 17, 1, 2), (2, 6, 1, 2), (0, 1, 2, 1), (2, 5, 2, 2)]
    for at, layout in product(range(len(WINDOWS)), LAYOUTS):
        size, window, strides, padding, dilation = WINDOWS[at]
        n, i, groups, o = channels[at % len(channels)]
        x = image(d, layout, n, *size, i * groups)
        kernel = d.any(*window, i, groups * o) if layout == "NHWC" else d.any(groups * o, i, *window)
        g = image(d, layout, n, *counts(size, window, strides, padding, dilation), groups * o)
        yield x, kernel, g, {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
                             "layout": layout, "size": size, "window": window}


def conv2d(d: Draw) -> Iterator[Case]:
    for x, kernel, _, how in convolutions(d):
        yield case((x, kernel), "conv2d", **how)


def conv2d_input_gradient(d: Draw) -> Iterator[Case]:
    for _, kernel, g, how in convolutions(d):
        yield case((g, kernel), "conv2d_input_gradient", **how)


def conv2d_kernel_gradient(d: Draw) -> Iterator[Case]:
    for x, _, g, how in convolutions(d):
        yield case((x, g), "conv2d_kernel_gradient", **{**how, "size": how["window"]})


def pools(d: Draw) -> Iterator[tuple[Array, Array, Array, dict[str, Any]]]:
    """Image, an array of the result's shape, positions within windows, and geometry."""
    for (size, window, strides, padding, dilation), layout in product(WINDOWS, LAYOUTS):
        how = {"window": window, "strides": strides, "padding": padding, "dilation": dilation, "layout": layout,
               "size": size}
        g = image(d, layout, 2, *counts(size, window, strides, padding, dilation), 3)
        index = d.rng.integers(0, window[0] * window[1], g.shape).astype(np.int32)
        yield image(d, layout, 2, *size, 3), g, index, how


def pool(operator: str) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for x, _, _, how in pools(d):
            yield case((x,), operator, **how)
            if dt.is_float(d.dtype):
                spotted = x.copy()
                spotted.flat[:: 3] = np.nan
                spotted.flat[1:: 5] = -np.inf
                yield case((spotted,), operator, **how)

    return cases


def pool2d_take(d: Draw) -> Iterator[Case]:
    for x, _, index, how in pools(d):
        yield case((x, index), "pool2d_take", **how)


def pool2d_put(d: Draw) -> Iterator[Case]:
    for _, g, index, how in pools(d):
        yield case((g, index), "pool2d_put", **how)


def sum_pool2d_gradient(d: Draw) -> Iterator[Case]:
    for _, g, _, how in pools(d):
        yield case((g,), "sum_pool2d_gradient", **how)


def filled(d: Draw) -> Iterator[Case]:
    for shape in [(2, 3), (), (0, 2)]:
        yield Case((), (shape, Number(3, d.dtype)))


def progression(d: Draw) -> Iterator[Case]:
    wide = dt.accumulator(d.dtype)
    for size in (0, 1, 7, 70_000):
        yield Case((), (Number(2, wide), Number(3, wide), size, d.dtype))


def drawing(*kinds: Any) -> Callable[[Draw], Iterator[Case]]:
    """Random operators: `kinds` are last attributes."""

    def cases(d: Draw) -> Iterator[Case]:
        if d.dtype != dt.float32:  # the attributes say all
            return
        key = np.array([0x0123456789ABCDEF, (5 << 32) + 7], np.uint64)
        for shape, kind in product([(3, 5), (), (0,), (7,), (40_000,)], kinds):
            yield Case((key,), (shape, kind))

    return cases


def transfer(d: Draw) -> Iterator[Case]:
    yield Case((d.any(3, 2),), ("cpu:0", "cpu:0"))


CASES: dict[str, Callable[[Draw], Iterator[Case]]] = {
    **dict.fromkeys(["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum",
                     "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
                     "logical_or", "logical_xor"], binary),
    **dict.fromkeys(["negative", "abs", "sign", "exp", "log", "tanh", "sigmoid", "sqrt", "sin", "cos", "relu",
                     "logical_not", "copy", "identity", "stop_gradient"], unary),
    "power": power, "clip": clip, "where": where, "cast": cast, "transfer": transfer,
    "take": take, "scatter": scatter, "one_hot": one_hot, "matmul": matmul,
    "reshape": reshape, "permute": permute, "broadcast_to": broadcast_to, "slice": slice_, "pad": pad, "flip": flip,
    "concat": concat, "update_slice": update_slice,
    "sum": sum_, **dict.fromkeys(["max", "min", "all", "any"], reduction),
    **dict.fromkeys(["argmax", "argmin"], position),
    **dict.fromkeys(["softmax", "log_softmax"], along),
    "conv2d": conv2d, "conv2d_input_gradient": conv2d_input_gradient, "conv2d_kernel_gradient": conv2d_kernel_gradient,
    "max_pool2d": pool("max_pool2d"), "max_pool2d_index": pool("max_pool2d_index"), "sum_pool2d": pool("sum_pool2d"),
    "pool2d_take": pool2d_take, "pool2d_put": pool2d_put, "sum_pool2d_gradient": sum_pool2d_gradient,
    "filled": filled, "progression": progression,
    "random_bits": drawing(dt.uint32, dt.uint64), "uniform": drawing(*dt.FLOATS),
    "bernoulli": drawing(0.0, 0.25, 1.0),
}  # fmt: skip

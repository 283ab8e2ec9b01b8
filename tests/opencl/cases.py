"""Small inputs for every operator that has a loop nest."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import (
    DType,
    bfloat16,
    boolean,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest
from nnc_core.symbol import Number
from nnc_core.type import TensorSpec

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An operator, its inputs and its attributes."""

    name: str
    inputs: tuple[Values, ...]
    attributes: tuple[Hashable, ...] = ()

    @property
    def output(self) -> TensorSpec:
        specs = [TensorSpec(x.shape, x.dtype) for x in self.inputs]
        return OPERATORS[self.name].infer(*specs, *self.attributes)

    @property
    def command(self) -> Command:
        inputs = tuple(Layout.packed(x.shape, x.dtype) for x in self.inputs)
        output = Layout.packed(self.output.shape, self.output.dtype)
        return Command(self.name, self.attributes, inputs, (output,))

    @property
    def expected(self) -> Values:
        reference = OPERATORS[self.name].reference
        with np.errstate(all="ignore"):
            return np.asarray(reference(*self.inputs, *self.attributes), self.output.dtype)

    def __str__(self) -> str:
        return f"{self.name}-{self.inputs[0].dtype if self.inputs else self.output.dtype}"


def nest_of(command: Command) -> LoopNest:
    op = OPERATORS[command.name]
    return op.nest(command) if op.nest else elementwise_nest(op.scalar, command)


def numbers(dtype: DType, *shape: int, low: float = -4, high: float = 4) -> Values:
    """Reproducible, in steps that every float dtype holds; unsigned ones are not negative."""
    steps = np.random.default_rng(len(shape)).integers(8 * low, 8 * high, shape)
    scaled = np.abs(steps) // 8 if dtype.kind == "u" else steps // 8 if dtype.kind == "i" else steps / 8
    return scaled.astype(dtype)


def elementwise_cases() -> Iterator[Case]:
    for dtype in (float32, int32):
        yield from arithmetic_cases(dtype)
    for dtype in (float64, float16, bfloat16):
        yield from (case for case in arithmetic_cases(dtype) if case.name in SAMPLE)
    for dtype in (float32, float64, float16, bfloat16):
        yield from function_cases(dtype)
    yield from logic_cases()
    yield from cast_cases()


SAMPLE = ("add", "multiply", "divide", "remainder", "maximum", "less", "where", "clip", "power")


def arithmetic_cases(dtype: DType) -> Iterator[Case]:
    a, b = numbers(dtype, 3, 5), numbers(dtype, 5)
    b[b == 0] = 3
    for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "maximum", "minimum",
                 "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):  # fmt: skip
        yield Case(name, (a, b))
    yield Case("power", (np.abs(a), np.abs(b)))
    if dtype.kind != "i":
        yield Case("divide", (a, b))
    for name in ("negative", "abs", "sign", "relu", "copy", "identity", "stop_gradient"):
        yield Case(name, (a,))
    yield Case("clip", (a, np.array(-1, dtype), np.array(2, dtype)))
    yield Case("where", (numbers(float32, 3, 1) > 0, a, b))


def function_cases(dtype: DType) -> Iterator[Case]:
    x = numbers(dtype, 4, 9)
    for name in ("exp", "tanh", "sigmoid", "sin", "cos"):
        yield Case(name, (x,))
    for name in ("log", "sqrt"):
        yield Case(name, (np.abs(x),))


def logic_cases() -> Iterator[Case]:
    a, b = numbers(float32, 3, 4) > 0, numbers(float32, 4) > 0
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield Case(name, (a, b))
    yield Case("logical_not", (a,))


def cast_cases() -> Iterator[Case]:
    for source in (float32, float16, bfloat16, int8, uint64, boolean, float64):
        for target in (float32, float64, float16, bfloat16, int32, uint8, int64, boolean):
            yield Case("cast", (numbers(source, 7, low=0),), (target,))
    special = np.array([1e-8, 65519, 65520, np.inf, -np.inf, np.nan, 6e-8], np.float32)
    yield Case("cast", (special,), (float16,))


def reduction_cases() -> Iterator[Case]:
    for dtype in (float32, int32, float64, float16, bfloat16):
        x = numbers(dtype, 3, 4, 5)
        for name in ("sum", "max", "min"):
            yield Case(name, (x,), ((1,), False))
        for name in ("argmax", "argmin"):
            yield Case(name, (x,), (2, True))
    yield Case("sum", (numbers(float32, 2, 3),), ((0, 1), True))
    yield Case("sum", (numbers(float32, 2, 0),), ((1,), False))
    yield Case("max", (numbers(float32, 0, 3),), ((1,), False))
    for name in ("all", "any"):
        yield Case(name, (numbers(float32, 3, 4) > -3,), ((0,), False))


def movement_cases() -> Iterator[Case]:
    for dtype in (float32, int32, bfloat16, boolean):
        x = numbers(dtype, 2, 3, 4)
        yield Case("reshape", (x,), ((4, 6),))
        yield Case("permute", (x,), ((2, 0, 1),))
        yield Case("broadcast_to", (numbers(dtype, 3, 1),), ((2, 3, 4),))
        yield Case("slice", (x,), ((0, 1, 0), (2, 3, 4), (1, 1, 2)))
        yield Case("pad", (x,), ((1, 0, 2), (0, 1, 0), (0, 1, 0), 1.0))
        yield Case("flip", (x,), ((0, 2),))
        yield Case("concat", (x, numbers(dtype, 2, 1, 4), x), (1,))
        yield Case("update_slice", (x, numbers(dtype, 1, 3, 2)), ((1, 0, 0), (1, 1, 2)))
        yield Case("take", (x, np.array([[0, -1], [2, 1]], np.int32)), (1,))
    yield Case("one_hot", (np.array([0, 3, 5, -1], np.int64),), (4, float32))


def contraction_cases() -> Iterator[Case]:
    for dtype in (float32, int32, float64, float16, bfloat16):
        yield Case("matmul", (numbers(dtype, 2, 3, 4), numbers(dtype, 4, 5)), (False, False))
        yield Case("matmul", (numbers(dtype, 4, 3), numbers(dtype, 5, 4)), (True, True))


def creation_cases() -> Iterator[Case]:
    for dtype, value in ((float32, 1.5), (int64, -(2**63)), (bfloat16, float("inf")), (boolean, True)):
        yield Case("filled", (), ((2, 3), Number(value, dtype)))
    for dtype, wide in ((float32, float32), (float16, float32), (int32, int32)):
        yield Case("progression", (), (Number(3, wide), Number(2, wide), 5, dtype))
    key = np.array([2**63 + 17, 2**40 + 3], np.uint64)
    yield from (Case("random_bits", (key,), ((3, 5), dtype)) for dtype in (uint32, uint64))


STRIDES, PADDING, DILATION, WINDOW = (2, 1), ((1, 0), (1, 2)), (1, 2), (3, 2)


def window_cases() -> Iterator[Case]:
    for layout in ("NHWC", "NCHW"):
        yield from convolution_cases(layout, float32)
        yield from pooling_cases(layout, float32)
    yield from convolution_cases("NHWC", bfloat16)
    yield from pooling_cases("NHWC", float64)


def image(dtype: DType, layout: str, n: int, h: int, w: int, c: int) -> Values:
    return numbers(dtype, *((n, h, w, c) if layout == "NHWC" else (n, c, h, w)))


def convolution_cases(layout: str, dtype: DType) -> Iterator[Case]:
    how = (STRIDES, PADDING, DILATION, 2, layout)
    x = image(dtype, layout, 2, 7, 6, 4)
    kernel = numbers(dtype, *((3, 2, 2, 6) if layout == "NHWC" else (6, 2, 3, 2)))
    forward = Case("conv2d", (x, kernel), how)
    yield forward
    g = numbers(dtype, *forward.output.shape)
    yield Case("conv2d_input_gradient", (g, kernel), ((7, 6), *how))
    yield Case("conv2d_kernel_gradient", (x, g), ((3, 2), *how))


def pooling_cases(layout: str, dtype: DType) -> Iterator[Case]:
    how = (WINDOW, STRIDES, PADDING, DILATION, layout)
    x = image(dtype, layout, 2, 7, 6, 3)
    for name in ("max_pool2d", "max_pool2d_index", "sum_pool2d"):
        yield Case(name, (x,), how)
    index = Case("max_pool2d_index", (x,), how).expected
    g = numbers(dtype, *index.shape)
    yield Case("pool2d_take", (x, index), how)
    yield Case("pool2d_put", (g, index), ((7, 6), *how))
    yield Case("sum_pool2d_gradient", (g,), ((7, 6), *how))


def all_cases() -> Sequence[Case]:
    return [
        *elementwise_cases(), *reduction_cases(), *movement_cases(), *contraction_cases(), *creation_cases(),
        *window_cases(),
    ]  # fmt: skip

"""Descriptors of the cuDNN of these tests: their attributes by number, and what is read of them."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from nnc_core.base.dtype import bfloat16, float16, float32, float64

OF_C: dict[int, Any] = {0: ctypes.c_void_p, 1: ctypes.c_int, 2: ctypes.c_bool, 3: ctypes.c_int64, 4: ctypes.c_float,
                        5: ctypes.c_double, 6: ctypes.c_void_p, 7: ctypes.c_int, 8: ctypes.c_int, 11: ctypes.c_int,
                        14: ctypes.c_int, 15: ctypes.c_void_p, 18: ctypes.c_int}
"""How C has an element of each kind."""
HANDLE, TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, POINTER, CONVOLUTION, MODE, NOTE, POINTWISE, DESCRIPTOR, REDUCES = OF_C
DTYPES = {0: float32, 1: float64, 2: float16, 9: bfloat16}


class Attribute(NamedTuple):
    """Kinds of its elements, how many of them there may be, and whether it must be set."""

    kinds: tuple[int, ...]
    most: int = 1
    required: bool = True


def _convolving(first: int) -> dict[int, Attribute]:
    """Alpha, beta, the convolution, and three tensors."""
    number, other = Attribute((FLOAT, DOUBLE)), Attribute((DESCRIPTOR,))
    return {first: number, first + 1: number, **{first + n: other for n in range(2, 6)}}


TENSOR, SLIDING, POINTWISE_OF, POINTWISE_STEP, ATTENTION, GRADIENTS, BAND = 17, 1, 0, 13, 41, 43, 44
PRODUCT_OF, PRODUCT, TOTAL_OF, TOTAL, RESHAPE = 18, 19, 21, 22, 31
MADE = {POINTWISE_STEP: 753, PRODUCT: 1522, TOTAL: 1611, RESHAPE: 2201, BAND: 3006}
"""The attribute that names the result of each kind of operation."""
ENGINE, CONFIGURATION, HEURISTICS, PLAN, GRAPH, PACK = 2, 3, 4, 5, 15, 16
MOST_AXES = 8
ATTRIBUTES: dict[int, dict[int, Attribute]] = {
    POINTWISE_OF: {0: Attribute((POINTWISE,)), 1: Attribute((TYPE,)), 3: Attribute((FLOAT, DOUBLE), 1, False)},
    SLIDING: {100: Attribute((TYPE,)), 101: Attribute((CONVOLUTION,)), 106: Attribute((INT64,)),
              **{n: Attribute((INT64,), MOST_AXES) for n in (102, 103, 104, 105)}},
    ENGINE: {}, CONFIGURATION: {},
    HEURISTICS: {200: Attribute((MODE,)), 201: Attribute((DESCRIPTOR,))},
    PLAN: {400: Attribute((HANDLE,)), 401: Attribute((DESCRIPTOR,))},
    10: _convolving(700), 12: _convolving(706), 11: _convolving(712),
    POINTWISE_STEP: {750: Attribute((DESCRIPTOR,)), 751: Attribute((DESCRIPTOR,)),
                     752: Attribute((DESCRIPTOR,), 1, False), 753: Attribute((DESCRIPTOR,))},
    GRAPH: {800: Attribute((HANDLE,), 1, False), 801: Attribute((DESCRIPTOR,), 99)},
    PACK: {1000: Attribute((INT64,), 99), 1001: Attribute((POINTER,), 99), 1003: Attribute((POINTER,))},
    TENSOR: {906: Attribute((INT64,)), 901: Attribute((TYPE,)), 900: Attribute((INT64,)),
             902: Attribute((INT64,), MOST_AXES), 903: Attribute((INT64,), MOST_AXES),
             907: Attribute((BOOLEAN,), 1, False), 908: Attribute((BOOLEAN,), 1, False)},
    ATTENTION: {**{n: Attribute((DESCRIPTOR,), 1, n < 2804) for n in (*range(2800, 2806), 2811)},
                2812: Attribute((INT64,), 1, False), 2813: Attribute((INT64,), 1, False)},
    GRADIENTS: {**{n: Attribute((DESCRIPTOR,), 1, n < 2867) for n in (*range(2851, 2857), *range(2859, 2863), 2867)},
                2868: Attribute((INT64,), 1, False), 2869: Attribute((INT64,), 1, False)},
    PRODUCT_OF: {1500: Attribute((TYPE,))}, PRODUCT: {n: Attribute((DESCRIPTOR,)) for n in range(1520, 1524)},
    TOTAL_OF: {1600: Attribute((REDUCES,)), 1601: Attribute((TYPE,))},
    TOTAL: {n: Attribute((DESCRIPTOR,)) for n in range(1610, 1613)},
    RESHAPE: {n: Attribute((DESCRIPTOR,)) for n in (2200, 2201)},
    BAND: {3000: Attribute((DESCRIPTOR,)), 3005: Attribute((DESCRIPTOR,)), 3006: Attribute((DESCRIPTOR,)),
           3007: Attribute((POINTWISE,))}}
"""Attributes of each kind of descriptor."""
WAYS = {10: ("conv", 700), 12: ("conv_input_gradient", 706), 11: ("conv_kernel_gradient", 712)}


class Described:
    """A descriptor, and what was set."""

    def __init__(self, kind: int) -> None:
        self.kind, self.values, self.finalized = kind, dict[int, list[Any]](), False
        self.about: Any = None
        """The engine of a configuration, the results of heuristics."""

    def one(self, attribute: int) -> Any:
        return self.values[attribute][0]


def name_of(step: Described) -> str:
    if step.kind == POINTWISE_STEP:
        return {0: "add", 1: "multiply", 9: "subtract", 13: "exp", 100: "relu"}[step.one(750).one(0)]
    names = {ATTENTION: "attention", GRADIENTS: "gradients", PRODUCT: "product", TOTAL: "total", RESHAPE: "reshape",
             BAND: "band"}
    return names.get(step.kind) or WAYS[step.kind][0]


def tensors_of(step: Described) -> list[Described]:
    """Those of a graph within it as well."""
    found = [value for values in step.values.values() for value in values if isinstance(value, Described)]
    steps = [one for graph in found if graph.kind == GRAPH for one in graph.values[801]]
    inner = [tensor for one in steps for tensor in tensors_of(one)]
    return [*[value for value in found if value.kind == TENSOR], *inner]


def shape_of(tensor: Described) -> tuple[int, ...]:
    return tuple(tensor.values[902])


def extent_of(tensor: Described) -> int:
    """Bytes from the first element to the end of the last."""
    last = sum([(n - 1) * step for n, step in zip(tensor.values[902], tensor.values[903], strict=True)])
    return int((last + 1) * DTYPES[tensor.one(901)].itemsize)


def operands_of(step: Described) -> tuple[Described, Described, Described, Described]:
    """The convolution, images, the kernel and results."""
    first = WAYS[step.kind][1]
    of, x, w, y = {10: (702, 704, 703, 705), 12: (708, 710, 709, 711), 11: (714, 716, 715, 717)}[step.kind]
    assert first < of
    return step.one(of), step.one(x), step.one(w), step.one(y)


def result_of(step: Described) -> Described:
    if step.kind in MADE:
        return step.one(MADE[step.kind])  # type: ignore[no-any-return]
    _, x, w, y = operands_of(step)
    return {10: y, 12: x, 11: w}[step.kind]

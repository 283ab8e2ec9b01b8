"""Products of 8-bit integers, added as int32: what quantised networks compute."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.operator import window_reference
from nnc_core.operator.convolution import conv_nest
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.linear import matmul_nest, matmul_reference
from nnc_core.shape import integer_products as rule
from nnc_core.shape.window import Padding, Sizes


def _exact(x: Any) -> Any:
    """Numbers whose products and sums have no rounding, as many as fit into memory."""
    return np.asarray(x, np.float64)


def _wrapped(sums: Any) -> Any:
    return sums.astype(np.int64).astype(rule.SUM)


def _matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    return _wrapped(matmul_reference(_exact(a), _exact(b), transpose_a, transpose_b))


def _conv(x: Any, kernel: Any, *how: Any) -> Any:
    return _wrapped(window_reference.conv(_exact(x), _exact(kernel), *how))


class IntegerProducts(Base[V], Generic[V]):
    """Each factor int8 or uint8; sums wrap around as int32."""

    @op(infer=rule.matmul_integer, reference=_matmul, nest=matmul_nest, differentiable=False, exact=True)
    def matmul_integer(self, a: V, b: V, *, transpose_a: bool = False, transpose_b: bool = False) -> V:
        """`matmul` of int8 or uint8, each factor one of them, added as int32, which wraps around."""
        ...

    @op(infer=rule.conv_integer, reference=_conv, nest=conv_nest, differentiable=False, exact=True)
    def conv_integer(self, x: V, kernel: V, *, strides: Sizes, padding: Padding, dilation: Sizes, groups: int,
                     layout: str) -> V:
        """`conv` of int8 or uint8, each factor one of them, added as int32, which wraps around; padding is 0."""
        ...

"""Halves computed in float32; three ways to a NumPy reference: a function of NumPy, an expansion, the nest itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator
from nnc_core.base.layout import Layout
from nnc_core.codegen import interpret
from nnc_core.codegen.numpy_expansions import evaluate
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.loops import elementwise_nest

Reference = Callable[..., Any]


def in_wide(scalar: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """A scalar expression in which halves are float32 from end to end, rounded once."""

    def expression(*arguments: Any) -> Any:
        dtype = arguments[0].dtype
        wide = accumulator(dtype)
        return scalar(*(a.cast(wide) if isinstance(a, Scalar) else a for a in arguments)).cast(dtype)

    return expression


def widened(f: Callable[..., Any]) -> Reference:
    """f of arrays of one dtype, halves computed in float32; the result has their dtype."""

    def reference(*arrays: Any) -> Any:
        dtype = np.asarray(arrays[0]).dtype
        wide = accumulator(dtype)
        return np.asarray(f(*(np.asarray(x).astype(wide, copy=False) for x in arrays))).astype(dtype, copy=False)

    return reference


def expanded(function: str) -> Reference:
    """A function that NumPy does not have, by its expansion in scalar instructions.

    Kernels run the same instructions; what holds both to the truth are tests with more digits.
    """
    return partial(evaluate, function)


def by_nest(name: str, scalar: Callable[..., Any]) -> Reference:
    """The scalar expression of an operator, interpreted.  Arguments are arrays of one dtype, then attributes."""

    def reference(*arguments: Any) -> Any:
        arrays = [np.asarray(x, order="C") for x in arguments if isinstance(x, (np.ndarray, np.generic))]
        attributes = tuple(arguments[len(arrays) :])
        out = np.empty(np.broadcast_shapes(*(x.shape for x in arrays)), arrays[0].dtype)
        layouts = [Layout.packed(x.shape, x.dtype) for x in (*arrays, out)]
        nest = elementwise_nest(scalar, Command(name, attributes, tuple(layouts[:-1]), (layouts[-1],)))
        interpret(nest, [x.reshape(-1).view(np.uint8) for x in (*arrays, out)])
        return out

    return reference

"""Eager calls that NumPy is slow at where arrays are large: the commands of graphs run them, as machine code.

NumPy computes with halves one by one, and goes through several arrays where machine code keeps what is between in
registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.operator.products.arrange import PROBLEMS
from nnc_core.operator.steps.fourier import TRANSFORMS
from nnc_core.shape.window import has_channels_last
from nnc_cpu.elementwise import FUNCTIONS, UFUNCS, converts_as_numpy_does
from nnc_cpu.guards import PLAIN, Eager

LARGE = 1 << 15
"""Elements from which on the command of a graph is worth its launch: threads may share it."""
MANY_HALVES = 1 << 13
MANY_MULTIPLIED = 1 << 12
FEWEST_ROWS, FEW_ROWS, CACHED = 2, 64, 1 << 22
"""Rows for which libraries take up to four times the time that reading a matrix takes, and bytes of one that no cache
of a core holds."""
MANY_PIXELS = 1 << 12
"""Elements of images, or of a kernel."""
MANY_SOUGHT = 1 << 13
MANY_TRANSFORMED = 1 << 13
HALVES = frozenset({dt.float16.num, dt.bfloat16.num})


class LeavesLarge:
    """A kernel that leaves some calls to the command of a graph."""

    def __init__(self, kernel: Eager, leaves: Callable[..., bool]) -> None:
        self.kernel, self.leaves = kernel, leaves

    def __call__(self, *arguments: Any) -> Any:
        return NotImplemented if self.leaves(*arguments) else self.kernel(*arguments)

    def for_layouts(self, arrays: Sequence[Any], attributes: tuple[Any, ...]) -> Eager:
        """The kernel for arrays that lie as these do."""
        if self.leaves(*arrays, *attributes):
            return self
        prepared: Any = getattr(self.kernel, "for_layouts", None)
        return self.kernel if prepared is None else prepared(arrays, attributes)


class LeavesHalves(LeavesLarge):
    """One that leaves halves alone."""

    def for_dtypes(self, dtypes: Any) -> Eager:
        """The kernel for arrays of these dtypes."""
        while dtypes.__class__ is tuple and not self.is_slow(dtypes[-1]):
            dtypes = dtypes[0]
        return self.kernel if isinstance(dtypes, np.dtype) and not self.is_slow(dtypes) else self

    @staticmethod
    def is_slow(dtype: np.dtype[Any]) -> bool:
        """Tell whether NumPy computes with elements one by one."""
        return dtype.num in HALVES


class LeavesProducts(LeavesHalves):
    """A product, for which NumPy has a library unless elements are halves or integers, or most of the time is spent on
    reading the second factor."""

    @staticmethod
    def is_slow(dtype: np.dtype[Any]) -> bool:
        return dtype.num in HALVES or dtype.kind in "iu"

    def for_dtypes(self, dtypes: Any) -> Eager:
        found = super().for_dtypes(dtypes)
        return found if found is self else self.unless_large

    def unless_large(self, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
        if b.nbytes >= CACHED and is_read_once(a, b, transpose_a, transpose_b):
            return NotImplemented
        return self.kernel(a, b, transpose_a, transpose_b)


class LeavesWhole(LeavesLarge):
    """One of an operator that is made up of others, which are quicker one by one."""

    def claims(self, *arguments: Any) -> bool:
        """Tell whether it runs the operator as a whole."""
        return not self.leaves(*arguments)


def are_many_halves(*arguments: Any) -> bool:
    return any([x.__class__ is np.ndarray and x.size >= MANY_HALVES and x.dtype.num in HALVES for x in arguments])


def are_many_multiplied(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> bool:
    """Tell whether these are matrices of halves or integers, not both of them small, or some rows and a large one."""
    if any([x.__class__ is np.ndarray and x.size >= MANY_MULTIPLIED and LeavesProducts.is_slow(x.dtype)
            for x in (a, b)]):
        return True
    return b.__class__ is np.ndarray and b.nbytes >= CACHED and is_read_once(a, b, transpose_a, transpose_b)


def is_read_once(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> bool:
    """Tell whether there are so few rows that reading a matrix of contiguous rows takes most of the time."""
    return (a.ndim == b.ndim == 2 and FEWEST_ROWS <= a.shape[1 if transpose_a else 0] <= FEW_ROWS
            and not transpose_b and b.dtype.kind == "f" and bool(b.flags.c_contiguous))


def are_images(*arguments: Any) -> bool:
    """Tell whether a convolution has machine code by itself, which copies no windows: graphs turn images with channels
    first."""
    return has_channels_last(arguments[-1]) and any([
        x.__class__ is np.ndarray and x.size >= MANY_PIXELS and x.dtype.kind != "c" for x in arguments[:2]])


def are_many(key: Any, shape: tuple[int, ...], *more: Any) -> bool:
    return prod(shape) >= LARGE


def is_widened(x: Any, axis: tuple[int, ...], keepdims: bool) -> bool:
    """Tell whether NumPy makes a copy of an array first: of halves and integers, or to go along the memory."""
    return x.size >= LARGE and (x.dtype.kind != "f" or x.dtype.num >= PLAIN or not x.flags.c_contiguous)


def is_large_in_classes(indices: Any, depth: int, dtype: dt.DType) -> bool:
    return bool(indices.size * depth >= LARGE)


def is_bounded(x: Any, dtype: dt.DType) -> bool:
    """Tell whether NumPy does not convert as operators do, or one by one."""
    return x.size >= LARGE and (x.dtype.num in HALVES or not converts_as_numpy_does(x.dtype, dtype))


def are_many_sought(x: Any, values: Any, right: bool) -> bool:
    return values.__class__ is np.ndarray and values.size >= MANY_SOUGHT


def are_many_transformed(x: Any, *more: Any) -> bool:
    return bool(x.size >= MANY_TRANSFORMED)


LEFT: Mapping[str, tuple[type[LeavesLarge], Callable[..., bool]]] = {
    **dict.fromkeys(PROBLEMS, (LeavesLarge, are_images)), "matmul": (LeavesProducts, are_many_multiplied),
    **dict.fromkeys((*UFUNCS, *FUNCTIONS, "clip", "relu", "max", "min"), (LeavesHalves, are_many_halves)),
    "random_bits": (LeavesLarge, are_many),
    **dict.fromkeys(("uniform", "bernoulli", "open_uniform"), (LeavesWhole, are_many)),
    **dict.fromkeys(TRANSFORMS, (LeavesLarge, are_many_transformed)),
    "sum": (LeavesLarge, is_widened), "mean": (LeavesWhole, are_many_halves), "cast": (LeavesLarge, is_bounded),
    "one_hot": (LeavesLarge, is_large_in_classes), "searchsorted": (LeavesLarge, are_many_sought),
}
"""Who leaves what, by the names of operators."""

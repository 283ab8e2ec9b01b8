"""Operators whose results have as many rows as the data say, and what belongs to them.

They run on the host, by their references: nothing downstream can be planned before they have.  The attribute `size`
is a number where that is known, and a symbolic size where it is not.
"""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base.dtype import is_float
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.flops import per_input, sorting
from nnc_core.shape import selection as rule
from nnc_core.type import DimLike


def _counted(rows: Any, size: DimLike) -> Any:
    if isinstance(size, int) and len(rows) != size:
        raise ShapeError(f"{len(rows)} elements were found where there should be {size}")
    return rows.astype(np.int64)


def _nonzero(x: Any, size: DimLike) -> Any:
    """In C order."""
    return _counted(np.argwhere(x), size)


def _groups(x: Any) -> tuple[Any, Any]:
    """The order that sorts the flattened x, equal elements as they come, and where in it a new value begins.

    NaN is equal to nothing, 0.0 and -0.0 are equal.
    """
    flat = np.asarray(x).reshape(-1)
    if is_float(flat.dtype) and flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    begins = np.ones(len(flat), np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    return order, begins


def _unique_index(x: Any, size: DimLike) -> Any:
    order, begins = _groups(x)
    return _counted(order[begins], size)


def _unique_counts(x: Any, size: DimLike) -> Any:
    _, begins = _groups(x)
    return _counted(np.diff(np.append(np.flatnonzero(begins), len(begins))), size)


def _unique_inverse(x: Any) -> Any:
    order, begins = _groups(x)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return numbers.reshape(np.shape(x))


def _bin_range(x: Any, size: DimLike) -> Any:
    if len(x) and x.min() < 0:
        raise AttributeValueError(f"{x.min()} is negative, and so no number of a bin", operator="bin_range")
    return _counted(np.arange(int(x.max()) + 1 if len(x) else 0), size)


class Selection(Base[V], Generic[V]):
    @op(infer=rule.nonzero, reference=_nonzero, host=True, data_dependent=True, exact=True,
        differentiable=False, flops=per_input(1))
    def nonzero(self, x: V, *, size: DimLike) -> V:
        """int64[size, ndim]: the indices of the elements that are not zero, in C order."""
        ...

    @op(infer=rule.distinct, reference=_unique_index, host=True, data_dependent=True, exact=True,
        differentiable=False, flops=sorting)
    def unique_index(self, x: V, *, size: DimLike) -> V:
        """int64[size]: where each distinct value occurs first in the flattened x, by rising value."""
        ...

    @op(infer=rule.distinct, reference=_unique_counts, host=True, data_dependent=True, exact=True,
        differentiable=False, flops=sorting)
    def unique_counts(self, x: V, *, size: DimLike) -> V:
        """int64[size]: how often each distinct value occurs, by rising value."""
        ...

    @op(infer=rule.bin_range, reference=_bin_range, host=True, data_dependent=True, exact=True,
        differentiable=False, flops=per_input(1))
    def bin_range(self, x: V, *, size: DimLike) -> V:
        """int64[size]: 0, 1, ... up to the largest element of x, integers none of which is negative."""
        ...

    @op(infer=rule.inverse, reference=_unique_inverse, host=True, exact=True, differentiable=False, flops=sorting)
    def unique_inverse(self, x: V) -> V:
        """For each element the number of its value among the distinct ones, by rising value."""
        ...

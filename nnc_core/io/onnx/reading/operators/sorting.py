"""The largest elements, and distinct ones."""

from __future__ import annotations

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor


def _top(x: Tensor, k: int, axis: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    found = nnc.top_k(x, k, axis=axis, largest=largest, sorted=sorted)
    return found[0], nnc.astype(found[1], np.int64)


@operator("TopK")
def top_k_first(x: Tensor, *, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    return _top(x, k, axis, True, True)


@operator("TopK", since=10)
def top_k(x: Tensor, k: Host, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    return _top(x, int(k.reshape(())), axis, bool(largest), bool(sorted))


@operator("Unique")
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, ...]:
    """Distinct elements, or slices along an axis, with where each is first, the number of each element's, counts."""
    values, first, inverse, counts = nnc.unique(x, return_index=True, return_inverse=True, return_counts=True,
                                                axis=axis)
    inverse = nnc.reshape(inverse, (-1,))
    if not sorted:
        order = nnc.argsort(first)
        values = nnc.take(values, order, axis=0 if axis is None else axis)
        inverse = nnc.take(nnc.argsort(order), inverse, axis=0)
        first, counts = nnc.take(first, order, axis=0), nnc.take(counts, order, axis=0)
    return values, *(nnc.astype(part, np.int64) for part in (first, inverse, counts))

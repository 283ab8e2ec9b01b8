"""Data as rows: arrays, or structures of arrays, with one row for each example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nnc_core.base.errors import DataError
from nnc_core.functions.creation import asarray
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten, tree_map


def uploaded(data: Any, device: Any = None) -> Any:
    """Host arrays and nested lists as tensors on a device; tuples and dicts are structures of such."""
    if isinstance(data, list):
        return asarray(data, device=device)

    def leaf(x: Any) -> Any:
        if isinstance(x, Tensor):
            return x if device is None else x.to(device)
        return asarray(x, device=device) if isinstance(x, (np.ndarray, np.generic)) else x

    return tree_map(leaf, data)


def count_rows(*data: Any) -> int:
    """The number of rows of all arrays.  DataError if they differ, or there is none."""
    specs = [x.spec for x in flatten(list(data))[0] if isinstance(x, Tensor)]
    counts = {s.shape[0] if s.shape else None for s in specs}
    if len(counts) != 1 or None in counts or counts == {0}:
        raise DataError(f"the arrays are {', '.join(map(str, specs)) or 'none'}, expected as many rows in each",
                        hint="the first axis counts the examples")
    return int(counts.pop())  # type: ignore[arg-type]


def in_parts(data: Any, count: int, size: int | None) -> Iterator[Any]:
    """The rows in parts of `size`, of which the last may be shorter; all at once for None."""
    if size is None or size >= count:
        yield data
        return
    for start in range(0, count, size):
        yield tree_map(lambda x, a=start: x[a : a + size], data)


def call(network: Any, inputs: Any) -> Any:
    """network(*inputs) of a tuple of inputs, else network(inputs)."""
    return network(*inputs) if isinstance(inputs, tuple) else network(inputs)

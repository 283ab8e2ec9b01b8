"""einops on tensors: `einops.rearrange(x, "b h w c -> b (h w) c")`, `reduce`, `repeat`, `pack`, `einsum`.

einops knows libraries by subclasses of a class of its own, which it asks for by name once they have been imported; ours
is made when it is asked for, so that nnc does not need einops.  `einops.array_api` knows tensors without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import is_float
from nnc_core.base.missing import require
from nnc_core.functions import public
from nnc_core.values.tensor import Tensor

_registered: list[type] = []


class _Operations:
    """The operations that einops asks a library for, beyond the methods that tensors have."""

    framework_name = __name__

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Tensor:
        return public.asarray(x)

    def to_numpy(self, x: Tensor) -> np.ndarray[Any, Any]:
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return public.arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        return public.stack(tensors)

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return public.tile(x, repeats)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return public.concat(tensors, axis=axis)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return public.expand_dims(x, axis=new_position)

    def is_float_type(self, x: Tensor) -> bool:
        return is_float(x.dtype)

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return public.einsum(pattern, *x)


def register() -> None:
    """Make tensors known to einops; once is enough."""
    if not _registered:
        backends = require("einops._backends", purpose="this backend of einops", extra="clients")
        _registered.append(type("Backend", (_Operations, backends.AbstractBackend), {}))

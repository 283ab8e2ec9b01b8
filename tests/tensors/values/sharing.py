"""Devices that share memory with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core.stacks import stack_for

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def shares_memory(device: str) -> bool:
    return stack_for(device).device.adopt(np.ones(1)) is not None


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a, "rows backwards": lambda a: a[::-1], "all backwards": lambda a: a[::-1, ::-1],
    "columns": lambda a: a[:, 1:], "every second": lambda a: a[:, ::2], "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[0], (4, 3)), "one": lambda a: a[1, 2, ...], "empty": lambda a: a[:0],
    "backwards and transposed": lambda a: a[::-1].T, "fortran": np.asfortranarray,
}  # fmt: skip

"""Cases that must be found to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnc_core as nnc

ON_HOST = frozenset({"array", "wrong"})
CASES: dict[str, Callable[..., Any]] = {
    "array": lambda x: np.asarray(x), "detour": lambda x: x.__array_namespace__().asarray(np.asarray(x)),
    "wrong": lambda x: x + 1.0 if isinstance(x, nnc.Tensor) else x,
}  # fmt: skip


def data() -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by the names that cases take."""
    return {"x": np.array([1.0, 2.0])}

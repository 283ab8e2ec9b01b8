"""Arrays to index, and keys on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.conftest import devices

each_device = pytest.mark.parametrize("where", devices())


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def on_device(key: Any, which: int, masks: bool = True) -> Any:
    """Every second array, or every other one, as a tensor; without masks where a trace has to know their counts."""
    return tuple(nnc.asarray(k) if isinstance(k, np.ndarray) and k.ndim and i % 2 == which
                 and (masks or k.dtype != np.bool_) else k for i, k in enumerate(key))

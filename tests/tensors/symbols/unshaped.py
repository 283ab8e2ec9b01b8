"""Shapes that are assigned in turn, and values compared."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc

Host = np.ndarray[Any, Any]
SHAPES = ((2, 4), (6, 4), (3, 4, 4), (4,), (2, 4))


def host(*shape: int) -> Host:
    return np.linspace(-1.0, 1.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def value(t: nnc.Tensor) -> Host:
    nnc.eval_arr([t])
    return nnc.unpack_arr(t)

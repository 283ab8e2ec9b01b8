"""Arrays whose counted parts have sizes of their own."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc

HOST = np.array([[3.0, 0.0, -1.0], [0.0, 3.0, 5.0]], np.float32)
OTHER = "strict-nofloat64:0"


def arrays(*tensors: nnc.Tensor) -> list[np.ndarray]:
    return [t.numpy() for t in tensors]

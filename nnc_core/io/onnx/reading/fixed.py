"""Inputs that Python must know: compiled code is made for their values, so they can be compared and hashed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.io.onnx.reading.lanes import Host


@dataclass(frozen=True)
class Fixed:
    """An array by its value."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | tuple[Any, ...]

    @staticmethod
    def of(array: Host) -> Fixed:
        """The value of an array, texts as they are."""
        data = tuple(array.flat) if array.dtype == object else array.tobytes()
        return Fixed(array.dtype.name, array.shape, data)

    def array(self) -> Host:
        """The array again."""
        if isinstance(self.data, tuple):
            array = np.empty(len(self.data), object)
            array[:] = self.data
        else:
            array = np.frombuffer(self.data, np.dtype(self.dtype))
        return array.reshape(self.shape)

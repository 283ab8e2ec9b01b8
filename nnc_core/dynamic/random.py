"""Generators: a seed and a count of draws, kept in a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.composition import stack_for
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.dispatch import F, host_value
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.value import Value
from nnc_core.type import admit_numpy, default_float


class Generator:
    """The same seed gives the same bits on every device and in every mode; in compiled code each call draws anew."""

    def __init__(self, seed: int = 0, device: Any = None) -> None:
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise AttributeValueError(f"seed {seed!r} is no integer")
        key = np.array([seed.__index__() % 2**64, 0], np.uint64)
        stack = stack_for(device) if device is not None else None
        self.key = Cell(Tensor(host_value(key, stack=stack)), "random key")

    def _next_key(self) -> Value:
        key = self.key.read()._value
        self.key.write(Tensor(F.add(key, _one(key))))
        return key

    def bits(self, shape: int | Sequence[int] = (), dtype: Any = "uint32") -> Tensor:
        """Random uint32 or uint64."""
        return Tensor(F.random_bits(self._next_key(), shape=_shape(shape), dtype=admit_numpy(dtype)))

    def uniform(self, shape: int | Sequence[int] = (), low: float = 0.0, high: float = 1.0,
                dtype: Any = None) -> Tensor:
        """Floats in [low, high)."""
        u = F.uniform(self._next_key(), shape=_shape(shape), dtype=_dtype(dtype))
        return Tensor(u if (low, high) == (0.0, 1.0) else F.add(F.multiply(u, high - low), low))

    def normal(self, shape: int | Sequence[int] = (), mean: float = 0.0, deviation: float = 1.0,
               dtype: Any = None) -> Tensor:
        """Normally distributed floats."""
        z = F.normal(self._next_key(), shape=_shape(shape), dtype=_dtype(dtype))
        return Tensor(z if (mean, deviation) == (0.0, 1.0) else F.add(F.multiply(z, deviation), mean))

    def bernoulli(self, probability: float, shape: int | Sequence[int] = ()) -> Tensor:
        """Booleans that are true with the given probability."""
        return Tensor(F.bernoulli(self._next_key(), shape=_shape(shape), probability=float(probability)))


def _one(key: Value) -> Value:
    """[0, 1]: added to a key it gives the next draw's."""
    return F.pad(F.full_like(F.slice(key, start=(0,), stop=(1,), step=(1,)), 1), low=(1,), high=(0,), interior=(0,))


def _shape(shape: int | Sequence[int]) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _dtype(dtype: Any) -> Any:
    return default_float() if dtype is None else admit_numpy(dtype)


_default: list[Generator] = []


def default_generator() -> Generator:
    """The generator that is used where none is given."""
    if not _default:
        _default.append(Generator(0))
    return _default[0]


def manual_seed(seed: int) -> Generator:
    """Start the default generator again."""
    _default[:] = [Generator(seed)]
    return _default[0]

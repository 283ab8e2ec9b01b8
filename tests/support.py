"""What tests of many folders begin and end with: random float32 numbers, and results compared with what is expected."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc

Host = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Host:
    """Normally distributed float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def drawn(*shape: int, seed: int = 0) -> nnc.Tensor:
    """The same on the current device."""
    return nnc.asarray(numbers(*shape, seed=seed))


def near(found: nnc.Tensor, expected: Any) -> None:
    """Of the same shape, and equal but for the order of a few roundings in float32."""
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=5e-6)

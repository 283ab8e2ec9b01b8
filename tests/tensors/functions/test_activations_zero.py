"""A setting of -0.0 is another one than 0.0, whichever a function was called with first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.support import eagerly, lazily

SETTINGS: dict[str, Callable[[nnc.Tensor, float], nnc.Tensor]] = {
    "leaky_relu": lambda x, zero: nnc.leaky_relu(x, slope=zero),
    "elu": lambda x, zero: nnc.elu(x, alpha=zero),
    "celu": lambda x, zero: x * nnc.celu(x, alpha=1.0) * zero,
    "hardtanh": lambda x, zero: nnc.hardtanh(x, low=zero, high=1.0),
    "clip": lambda x, zero: nnc.clip(x, zero, 1.0),
    "pad": lambda x, zero: nnc.pad(x, (1, 0), constant_values=zero)[:1],
    "full": lambda x, zero: nnc.full(1, zero),
}


@pytest.mark.parametrize("way", [eagerly, lazily, nnc.jit])
@pytest.mark.parametrize("name", SETTINGS)
def test_zeros_are_told_apart(device: Any, name: str, way: Callable[..., Any]) -> None:
    with nnc.use_device(device):
        x = nnc.asarray([-1.0])

        def is_negative(zero: float) -> bool:
            return bool(np.signbit(np.asarray(way(lambda x: SETTINGS[name](x, zero))(x)))[0])

        found = [is_negative(zero) for zero in (0.0, -0.0, 0.0, -0.0)]
        assert found[0] != found[1] and found[:2] == found[2:]

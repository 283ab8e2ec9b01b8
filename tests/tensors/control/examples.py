"""Random examples for functions that are batched, and results held to other ways."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc


def numbers(*shape: int, seed: int = 0) -> nnc.Tensor:
    return nnc.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32))


def near(found: Any, wanted: Any) -> None:
    a, b = (np.asarray(x.numpy() if isinstance(x, nnc.Tensor) else x) for x in (found, wanted))
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)

"""Convolutions with channels first, which are run with channels last: the bits of the operators by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_opencl.device import OpenCLDevice
from tests.cpu.products.running import same_bits


def convolved(x: Any, kernel: Any) -> Any:
    return nnc.conv2d(x, kernel, strides=2, padding="SAME", layout="NCHW", groups=x.shape[1] // kernel.shape[1])


def gradients(x: Any, kernel: Any) -> Any:
    return nnc.grad(lambda x, kernel: nnc.sum(convolved(x, kernel) ** 2), argnums=(0, 1))(x, kernel)


@pytest.mark.parametrize("filters", [(40, 24), (24, 1)], ids=["whole", "depthwise"])
def test_the_same_bits_in_a_graph_and_alone(device: OpenCLDevice, filters: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 24, 17, 18), (*filters, 3, 3))]
    x, kernel = (nnc.asarray(array, device=device.spec.id) for array in arrays)
    on_host = [nnc.asarray(array, device="cpu:0") for array in arrays]
    with config.using(deterministic=True):
        compiled = nnc.jit(convolved)
        alone, within = convolved(x, kernel), compiled(x, kernel)
        assert same_bits(alone.numpy(), within.numpy())
        slopes = [[y.numpy() for y in make(x, kernel)] for make in (gradients, nnc.jit(gradients))]
    np.testing.assert_allclose(alone.numpy(), convolved(*on_host).numpy(), rtol=1e-4, atol=1e-4)
    for ours, jitted, theirs in zip(*slopes, gradients(*on_host), strict=True):
        assert same_bits(ours, jitted)
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-3)

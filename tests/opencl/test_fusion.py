"""Fused commands under `config.deterministic`: the same bits as their operators one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.stacks import stack_for
from nnc_opencl.device import OpenCLDevice
from tests.engine.fused_pairs import assert_fused_as_apart

FEW = settings(max_examples=10 if settings().max_examples < 100 else 300)


def bits_of(function: Any, *, fusion: bool) -> tuple[bytes, str]:
    """Results over many numbers, and what ran."""
    x = nnc.asarray(np.linspace(-3, 3, 10_007).astype(np.float32), device="opencl:0")
    with config.using(fusion=fusion, deterministic=True):
        compiled = nnc.jit(function)
        return compiled(x).numpy().tobytes(), compiled.explain(x)


def test_functions_of_the_drivers_library_run_apart(device: OpenCLDevice) -> None:
    """sin and cos of one number would become one call, which gives other bits."""
    wave = nnc.grad(lambda x: nnc.sum(nnc.tanh(nnc.sin(nnc.exp(x)))))
    fused, text = bits_of(wave, fusion=True)
    assert fused == bits_of(wave, fusion=False)[0]
    assert "fused(" in text
    assert all("sin" not in line and "cos" not in line for line in text.splitlines() if "fused(" in line)


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@FEW
@given(seed=st.integers(0, 2**32))
def test_random_graphs_give_the_same_bits(_opened: Any, seed: int) -> None:
    if _opened[0] is None:
        pytest.skip(_opened[1])
    assert_fused_as_apart(seed, stack_for("opencl:0"))

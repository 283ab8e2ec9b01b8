"""Sums over axes on both sides of one that is kept, which NumPy takes in two."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_cpu.reductions import apart
from tests.support import numbers


@pytest.mark.parametrize(("axis", "found"), [
    ((0, 2), ((0,), (2,))), ((0, 1), None), ((1, 2), None), ((0, 1, 2), None), ((1,), None), ((), None),
])  # fmt: skip
def test_which_axes_are_apart(axis: tuple[int, ...], found: object) -> None:
    assert apart(axis, (40, 7, 33)) == found


def test_few_elements_are_summed_at_once() -> None:
    assert apart((0, 2), (16, 8, 32)) is None


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [
    ((8, 16, 16, 4, 8), (1, 2, 4)), ((8, 16, 16, 4, 8), (0, 2, 4)), ((40, 7, 33), (0, 2)), ((40, 7, 33), (0, 1)),
    ((2, 3, 4), (0, 2)), ((0, 3, 4), (0, 2)), ((8, 1, 4096), (0, 2)),
])  # fmt: skip
def test_sums_and_means(shape: tuple[int, ...], axis: tuple[int, ...], deterministic: bool) -> None:
    host = numbers(*shape)
    with nnc.config.using(deterministic=deterministic):
        x = nnc.asarray(host)
        for keepdims in (False, True):
            total = nnc.sum(x, axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(total.numpy(), host.sum(axis, keepdims=keepdims), rtol=1e-5, atol=1e-4)
        turned = nnc.sum(nnc.swapaxes(x, 0, 1), axis=axis)
        np.testing.assert_allclose(turned.numpy(), host.swapaxes(0, 1).sum(axis), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_group_norms(dtype: str) -> None:
    host = numbers(4, 6, 5, 12).astype(dtype)
    parts = host.astype("float64").reshape(4, 6, 5, 3, 4)
    mean, variance = parts.mean((1, 2, 4), keepdims=True), parts.var((1, 2, 4), keepdims=True)
    wanted = ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(host.shape)
    tolerance = 2e-3 if dtype == "float16" else 1e-5
    for f in (nnc.group_norm, nnc.jit(nnc.group_norm, static_argnums=1)):
        np.testing.assert_allclose(f(nnc.asarray(host), 3).numpy(), wanted, rtol=tolerance, atol=tolerance)

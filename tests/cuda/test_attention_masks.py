"""Masks of attention by cuDNN's stand-in, whose blocks of keys know no way out where all scores of one are -inf."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import bfloat16, float8_e5m2, float16, float32
from nnc_core.base.layout import Layout
from nnc_core.stacks import make_stack
from nnc_cuda.device import CudaDevice
from tests.cuda.host_cudnn import FakeCudnn
from tests.cuda.test_cudnn import compare, dnn, drawn, gpu, steps_of

__all__ = ["dnn", "gpu"]
Values = np.ndarray[Any, Any]
BATCH, HEADS, QUERIES, KEYS = 2, 4, 40, 50


def arrays(dtype: Any = float16, key_heads: int = HEADS) -> list[Values]:
    return [drawn(BATCH, heads, rows, 16, dtype=dtype)
            for heads, rows in ((HEADS, QUERIES), (key_heads, KEYS), (key_heads, KEYS))]


def hidden(*shape: int, dtype: Any = np.bool_) -> Values:
    """A mask that hides each third key, and for query 3 all of them."""
    mask = np.random.default_rng(len(shape)).random(shape) > 1 / 3
    if shape[-2] > 3:
        mask[..., 3, :] = False
    return mask if dtype == np.bool_ else np.where(mask, drawn(*shape), -inf).astype(dtype)


MASKS = {
    "of all": hidden(QUERIES, KEYS), "of each batch": hidden(BATCH, 1, QUERIES, KEYS),
    "of each head": hidden(HEADS, QUERIES, KEYS), "of keys": hidden(BATCH, 1, 1, KEYS),
    "of queries": hidden(BATCH, 1, QUERIES, 1), "added": hidden(BATCH, HEADS, QUERIES, KEYS, dtype=float16),
    "added wide": hidden(1, HEADS, QUERIES, KEYS, dtype=float32),
    "the least numbers": np.full((QUERIES, KEYS), np.finfo(np.float32).min),
    "nothing is seen": np.zeros((1, KEYS), np.bool_)}


def attend(q: Any, k: Any, v: Any, mask: Any, **options: Any) -> Any:
    return nnc.scaled_dot_product_attention(q, k, v, mask, **options)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("mask", MASKS)
def test_masks(gpu: CudaDevice, dnn: FakeCudnn, mask: str, causal: bool, traced: bool) -> None:
    compare(gpu, lambda q, k, v, m: attend(q, k, v, m, causal=causal), *arrays(), MASKS[mask], traced=traced, rtol=4e-3)
    assert steps_of(dnn) == [("attention",)]


def loss(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v, m: nnc.sum(attend(q, k, v, m, **options).astype("float32") ** 2)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("mask", ["of each batch", "of keys", "added"])
def test_gradients(gpu: CudaDevice, dnn: FakeCudnn, mask: str, causal: bool) -> None:
    """Of queries, keys and values, whose sums have an order."""
    for traced in (False, True):
        compare(gpu, nnc.grad(loss(causal=causal), (0, 1, 2)), *arrays(bfloat16, 2), MASKS[mask], traced=traced,
                rtol=3e-2)
    ahead, back = steps_of(dnn)[:2]
    assert ahead == ("attention",) and back.count("product") == 5 and "add" in back


def test_gradients_in_memory_that_is_linear(gpu: CudaDevice, dnn: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnc_cuda.dnn.backend.MOST_WORKSPACE", 2 * HEADS * QUERIES * KEYS)
    compare(gpu, nnc.grad(loss(), (0, 1, 2)), *arrays(), MASKS["of each head"], traced=True, rtol=2e-2)
    assert steps_of(dnn) == [("attention",), ("gradients",)]


def test_the_gradient_of_what_is_added(gpu: CudaDevice) -> None:
    mask = drawn(HEADS, QUERIES, KEYS, dtype=float16)
    compare(gpu, nnc.grad(loss(), 3), *arrays(), mask, traced=True, rtol=2e-2)


@pytest.mark.parametrize("options", [
    {"key_lengths": np.array([7, 0])}, {"window": (5, 2)}, {"causal": True, "offset": 10},
    {"causal": True, "offset": -3}, {"causal": True, "offset": 10, "key_lengths": np.array([50, 9])},
    {"causal": True, "offset": np.array([4, 0])}], ids=str)
def test_what_hides_keys_otherwise(gpu: CudaDevice, dnn: FakeCudnn, options: dict[str, Any]) -> None:
    def f(q: Any, k: Any, v: Any) -> Any:
        return nnc.scaled_dot_product_attention(q, k, v, **options)

    compare(gpu, f, *arrays(), traced=True, rtol=4e-3)
    assert steps_of(dnn) == [("attention",)]
    compare(gpu, nnc.grad(lambda *a: nnc.sum(f(*a).astype("float32") ** 2), (0, 1, 2)), *arrays(), traced=True,
            rtol=2e-2)


def test_a_diagonal_that_begins_elsewhere_beside_a_mask(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    compare(gpu, lambda q, k, v, m: attend(q, k, v, m, causal=True, offset=10), *arrays(), MASKS["of keys"],
            traced=True, rtol=4e-3)
    assert steps_of(dnn) == [("attention",)]


def test_sums_of_queries_that_see_nothing_are_zero(gpu: CudaDevice) -> None:
    """As the operator says; NaN of a mask stays."""
    mask = np.where(MASKS["of all"], 0, -inf).astype(np.float32)
    mask[5, 0] = np.nan
    with nnc.use_device(make_stack(gpu)):
        found = nnc.scaled_dot_product_attention(*map(nnc.asarray, arrays()), nnc.asarray(mask)).numpy()
    assert not found[:, :, 3].any() and np.isnan(found[:, :, 5]).all() and not np.isnan(found[:, :, 6]).any()


def test_masks_that_are_left_to_products(gpu: CudaDevice) -> None:
    backend = gpu.backends("scaled_dot_product_attention")[0]
    x, sums = Layout.packed((2, 4, 40, 16), float16), Layout.packed((2, 4, 40), float32)
    mask = Layout.packed((40, 40), float8_e5m2)
    many = Layout.packed((1, 1, 1 << 16, 16), float16)
    of_all = Command("scaled_dot_product_attention", (0.25, False, 0),
                     (many, many, many, Layout.packed((1 << 16, 1 << 16), float32)),
                     (many, Layout.packed((1, 1, 1 << 16), float32)))
    assert "32 bits" in (backend.refuse(of_all) or "")
    for masks in ((mask,), (mask._replace(dtype=float32),) * 2):
        made = Command("scaled_dot_product_attention", (0.25, False, 0), (x, x, x, *masks), (x, sums))
        assert "one mask, boolean or float" in (backend.refuse(made) or "")

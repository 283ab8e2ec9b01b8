"""Attention of `cpu:0` as users call it: code by blocks in every mode, and memory that is linear in the length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import config, nn

RNG = np.random.default_rng(11)


def arrays(length: int, keys: int, heads: int = 2, key_heads: int = 2, features: int = 16) -> list[nnc.Tensor]:
    shapes = ((1, heads, length, features), *[(1, key_heads, keys, features)] * 2)
    return [nnc.asarray(RNG.standard_normal(shape).astype(np.float32), device="cpu:0") for shape in shapes]


def loss(q: Any, k: Any, v: Any, **named: Any) -> Any:
    return (nnc.scaled_dot_product_attention(q, k, v, **named) ** 2).sum()


def on(device: str, xs: list[nnc.Tensor]) -> list[nnc.Tensor]:
    return [nnc.asarray(x.numpy(), device=device) for x in xs]


@pytest.mark.parametrize("named", [{}, {"causal": True, "offset": 7}, {"scale": 0.7}])
def test_the_composite_agrees(named: dict[str, Any]) -> None:
    """`strict` has no code by blocks."""
    xs = arrays(45, 52, 4, 2)
    there = on("strict:0", xs)
    np.testing.assert_allclose(float(loss(*xs, **named)), float(loss(*there, **named)), rtol=1e-5)
    for found, wanted in zip(nnc.grad(lambda *a: loss(*a, **named), (0, 1, 2))(*xs),
                             nnc.grad(lambda *a: loss(*a, **named), (0, 1, 2))(*there), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-4)


def test_every_mode_gives_the_same_bits_under_deterministic() -> None:
    xs = arrays(45, 52)
    gradients = nnc.grad(loss, (0, 1, 2))
    with config.using(deterministic=True):
        eager = gradients(*xs)
        for fusion in (True, False):
            with config.using(fusion=fusion):
                compiled = nnc.jit(lambda *a: nnc.grad(loss, (0, 1, 2))(*a))(*xs)
            for a, b in zip(eager, compiled, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_gradients_of_gradients() -> None:
    """The way back is differentiated through its body, whatever code runs it."""
    xs = arrays(24, 30, features=12)

    def bent(*given: Any) -> Any:
        a, b, c = (g * g for g in nnc.grad(loss, (0, 1, 2))(*given))
        return a.sum() + b.sum() + c.sum()

    for found, wanted in zip(nnc.grad(bent, (0, 1, 2))(*xs),
                             nnc.grad(bent, (0, 1, 2))(*on("strict:0", xs)), strict=True):
        scale = float(np.abs(wanted.numpy()).max())
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-4 * scale)


def test_halves_take_the_same_code() -> None:
    """Stored in 16 bits, computed in float32."""
    xs = [x.astype("float16") for x in arrays(40, 40)]
    wide = [x.astype("float32") for x in xs]
    compiled = nnc.jit(nnc.scaled_dot_product_attention)
    found = compiled(*xs)
    assert found.dtype == "float16"
    np.testing.assert_array_equal(found.numpy(), nnc.scaled_dot_product_attention(*wide).astype("float16").numpy())


def planned(length: int, training: bool) -> int:
    """Bytes of the arena of attention of 8 heads of 64."""
    xs = [nnc.zeros((1, 8, length, 64), device="cpu:0") for _ in range(3)]
    code = nnc.grad(lambda *a: loss(*a, causal=True), (0, 1, 2)) if training else nnc.scaled_dot_product_attention
    peak: int = nnc.jit(code).lower(*xs).memory_plan.peak
    return peak


@pytest.mark.parametrize("training", [False, True])
def test_memory_is_linear_in_the_length(training: bool) -> None:
    """All scores of 4,096 queries would take 512 MiB."""
    short, long = planned(1024, training), planned(4096, training)
    assert long <= 4 * short + 4096
    matrices = 8 if training else 1
    assert long <= matrices * 8 * 4096 * 64 * 4


def test_layers_take_it() -> None:
    """Heads of a layer lie behind the length, and are read where they are."""
    layer = nn.MultiHeadAttention(64, 4, generator=nnc.Generator(1))
    x = nnc.asarray(RNG.standard_normal((2, 40, 64)).astype(np.float32), device="cpu:0")
    compiled = nnc.jit(lambda x: layer(x, causal=True))
    text = str(compiled.lower(x).explain())
    assert text.count("scaled_dot_product_attention") == 1 and "[blocks; " in text and "exp" not in text
    np.testing.assert_allclose(compiled(x).numpy(), layer(x, causal=True).numpy(), rtol=1e-4, atol=1e-5)

"""What queries of attention may look at, and bounded scores: against the masks and sums that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from tests.tensors.against_numpy import assert_derivatives
from tests.tensors.faults import fails

RNG = np.random.default_rng(31)
B, H, KH, L, S, E, V = 2, 4, 2, 3, 6, 4, 5
Q, K, VALUES = (RNG.normal(size=shape) for shape in ((B, H, L, E), (B, KH, S, E), (B, KH, S, V)))
KEEP, ADDED = RNG.random((B, 1, L, S)) < 0.8, RNG.normal(size=(H, L, S))
LENGTHS, OFFSETS = np.array([4, 6]), np.array([1, 3])


def seen(causal: bool = False, offset: Any = 0, window: Any = None, key_lengths: Any = None) -> Any:
    """bool (B, 1, L, S), element by element."""
    left, right = window if isinstance(window, tuple) else (window, window)
    out = np.zeros((B, 1, L, S), bool)
    for b, i, j in np.ndindex(B, L, S):
        place = i + (offset if np.ndim(offset) == 0 else offset[b])
        out[b, 0, i, j] = (not causal or j <= place) and (left is None or j >= place - left) and \
            (right is None or j <= place + right) and (key_lengths is None or j < key_lengths[b])
    return out


def scored(mask: Any, softcap: float | None, allowed: Any) -> Any:
    k = np.repeat(K, H // KH, 1)
    scores = np.einsum("bhle,bhse->bhls", Q, k) / np.sqrt(E)
    scores = scores if not softcap else softcap * np.tanh(scores / softcap)
    if mask is not None and mask.dtype == bool:
        allowed = allowed & mask
    elif mask is not None:
        scores = scores + mask
    return np.where(allowed, scores, -np.inf)


def weighed(scores: Any) -> Any:
    some = np.isfinite(scores).any(-1, keepdims=True)
    return np.where(some, scipy.special.softmax(np.where(some, scores, 0), axis=-1), 0)


CASES: dict[str, dict[str, Any]] = {
    "window": {"window": 1}, "left": {"window": (1, 0), "offset": 2}, "right": {"window": (None, 2), "offset": -1},
    "causal window": {"causal": True, "window": (2, None), "offset": S - L}, "lengths": {"key_lengths": LENGTHS},
    "causal lengths": {"causal": True, "key_lengths": LENGTHS}, "cache": {"causal": True, "offset": LENGTHS - L,
                                                                         "key_lengths": LENGTHS},
    "offsets": {"causal": True, "offset": OFFSETS}, "nothing": {"key_lengths": np.array([0, 2])},
    "offsets and window": {"window": (1, 1), "offset": OFFSETS}}
each = pytest.mark.parametrize("name", CASES)


@each
@pytest.mark.parametrize("mask", [None, KEEP, ADDED], ids=["no mask", "boolean", "added"])
@pytest.mark.parametrize("softcap", [None, 0.7])
def test_against_masks(name: str, mask: Any, softcap: float | None, device: str) -> None:
    scores = scored(mask, softcap, seen(**CASES[name]))
    weights = weighed(scores)
    wanted = np.einsum("bhls,bhsv->bhlv", weights, np.repeat(VALUES, H // KH, 1))
    q, k, v = (nnc.asarray(a.astype(np.float32)) for a in (Q, K, VALUES))
    m = None if mask is None else nnc.asarray(mask if mask.dtype == bool else mask.astype(np.float32))
    named = {**CASES[name], "softcap": softcap}

    def call(q: Any, k: Any, v: Any) -> Any:
        return (nnc.attention_scores(q, k, m, **named), nnc.attention_weights(q, k, m, **named),
                nnc.scaled_dot_product_attention(q, k, v, m, **named))

    with nnc.deferred():
        late = call(q, k, v)
    for found in (call(q, k, v), nnc.jit(call)(q, k, v), late):
        for a, b in zip(found, (scores, weights, wanted), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)


def test_scores_and_weights_without_more(device: str) -> None:
    q, k = nnc.asarray(Q.astype(np.float32)), nnc.asarray(K.astype(np.float32))
    scores = scored(None, None, np.True_)
    np.testing.assert_allclose(nnc.attention_scores(q, k).numpy(), scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(nnc.attention_weights(q, k, softcap=0.0).numpy(), weighed(scores), rtol=1e-4, atol=1e-5)
    causal = nnc.attention_weights(q, k, causal=True, layout="BHLE").numpy()
    np.testing.assert_allclose(causal, weighed(scored(None, None, seen(True))), rtol=1e-4, atol=1e-5)
    exchanged = nnc.attention_scores(q.swapaxes(1, 2), k.swapaxes(1, 2), layout="BLHE", scale=0.5).numpy()
    np.testing.assert_allclose(exchanged, scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("softcap", [None, 0.9])
def test_derivatives(softcap: float | None) -> None:
    def code(n: Any, q: Any, k: Any, v: Any, m: Any) -> Any:
        named: Any = {"causal": True, "window": (3, None), "offset": OFFSETS, "softcap": softcap}
        return [nnc.scaled_dot_product_attention(q, k, v, m, **named), nnc.attention_weights(q, k, m, **named)]

    assert_derivatives(code, [Q, K, VALUES, ADDED])


def test_the_offset_may_be_a_name() -> None:
    """What is before the queries, of any length."""
    n = nnc.Dim("before")
    past = nnc.var_arr("past", (1, KH, n, E))
    k, q = nnc.var_arr("k", (1, KH, L, E)), nnc.var_arr("q", (1, H, L, E))
    both = nnc.concat([past, k], axis=2)
    y = nnc.scaled_dot_product_attention(q, both, both, causal=True, offset=n)
    run = nnc.export({"q": q, "past": past, "k": k}, {"y": y}).compile("cpu:0")
    for before in (0, 2, 5):
        p = K[:1, :, :before].astype(np.float32)
        new, queries = K[:1, :, :L].astype(np.float32), Q[:1].astype(np.float32)
        whole = np.concatenate([p, new], 2)
        wanted = nnc.scaled_dot_product_attention(queries, whole, whole, causal=True, offset=before)
        found = run(q=queries, past=p, k=new)["y"]
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_dropout_beside_a_softcap() -> None:
    y = nnc.scaled_dot_product_attention(Q, K, VALUES, softcap=1.0, dropout=0.5, generator=nnc.Generator(3))
    plain = nnc.scaled_dot_product_attention(Q, K, VALUES, softcap=1.0)
    assert y.shape == plain.shape and (y.numpy() != plain.numpy()).any()


def test_what_cannot_be_seen() -> None:
    with fails(AttributeValueError, "window", operator="scaled_dot_product_attention"):
        nnc.scaled_dot_product_attention(Q, K, VALUES, window=(1, 2, 3))
    with fails(AttributeValueError, "softcap", operator="scaled_dot_product_attention"):
        nnc.scaled_dot_product_attention(Q, K, VALUES, softcap=-1.0)
    with fails(ShapeError, "key_lengths", operator="attention_weights"):
        nnc.attention_weights(Q, K, key_lengths=np.array([1, 2, 3]))
    with fails(DTypeError, "offset", operator="attention_scores"):
        nnc.attention_scores(Q, K, causal=True, offset=np.array([1.0, 2.0]))
    for how in ({}, {"window": 1}, {"softcap": 1.0}, {"key_lengths": np.array([1, 2])}):
        with fails(DTypeError, "the mask is int32", operator="scaled_dot_product_attention"):
            nnc.scaled_dot_product_attention(Q, K, VALUES, np.ones((Q.shape[2], K.shape[2]), np.int32), **how)
    with fails(ShapeError, "does not broadcast", operator="attention_scores"):
        nnc.attention_scores(Q, K, np.ones((2, *Q.shape[:3], K.shape[2]), bool))

"""Attention against loops over queries in float64; what tells it where things are; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from tests.tensors.against_numpy import assert_derivatives

RNG = np.random.default_rng(13)
B, H, L, S, E, V = 2, 4, 3, 5, 6, 7
Q, K, VALUES = (RNG.normal(size=shape) for shape in ((B, H, L, E), (B, H, S, E), (B, H, S, V)))
KEEP = RNG.random((L, S)) < 0.7
ADDED = RNG.normal(size=(H, L, S))


def attend(q: Any, k: Any, v: Any, allowed: Any = True, added: Any = 0.0, scale: float | None = None) -> Any:
    """One query after another."""
    lead = q.shape[:-2]
    shape = (*lead, q.shape[-2], k.shape[-2])
    allowed, added = np.broadcast_to(allowed, shape), np.broadcast_to(added, shape)
    k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    out = np.zeros((*shape[:-1], v.shape[-1]))
    for place in np.ndindex(shape[:-1]):
        scores = (k[place[:-1]] @ q[place]) * (q.shape[-1] ** -0.5 if scale is None else scale) + added[place]
        left = allowed[place] & (scores > -np.inf)
        if left.any():
            out[place] = scipy.special.softmax(scores[left]) @ v[place[:-1]][left]
    return out


def lower(offset: int = 0) -> Any:
    return np.arange(S) <= np.arange(L)[:, None] + offset


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}), "scaled": ({"scale": 0.3}, {"scale": 0.3}),
    "masked": ({"mask": KEEP}, {"allowed": KEEP}), "added": ({"mask": ADDED}, {"added": ADDED}),
    "causal": ({"causal": True}, {"allowed": lower()}),
    "causal, aligned at the end": ({"causal": True, "offset": S - L}, {"allowed": lower(S - L)}),
    "masked and causal": ({"mask": KEEP, "causal": True}, {"allowed": KEEP & lower()}),
    "nothing to see": ({"mask": np.array([[True], [False], [True]])}, {"allowed": np.array([[True], [False], [True]])}),
    "infinite": ({"mask": np.where(KEEP, 0.5, -np.inf)}, {"added": np.where(KEEP, 0.5, -np.inf)}),
}  # fmt: skip
each_case = pytest.mark.parametrize("name", CASES)


def ours(name: str, q: Any, k: Any, v: Any, **named: Any) -> nnc.Tensor:
    options = dict(CASES[name][0])
    mask = options.pop("mask", None)
    if mask is not None and mask.dtype != bool:
        mask = nnc.asarray(mask, dtype=q.dtype, device=q.device)
    return nnc.scaled_dot_product_attention(q, k, v, mask, **options, **named)


@each_case
def test_values(name: str, device: str) -> None:
    wanted = attend(Q, K, VALUES, **CASES[name][1])
    given = [nnc.asarray(a.astype(np.float32)) for a in (Q, K, VALUES)]
    np.testing.assert_allclose(ours(name, *given).numpy(), wanted, rtol=1e-4, atol=1e-5)
    compiled = nnc.jit(lambda *xs: ours(name, *xs))
    np.testing.assert_allclose(compiled(*given).numpy(), wanted, rtol=1e-4, atol=1e-5)
    turned = [x.swapaxes(1, 2) for x in given]
    np.testing.assert_allclose(ours(name, *turned, layout="BLHE").numpy(), wanted.swapaxes(1, 2), rtol=1e-4, atol=1e-5)


@each_case
def test_derivatives(name: str) -> None:
    assert_derivatives(lambda n, *xs: ours(name, *xs), [Q[:1], K[:1], VALUES[:1]])


def test_gradients_of_masks() -> None:
    """Of one that is added: also where it is broadcast, and where some of it hides."""
    for shape in ((H, L, S), (S,), (L, 1)):
        mask = RNG.normal(size=shape)
        assert_derivatives(lambda n, q, m: nnc.scaled_dot_product_attention(q, K[:1], VALUES[:1], m), [Q[:1], mask])
    hiding = np.where(KEEP, 0.5, -np.inf)
    found = nnc.grad(lambda m: nnc.sum(nnc.scaled_dot_product_attention(Q, K, VALUES, m) ** 2))(nnc.asarray(hiding))
    assert ((found.numpy() == 0) == ~KEEP).all()


def test_nan_is_not_hidden() -> None:
    """Neither by a mask that is added, nor by other queries; a boolean mask hides it."""
    q, k = Q.copy(), K.copy()
    q[0, 0, 1] = np.nan
    found = nnc.scaled_dot_product_attention(q, k, VALUES, np.zeros((L, S))).numpy()
    assert np.isnan(found[0, 0, 1]).all() and np.isfinite(np.delete(found[0, 0], 1, 0)).all()
    k[:, :, 2] = np.nan
    keep = np.arange(S) != 2
    assert np.isfinite(nnc.scaled_dot_product_attention(Q, k, VALUES, keep).numpy()).all()


def test_nothing_at_all(device: str) -> None:
    """No keys give zeros; no queries give nothing."""
    q = nnc.ones((1, 2, 3, 4))
    none = nnc.zeros((1, 2, 0, 4))
    gradients = nnc.grad(lambda *xs: nnc.sum(nnc.scaled_dot_product_attention(*xs)), (0, 1, 2))
    np.testing.assert_array_equal(nnc.scaled_dot_product_attention(q, none, none).numpy(), np.zeros((1, 2, 3, 4)))
    assert nnc.scaled_dot_product_attention(none, q, q).shape == (1, 2, 0, 4)
    assert [g.shape for g in gradients(q, none, none)] == [(1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4)]
    assert [float(nnc.sum(nnc.abs(g))) for g in gradients(none, q, q)] == [0, 0, 0]


def test_length_one(device: str) -> None:
    given = [nnc.asarray(a[:, :, :1].astype(np.float32)) for a in (Q, K, VALUES)]
    np.testing.assert_allclose(nnc.scaled_dot_product_attention(*given).numpy(), given[2].numpy(), rtol=1e-6)


def test_mapped_masks_and_shared_keys(device: str) -> None:
    """Examples of which some arguments are the same for all."""
    q, k, v = (nnc.asarray(a.astype(np.float32)) for a in (Q, K, VALUES))
    masks = RNG.random((B, L, S)) < 0.7
    found = nnc.vmap(lambda q, m: nnc.scaled_dot_product_attention(q, k[0], v[0], m))(q, nnc.asarray(masks))
    for n in range(B):
        np.testing.assert_allclose(found.numpy()[n], attend(Q[n], K[0], VALUES[0], masks[n]), rtol=1e-4, atol=1e-5)
    each = nnc.vmap(nnc.grad(lambda q: nnc.sum(nnc.scaled_dot_product_attention(q, k[0], v[0]) ** 2)))(q)
    one = nnc.grad(lambda q: nnc.sum(nnc.scaled_dot_product_attention(q, k[0], v[0]) ** 2))(q[1])
    np.testing.assert_allclose(each.numpy()[1], one.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 2])
def test_heads_that_share_keys(heads: int, device: str) -> None:
    k, v = K[:, :heads], VALUES[:, :heads]
    given = [nnc.asarray(a.astype(np.float32)) for a in (Q, k, v)]
    for name in ("plain", "causal", "added"):
        wanted = attend(Q, k, v, **CASES[name][1])
        np.testing.assert_allclose(ours(name, *given).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert_derivatives(lambda n, *xs: ours("masked", *xs), [Q[:1], k[:1], v[:1]])


def test_halves_and_mixed_dtypes() -> None:
    given = [nnc.asarray((a * 40).astype(np.float16)) for a in (Q, K)]
    v = nnc.asarray(VALUES.astype(np.float16))
    found = nnc.scaled_dot_product_attention(*given, v)
    assert found.dtype == "float16"
    wanted = attend(*[g.numpy().astype(np.float64) for g in given], v.numpy().astype(np.float64))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-3, atol=2e-3)
    assert nnc.scaled_dot_product_attention(given[0], given[1].astype("float32"), v).dtype == "float32"


def test_dropout_of_weights(device: str) -> None:
    q, k = (nnc.zeros((1, 1, 1, 4)), nnc.zeros((1, 1, 4000, 4)))
    v = nnc.ones((1, 1, 4000, 1))
    found = [nnc.scaled_dot_product_attention(q, k, v, dropout=0.3, generator=nnc.Generator(seed)).item()
             for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert abs(found[0] - 1) < 0.05  # what is left out is made up for
    kept = found[0] * 4000 * 0.7
    assert abs(kept - round(kept)) < 0.05


def test_vmapped(device: str) -> None:
    q, k, v = (nnc.asarray(a.astype(np.float32)) for a in (Q, K, VALUES))
    found = nnc.vmap(nnc.scaled_dot_product_attention)(q, k, v)
    np.testing.assert_allclose(found.numpy(), attend(Q, K, VALUES), rtol=1e-4, atol=1e-5)


# ---- heads and weights
def test_multi_head_attention(device: str) -> None:
    x, y = RNG.normal(size=(B, L, 8)), RNG.normal(size=(B, S, 8))
    w = nnc.AttentionWeights(*[RNG.normal(size=s) for s in ((8, 12), (8, 6), (8, 6), (12, 8))],
                             *[RNG.normal(size=n) for n in (12, 6, 6, 8)])
    layers = ((x, w.query, w.query_bias), (y, w.key, w.key_bias), (y, w.value, w.value_bias))
    q, k, v = (a @ m + b for a, m, b in layers)
    split = [a.reshape(B, a.shape[1], -1, 3).swapaxes(1, 2) for a in (q, k, v)]
    wanted = attend(*split, KEEP).swapaxes(1, 2).reshape(B, L, 12) @ w.output + w.output_bias
    narrow = nnc.AttentionWeights(*[p.astype(np.float32) for p in w])
    given = [nnc.asarray(a.astype(np.float32)) for a in (x, y, y)]
    found = nnc.multi_head_attention(*given, narrow, KEEP, heads=4, key_heads=2)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3, atol=1e-4)
    plain = nnc.AttentionWeights(*narrow[:4])
    assert nnc.multi_head_attention(*given, plain, heads=4, key_heads=2).shape == (B, L, 8)
    assert_derivatives(lambda n, a, m: nnc.multi_head_attention(a, a, a, w._replace(key=m), heads=4, key_heads=2),
                       [x, w.key])


def test_heads_are_split_and_merged(device: str) -> None:
    x = nnc.asarray(np.arange(24, dtype=np.float32).reshape(2, 2, 6))
    heads = nnc.split_heads(x, 3)
    assert heads.shape == (2, 3, 2, 2)
    np.testing.assert_array_equal(heads.numpy()[0, 1], [[2, 3], [8, 9]])
    np.testing.assert_array_equal(nnc.merge_heads(heads).numpy(), x.numpy())
    weight, bias = RNG.normal(size=(6, 4)).astype(np.float32), np.ones(4, np.float32)
    wanted = x.numpy() @ weight + 1
    np.testing.assert_allclose(nnc.merge_heads(heads, weight, bias).numpy(), wanted, rtol=1e-4, atol=1e-5)


# ---- places
def test_positional_encoding(device: str) -> None:
    found = nnc.positional_encoding(50, 7).numpy()
    for place, feature in ((0, 0), (1, 0), (7, 3), (49, 6), (20, 5)):
        angle = place / 10000 ** (2 * (feature // 2) / 7)
        assert found[place, feature] == pytest.approx((np.sin, np.cos)[feature % 2](angle), abs=1e-5)
    assert nnc.positional_encoding(4, 6, dtype="float16").dtype == "float16"


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved: bool, device: str) -> None:
    """Pairs as complex numbers, turned; products depend on the difference of places alone."""
    x = RNG.normal(size=(2, 9, 6))
    pairs = x[..., 0::2] + 1j * x[..., 1::2] if interleaved else x[..., :3] + 1j * x[..., 3:]
    turned = pairs * np.exp(1j * np.arange(9)[:, None] * 10000.0 ** (-np.arange(3) / 3))
    wanted = np.stack([turned.real, turned.imag], -1).reshape(x.shape) if interleaved else \
        np.concatenate([turned.real, turned.imag], -1)
    tables = nnc.rotary_tables(9, 6)
    found = nnc.rotary_embedding(nnc.asarray(x.astype(np.float32)), *tables, interleaved=interleaved).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    same = nnc.rotary_embedding(nnc.asarray(np.broadcast_to(x[:, :1], x.shape).astype(np.float32)), *tables,
                                interleaved=interleaved).numpy()
    np.testing.assert_allclose((same[:, 3] * same[:, 5]).sum(-1), (same[:, 6] * same[:, 8]).sum(-1), rtol=1e-4)


def test_tables_of_given_places(device: str) -> None:
    cos, sin = nnc.rotary_tables(9, 6)
    some = nnc.rotary_tables(nnc.asarray([4, 2]), 6)
    np.testing.assert_allclose(some[0].numpy(), cos.numpy()[[4, 2]], rtol=1e-6)
    np.testing.assert_allclose(some[1].numpy(), sin.numpy()[[4, 2]], rtol=1e-6)
    assert_derivatives(lambda n, x: nnc.rotary_embedding(x, *nnc.rotary_tables(3, 6)), [RNG.normal(size=(3, 6))])


def test_rotate_half(device: str) -> None:
    x = nnc.asarray(np.arange(8, dtype=np.float32).reshape(2, 4))
    np.testing.assert_array_equal(nnc.rotate_half(x).numpy(), [[-2, -3, 0, 1], [-6, -7, 4, 5]])
    np.testing.assert_array_equal(nnc.rotate_half(x, axis=0).numpy(), [[-4, -5, -6, -7], [0, 1, 2, 3]])


ATTEND = nnc.scaled_dot_product_attention


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda: ATTEND(Q[0, 0], K, VALUES), ShapeError, "expected B, H, L, E"),
    (lambda: ATTEND(Q, K[..., :2], VALUES), ShapeError, "differ in their features"),
    (lambda: ATTEND(Q, K[:, :3], VALUES[:, :3]), ShapeError, "4 heads.* do not divide among 3"),
    (lambda: ATTEND(Q, K, VALUES[:, :, :2]), ShapeError, "differ in more than their features"),
    (lambda: ATTEND(Q, K, VALUES, KEEP.T), ShapeError, "(?s)the mask bool.*not broadcast.*queries"),
    (lambda: ATTEND(Q, K, VALUES, KEEP * 1), DTypeError, "the mask is int64: neither"),
    (lambda: ATTEND(Q, K, VALUES, layout="LBHE"), AttributeValueError, "layout 'LBHE'"),
    (lambda: ATTEND(Q, K, VALUES, dropout=2), AttributeValueError, "(?s)rate is 2.*test_attention"),
    (lambda: nnc.split_heads(Q, 4), ShapeError, "cannot be split into 4 heads"),
    (lambda: nnc.merge_heads(Q[0, 0]), ShapeError, "has no heads"),
    (lambda: nnc.rotary_tables(3, 5), AttributeValueError, "5 features are no pairs"),
    (lambda: nnc.rotate_half(Q, axis=2), ShapeError, "axis 2 of float64.* has no two halves"),
    (lambda: nnc.rotary_embedding(Q, Q, Q), ShapeError, "broadcast"),
])
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()

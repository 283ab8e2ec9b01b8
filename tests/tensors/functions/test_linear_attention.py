"""Linear attention against plain loops over steps in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DTypeError, ShapeError
from tests.tensors.against_numpy import assert_derivatives
from tests.tensors.faults import fails

RNG = np.random.default_rng(41)
B, H, KH, L, E, V = 2, 4, 2, 5, 3, 4
Q, K, VALUES = (RNG.normal(size=s) for s in ((B, H, L, E), (B, KH, L, E), (B, KH, L, V)))
STATE = RNG.normal(size=(B, KH, E, V))
CASES: dict[str, dict[str, Any]] = {
    "plain": {}, "gated": {"decay": -RNG.random((B, KH, L, E))},
    "gated by heads": {"decay": -RNG.random((B, KH, L, 1))}, "delta": {"beta": RNG.random((B, KH, L, 1))},
    "both": {"decay": -RNG.random((B, KH, L, E)), "beta": RNG.random((B, 1, L, 1)), "scale": 0.3}}
each = pytest.mark.parametrize("name", CASES)


def expected(state: Any, decay: Any = 0.0, beta: Any = None, scale: float = E**-0.5) -> tuple[Any, Any]:
    """Example by example, head by head, step by step."""
    decay = np.broadcast_to(decay, K.shape)
    y, last = np.zeros((B, H, L, V)), state.copy()
    for b, h in np.ndindex(B, KH):
        s = last[b, h]
        for t in range(L):
            s = np.exp(decay[b, h, t])[:, None] * s
            v = VALUES[b, h, t]
            if beta is not None:
                v = np.broadcast_to(beta, (B, KH, L, 1))[b, h, t] * (v - K[b, h, t] @ s)
            s = s + np.outer(K[b, h, t], v)
            for g in range(H // KH):
                y[b, h * (H // KH) + g, t] = scale * Q[b, h * (H // KH) + g, t] @ s
        last[b, h] = s
    return y, last


@each
@pytest.mark.parametrize("begun", [False, True])
def test_against_plain_loops(name: str, begun: bool, device: str) -> None:
    state = STATE if begun else np.zeros_like(STATE)
    wanted = expected(state, **CASES[name])
    q, k, v, s = (nnc.asarray(a.astype(np.float32)) for a in (Q, K, VALUES, STATE))
    named = {n: nnc.asarray(a.astype(np.float32)) if isinstance(a, np.ndarray) else a for n, a in CASES[name].items()}

    def call(q: Any, k: Any, v: Any) -> Any:
        return nnc.linear_attention(q, k, v, s if begun else None, **named)

    with nnc.deferred():
        late = call(q, k, v)
    for found in (call(q, k, v), nnc.jit(call)(q, k, v), late):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)


def test_steps_may_be_gone_one_by_one() -> None:
    """As a decoder goes: the state of one call is the next one's."""
    named = CASES["both"]
    whole, last = nnc.linear_attention(Q, K, VALUES, STATE, **named)
    state: Any = STATE
    for t in range(L):
        part = slice(t, t + 1)
        y, state = nnc.linear_attention(Q[:, :, part], K[:, :, part], VALUES[:, :, part], state, scale=0.3,
                                        decay=named["decay"][:, :, part], beta=named["beta"][:, :, part])
        np.testing.assert_allclose(y.numpy(), whole.numpy()[:, :, part], rtol=1e-10)
    np.testing.assert_allclose(state.numpy(), last.numpy(), rtol=1e-10)


def test_derivatives() -> None:
    def code(n: Any, q: Any, k: Any, v: Any, s: Any, d: Any, b: Any) -> Any:
        return list(nnc.linear_attention(q, k, v, s, decay=d, beta=b))

    assert_derivatives(code, [Q, 0.5 * K, VALUES, STATE, CASES["both"]["decay"], CASES["both"]["beta"]])


def test_halves_are_computed_in_float32() -> None:
    given = [nnc.asarray(a.astype(np.float16)) for a in (Q, K, VALUES)]
    y, state = nnc.linear_attention(*given)
    assert (y.dtype, state.dtype) == ("float16", "float16")
    exact, _ = nnc.linear_attention(*[g.astype("float64") for g in given])
    np.testing.assert_allclose(y.numpy(), exact.numpy(), rtol=2e-3, atol=2e-3)


def test_what_does_not_go_together() -> None:
    with fails(ShapeError, "do not go together", operator="linear_attention"):
        nnc.linear_attention(Q, K[:, :, 1:], VALUES)
    with fails(ShapeError, "state", operator="linear_attention"):
        nnc.linear_attention(Q, K, VALUES, STATE[:1])
    with fails(ShapeError, "four", operator="linear_attention"):
        nnc.linear_attention(Q[0], K, VALUES)
    with fails(DTypeError, "beta", operator="linear_attention"):
        nnc.linear_attention(Q, K, VALUES, beta=np.ones((B, KH, L, 1), np.int64))


def test_there_may_be_no_features_no_heads_and_no_steps() -> None:
    y, state = nnc.linear_attention(Q[..., :0], K[..., :0], VALUES)
    assert y.shape == (*Q.shape[:3], VALUES.shape[3]) and state.shape == (B, KH, 0, VALUES.shape[3])
    assert not y.numpy().any()
    assert nnc.linear_attention(Q[:, :0], K[:, :0], VALUES[:, :0])[0].shape == (B, 0, L, VALUES.shape[3])
    y, _ = nnc.linear_attention(Q[:, :, :0], K[:, :, :0], VALUES[:, :, :0])
    assert y.shape == (*Q.shape[:2], 0, VALUES.shape[3])
    with fails(ShapeError, "do not go together", operator="linear_attention"):
        nnc.linear_attention(Q, K[:, :0], VALUES[:, :0])

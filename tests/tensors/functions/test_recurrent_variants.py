"""Recurrent networks with other activations, peepholes, clipped sums, coupled gates, or from the last step: against
plain loops in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, ShapeError
from tests.tensors.against_numpy import assert_derivatives
from tests.tensors.faults import fails

RNG = np.random.default_rng(23)
T, B, FEATURES, N = 4, 3, 5, 2
X = RNG.normal(size=(T, B, FEATURES))
LENGTHS = np.array([4, 1, 2])
CLIP = 0.6


def hard(x: Any) -> Any:
    return np.clip(0.3 * x + 0.4, 0, 1)


def affine(x: Any) -> Any:
    return 0.5 * x + 0.1


def soft(x: Any) -> Any:
    return x / (1 + abs(x))


PAIRS = [(lambda x: nnc.hardsigmoid(x, slope=0.3, offset=0.4), hard), (lambda x: 0.5 * x + 0.1, affine),
         (nnc.softsign, soft)]  # fmt: skip
OURS, THEIRS = [p[0] for p in PAIRS], [p[1] for p in PAIRS]


def weights(gates: int, **more: Any) -> nnc.RecurrentWeights:
    g = gates * N
    return nnc.RecurrentWeights(*[RNG.normal(size=s) * 0.7 for s in ((FEATURES, g), (N, g), (g,), (g,))], **more)


def single(kind: str, x: Any, states: list[Any], w: Any, given: Any) -> list[Any]:
    """One step of one example, by `given`: activations, clip, and what is the kind's own."""
    def f(k: int, z: Any) -> Any:
        return given["activations"][k](np.clip(z, -given["clip"], given["clip"]))

    h, a = states[0], x @ w.input + w.bias
    if kind == "rnn":
        return [f(0, a + h @ w.hidden + w.hidden_bias)]
    u, b = np.split(w.hidden, len(a) // N, axis=1), np.split(w.hidden_bias, len(a) // N)
    a = np.split(a, len(a) // N)
    if kind == "gru":
        r, z = (f(0, a[k] + h @ u[k] + b[k]) for k in (0, 1))
        n = f(1, a[2] + (r * (h @ u[2] + b[2]) if given["reset_after"] else (r * h) @ u[2] + b[2]))
        return [(1 - z) * n + z * h]
    c, p = states[1], np.zeros((3, N)) if w.peepholes is None else w.peepholes
    i = f(0, a[0] + h @ u[0] + b[0] + p[0] * c)
    forget = 1 - i if given["coupled"] else f(0, a[1] + h @ u[1] + b[1] + p[1] * c)
    c = forget * c + i * f(1, a[2] + h @ u[2] + b[2])
    h = f(0, a[3] + h @ u[3] + b[3] + p[2] * c) * f(2, c)
    return [h if w.projection is None else h @ w.projection, c]


def expected(kind: str, w: Any, states: list[Any], given: Any, reverse: bool) -> list[Any]:
    out, last = np.zeros((T, B, states[0].shape[-1])), [s[0].copy() for s in states]
    for b in range(B):
        for t in range(LENGTHS[b])[:: -1 if reverse else 1]:
            found = single(kind, X[t, b], [s[b] for s in last], w, given)
            for s, new in zip(last, found, strict=True):
                s[b] = new
            out[t, b] = found[0]
    return [out, *last]


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("rnn", weights(1), {}), ("gru", weights(3), {"reset_after": True}), ("gru", weights(3), {"reset_after": False}),
    ("lstm", weights(4), {"coupled": True}),
    ("lstm", weights(4, peepholes=RNG.normal(size=(3, N))), {"coupled": False}),
    ("lstm", weights(4, peepholes=RNG.normal(size=(3, N)), projection=RNG.normal(size=(N, N))), {"coupled": True})]
each = pytest.mark.parametrize(("kind", "w", "own"), CASES, ids=lambda v: v if isinstance(v, str) else None)


def run(kind: str, x: Any, w: Any, states: Any, own: dict[str, Any], reverse: bool = False) -> list[Any]:
    named: Any = {"nonlinearity": OURS[0]} if kind == "rnn" else {"activations": OURS[: 2 if kind == "gru" else 3]}
    y, last = getattr(nnc, kind)(x, w, tuple(states) if kind == "lstm" else states[0], clip=CLIP, lengths=LENGTHS,
                                 reverse=reverse, **named, **own)
    return [y, *(last if kind == "lstm" else [last])]


@each
@pytest.mark.parametrize("reverse", [False, True])
def test_against_plain_loops(kind: str, w: Any, own: dict[str, Any], reverse: bool, device: str) -> None:
    states = [RNG.normal(size=(1, B, N)) for _ in range(2 if kind == "lstm" else 1)]
    wanted = expected(kind, w, states, {**own, "activations": THEIRS, "clip": CLIP}, reverse)
    x, *given = [nnc.asarray(v.astype(np.float32)) for v in (X, *states)]
    ready = nnc.RecurrentWeights(*[None if p is None else nnc.asarray(p.astype(np.float32)) for p in w])

    def call(x: Any, *states: Any) -> Any:
        return tuple(run(kind, x, ready, states, own, reverse))

    with nnc.deferred():
        late = call(x, *given)
    for found in (call(x, *given), nnc.jit(call)(x, *given), late):
        np.testing.assert_allclose(found[0].numpy(), wanted[0], rtol=1e-4, atol=1e-5)
        for a, b in zip(found[1:], wanted[1:], strict=True):
            np.testing.assert_allclose(a.numpy()[0], b, rtol=1e-4, atol=1e-5)


@each
def test_derivatives(kind: str, w: Any, own: dict[str, Any]) -> None:
    def code(n: Any, x: Any, a: Any, u: Any, h: Any) -> Any:
        return run(kind, x, w._replace(input=a, hidden=u), [h] * (2 if kind == "lstm" else 1), own)

    assert_derivatives(code, [X, w.input, w.hidden, RNG.normal(size=(1, B, N)) * 0.1])


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_usual_steps_from_the_last_on(kind: str) -> None:
    """Without lengths, `reverse` is the network on reversed sequences, results reversed again."""
    w = weights({"rnn": 1, "gru": 3, "lstm": 4}[kind])
    f: Any = getattr(nnc, kind)
    there, last = f(X, w, reverse=True)
    back, same = f(X[::-1].copy(), w)
    np.testing.assert_allclose(there.numpy(), back.numpy()[::-1], rtol=1e-12)
    for a, b in zip(last, same, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_spelling_out_the_usual_changes_nothing() -> None:
    w = weights(4, peepholes=np.zeros((3, N)))
    plain, spelt = nnc.lstm(X, w._replace(peepholes=None))[0], nnc.lstm(X, w)[0]
    given = nnc.lstm(X, w._replace(peepholes=None), activations=(nnc.sigmoid, nnc.tanh, nnc.tanh), clip=1e9)[0]
    for found in (spelt, given):
        np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-12)
    h, _ = nnc.lstm_cell(X[0], (np.zeros((B, N)), np.zeros((B, N))), w)
    np.testing.assert_allclose(h.numpy(), plain.numpy()[0], rtol=1e-12)
    clipped = nnc.rnn(X, weights(1), clip=1e-3, nonlinearity="relu")[0].numpy()
    assert 0 < clipped.max() <= 1e-3


def test_halves_are_computed_in_float32() -> None:
    w = nnc.RecurrentWeights(*[p if p is None else nnc.asarray(p.astype(np.float16)) for p in CASES[4][1]])
    y = nnc.lstm(nnc.asarray(X.astype(np.float16)), w)[0]
    assert y.dtype == "float16"
    wide = nnc.RecurrentWeights(*[p if p is None else p.astype("float64") for p in w])
    exact = nnc.lstm(nnc.asarray(X.astype(np.float16).astype(np.float64)), wide)[0]
    np.testing.assert_allclose(y.numpy(), exact.numpy(), rtol=3e-3, atol=3e-3)


def test_wrong_variants() -> None:
    w = weights(4)
    with fails(AttributeValueError, "functions", operator="lstm"):
        nnc.lstm(X, w, activations=[nnc.tanh])
    with fails(AttributeValueError, "clip", operator="gru"):
        nnc.gru(X, weights(3), clip=0)
    with fails(AttributeValueError, "both directions", operator="lstm"):
        nnc.lstm(X, [w, w], bidirectional=True, reverse=True)
    with fails(ShapeError, "peepholes", operator="lstm"):
        nnc.lstm(X, w._replace(peepholes=np.zeros((2, N))))
    with fails(ShapeError, "an lstm", operator="gru"):
        nnc.gru(X, weights(3)._replace(peepholes=np.zeros((3, N))))
    with fails(ShapeError, "activation", operator="lstm"):
        nnc.lstm(X, w, activations=(nnc.sigmoid, nnc.sum, nnc.tanh))

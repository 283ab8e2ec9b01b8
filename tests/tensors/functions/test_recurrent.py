"""Recurrent networks against plain loops in float64: layers, directions, lengths, projections, derivatives, modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from tests.tensors.against_numpy import assert_derivatives

RNG = np.random.default_rng(17)
T, B, FEATURES, N = 4, 3, 5, 2
X = RNG.normal(size=(T, B, FEATURES))
LENGTHS = np.array([4, 1, 2])
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
sigmoid = scipy.special.expit


def weights(kind: str, features: int = FEATURES, projection: int = 0, biases: bool = True) -> nnc.RecurrentWeights:
    g, size = GATES[kind] * N, projection or N
    made = [RNG.normal(size=s) * 0.7 for s in ((features, g), (size, g), (g,), (g,), (N, projection))]
    return nnc.RecurrentWeights(made[0], made[1], *(made[2:4] if biases else (None, None)),
                                made[4] if projection else None)  # fmt: skip


def single(kind: str, x: Any, states: list[Any], w: Any, variant: Any) -> list[Any]:
    """One step of one example."""
    b = [0 if p is None else p for p in (w.bias, w.hidden_bias)]
    if kind == "rnn":
        z = x @ w.input + b[0] + states[0] @ w.hidden + b[1]
        return [np.tanh(z) if variant == "tanh" else np.maximum(z, 0)]
    h = states[0]
    given = np.split(x @ w.input + b[0], GATES[kind])
    if kind == "lstm":
        i, f, g, o = (a + b for a, b in zip(given, np.split(h @ w.hidden + b[1], 4), strict=True))
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return [h if w.projection is None else h @ w.projection, c]
    own = np.split(h @ w.hidden + b[1], 3)
    r, z = sigmoid(given[0] + own[0]), sigmoid(given[1] + own[1])
    bias = np.split(b[1] + np.zeros(3 * N), 3)[2]
    inner = r * own[2] if variant else (r * h) @ np.split(w.hidden, 3, axis=1)[2] + bias
    return [(1 - z) * np.tanh(given[2] + inner) + z * h]


def direction(kind: str, x: Any, states: list[Any], w: Any, lengths: Any, reverse: bool,
              variant: Any) -> tuple[Any, Any]:
    """Example by example, step by step."""
    out = np.zeros((len(x), x.shape[1], states[0].shape[-1]))
    last = [s.copy() for s in states]
    for b in range(x.shape[1]):
        for t in range(lengths[b])[:: -1 if reverse else 1]:
            found = single(kind, x[t, b], [s[b] for s in last], w, variant)
            for s, new in zip(last, found, strict=True):
                s[b] = new
            out[t, b] = found[0]
    return out, last


def network(kind: str, x: Any, layers: list[Any], states: list[Any], lengths: Any = None, both: bool = False,
            variant: Any = None) -> tuple[Any, list[Any]]:
    lengths = [len(x)] * x.shape[1] if lengths is None else lengths
    per_layer, last = 2 if both else 1, []
    for k in range(0, len(layers), per_layer):
        found = [direction(kind, x, [s[k + d] for s in states], layers[k + d], lengths, d == 1, variant)
                 for d in range(per_layer)]
        x = np.concatenate([y for y, _ in found], -1)
        last += [s for _, s in found]
    return x, [np.stack(s) for s in zip(*last, strict=True)]


def narrow(w: Any) -> Any:
    return nnc.RecurrentWeights(*[None if p is None else nnc.asarray(p.astype(np.float32)) for p in w])


def run(kind: str, x: Any, layers: Any, states: Any, **named: Any) -> tuple[nnc.Tensor, list[nnc.Tensor]]:
    given = None if states is None else tuple(states) if kind == "lstm" else states[0]
    y, last = getattr(nnc, kind)(x, layers, given, **named)
    return y, list(last) if kind == "lstm" else [last]


def compare(kind: str, layers: list[Any], size: int = N, lengths: Any = None, both: bool = False, variant: Any = None,
            **named: Any) -> None:
    sizes = [size, N] if kind == "lstm" else [size]
    states = [RNG.normal(size=(len(layers), B, n)) for n in sizes]
    wanted, last = network(kind, X, layers, states, lengths, both, variant)
    x = nnc.asarray(X.astype(np.float32))
    given = [nnc.asarray(s.astype(np.float32)) for s in states]
    ready = [narrow(w) for w in layers]

    def call(x: Any, *states: Any) -> Any:
        return run(kind, x, ready, states, lengths=lengths, bidirectional=both, **named)

    for f in (call, nnc.jit(call)):
        y, found = f(x, *given)
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-5)
        for a, b in zip(found, last, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)


KINDS = [("rnn", "tanh"), ("rnn", "relu"), ("gru", True), ("gru", False), ("lstm", None)]
OPTION = {"rnn": "nonlinearity", "gru": "reset_after"}
each_kind = pytest.mark.parametrize(("kind", "variant"), KINDS)


def option(kind: str, variant: Any) -> dict[str, Any]:
    return {OPTION[kind]: variant} if kind in OPTION else {}


@each_kind
def test_one_layer(kind: str, variant: Any, device: str) -> None:
    compare(kind, [weights(kind)], variant=variant, **option(kind, variant))


@each_kind
def test_layers_directions_and_lengths(kind: str, variant: Any, device: str) -> None:
    layers = [weights(kind), weights(kind), weights(kind, 2 * N, biases=False), weights(kind, 2 * N)]
    compare(kind, layers, lengths=LENGTHS, both=True, variant=variant, **option(kind, variant))


def test_projections(device: str) -> None:
    compare("lstm", [weights("lstm", projection=3), weights("lstm", 3, projection=3)], size=3)
    layers = [weights("lstm", projection=1), weights("lstm", projection=1)]
    compare("lstm", layers, size=1, both=True, lengths=LENGTHS)


@each_kind
def test_derivatives(kind: str, variant: Any) -> None:
    layers = [weights(kind), weights(kind)]

    def code(n: Any, x: Any, w: Any, u: Any, h: Any) -> Any:
        first = layers[0]._replace(input=w, hidden=u)
        states = [h] * (2 if kind == "lstm" else 1)
        named = option(kind, variant)
        y, last = run(kind, x, [first, layers[1]], states, bidirectional=True, lengths=LENGTHS, **named)
        return [y, *last]

    assert_derivatives(code, [X, layers[0].input, layers[0].hidden, RNG.normal(size=(2, B, N))])


@each_kind
def test_a_step_is_a_sequence_of_one(kind: str, variant: Any, device: str) -> None:
    w = narrow(weights(kind))
    x = nnc.asarray(X[:1].astype(np.float32))
    states = [nnc.asarray(RNG.normal(size=(1, B, N)).astype(np.float32)) for _ in range(2 if kind == "lstm" else 1)]
    y, last = run(kind, x, w, states, **option(kind, variant))
    cell: Any = getattr(nnc, f"{kind}_cell")
    state = tuple(s[0] for s in states) if kind == "lstm" else states[0][0]
    found = cell(x[0], state, w, **option(kind, variant))
    for a, b in zip(found if kind == "lstm" else [found], last, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy()[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y.numpy()[0], last[0].numpy()[0], rtol=1e-6)


def test_batch_first_and_no_state(device: str) -> None:
    w = narrow(weights("gru"))
    x = nnc.asarray(X.astype(np.float32))
    y, h = nnc.gru(x, w)
    other, again = nnc.gru(x.swapaxes(0, 1), w, batch_first=True)
    np.testing.assert_array_equal(y.numpy(), other.numpy().swapaxes(0, 1))
    np.testing.assert_array_equal(h.numpy(), again.numpy())
    zeros, _ = nnc.gru(x, w, nnc.zeros((1, B, N)))
    np.testing.assert_array_equal(y.numpy(), zeros.numpy())
    empty, same = nnc.lstm(x[:0], narrow(weights("lstm")))
    assert empty.shape == (0, B, N) and (same[0].numpy() == 0).all()


def test_dropout_is_between_layers(device: str) -> None:
    w = [narrow(weights("rnn")), narrow(weights("rnn", N))]
    x = nnc.asarray(X.astype(np.float32))
    one = nnc.rnn(x, w[:1], dropout=0.9, generator=nnc.Generator(1))[0]
    np.testing.assert_array_equal(one.numpy(), nnc.rnn(x, w[:1])[0].numpy())
    runs = [nnc.rnn(x, w, dropout=0.5, generator=nnc.Generator(s))[0].numpy() for s in (1, 1, 2)]
    assert (runs[0] == runs[1]).all() and (runs[0] != runs[2]).any()


def test_halves_are_computed_in_float32() -> None:
    w = nnc.RecurrentWeights(*[p if p is None else nnc.asarray(p.astype(np.float16)) for p in weights("lstm")])
    y, (h, c) = nnc.lstm(nnc.asarray(X.astype(np.float16)), w)
    assert (y.dtype, h.dtype, c.dtype) == ("float16",) * 3
    wide = nnc.RecurrentWeights(*[p if p is None else p.astype("float64") for p in w])
    exact = nnc.lstm(nnc.asarray(X.astype(np.float16).astype(np.float64)), wide)[0]
    np.testing.assert_allclose(y.numpy(), exact.numpy(), rtol=3e-3, atol=3e-3)


def test_vmapped(device: str) -> None:
    w = narrow(weights("gru"))
    x = nnc.asarray(RNG.normal(size=(2, T, B, FEATURES)).astype(np.float32))
    found = nnc.vmap(lambda v: nnc.gru(v, w)[0])(x)
    for k in range(2):
        np.testing.assert_allclose(found.numpy()[k], nnc.gru(x[k], w)[0].numpy(), rtol=1e-5, atol=1e-6)


def test_deferred(device: str) -> None:
    w = narrow(weights("lstm"))
    x = nnc.asarray(X.astype(np.float32))
    with nnc.deferred():
        late, _ = nnc.lstm(x, w)
    np.testing.assert_allclose(late.numpy(), nnc.lstm(x, w)[0].numpy(), rtol=1e-6)


W = weights("lstm")


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda: nnc.lstm(X[0], W), ShapeError, r"(?s)lstm: x is float64.*\(length, batch, features\).*test_recurrent"),
    (lambda: nnc.lstm(X, [W, W, W], bidirectional=True), ShapeError, "3 weights for 2 directions"),
    (lambda: nnc.lstm(X, []), ShapeError, "0 weights"),
    (lambda: nnc.lstm(X, (W.input, W.hidden)), OperandError, "give RecurrentWeights"),
    (lambda: nnc.lstm(X, W._replace(input=W.input[:, :7])), ShapeError, r"\(features, 4 n\)"),
    (lambda: nnc.lstm(X, W._replace(hidden=W.hidden[:1])), ShapeError, "hidden weight is float64.*, expected shape"),
    (lambda: nnc.lstm(X, W, (np.zeros((1, B, 5)), np.zeros((1, B, N)))), ShapeError, r"= \(1, 3, 2\)"),
    (lambda: nnc.lstm(X, W, lengths=[1, 2]), ShapeError, "an integer for each of 3 sequences"),
    (lambda: nnc.rnn(X, weights("rnn"), nonlinearity="gelu"), AttributeValueError, "nonlinearity 'gelu'"),
    (lambda: nnc.gru(X, weights("gru"), dropout=-1), AttributeValueError, "gru: rate is -1"),
    (lambda: nnc.lstm_cell(X[0], (np.zeros((B, 5)), np.zeros((B, N))), W), ShapeError, r"lstm_cell: .*\(batch, 2\)"),
])
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()

"""Recurrent modules against plain loops in float64, in the modes and on the devices."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError, ShapeError
from tests.support import near, numbers

T, B, FEATURES, N = 4, 3, 5, 2
LENGTHS = [4, 1, 2]
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn": ("RNN", {}), "relu": ("RNN", {"nonlinearity": "relu"}), "gru": ("GRU", {}),
    "gru, reset before": ("GRU", {"reset_after": False}), "lstm": ("LSTM", {}), "no bias": ("LSTM", {"bias": False}),
}  # fmt: skip
each = pytest.mark.parametrize("variant", VARIANTS)


def step(cell: nn.Module, x: Any, state: list[Any]) -> list[Any]:
    """The published equations, gate after gate, for one example or a batch."""
    s = {name: a.astype(np.float64) for name, a in cell.state_dict().items()}
    gates = {"RNNCell": 1, "GRUCell": 3, "LSTMCell": 4}[type(cell).__name__]
    xs = np.split(x @ s["input_weight"] + s.get("input_bias", 0), gates, -1)
    h, bias = state[0], np.broadcast_to(s.get("hidden_bias", 0), gates * cell.hidden_size)
    us = np.split(h @ s["hidden_weight"] + bias, gates, -1)
    if gates == 1:
        z = xs[0] + us[0]
        return [np.tanh(z) if cell.nonlinearity == "tanh" else np.maximum(z, 0)]
    if gates == 3:
        r, z = expit(xs[0] + us[0]), expit(xs[1] + us[1])
        before = (r * h) @ np.split(s["hidden_weight"], 3, 1)[2] + np.split(bias, 3)[2]
        n = np.tanh(xs[2] + (r * us[2] if cell.reset_after else before))
        return [(1 - z) * n + z * h]
    i, f, g, o = (a + b for a, b in zip(xs, us, strict=True))
    c = expit(f) * state[1] + expit(i) * np.tanh(g)
    h = expit(o) * np.tanh(c)
    return [h @ s["projection_weight"] if "projection_weight" in s else h, c]


def gone_through(model: Any, x: Any, lengths: Any = None) -> tuple[Any, list[Any]]:
    """(batch, length, n), and the states, each stacked over layers and directions; from zeros."""
    directions, last = 2 if model.bidirectional else 1, []
    lengths = [x.shape[1]] * len(x) if lengths is None else lengths
    for k in range(0, len(model.layers), directions):
        sides = []
        for d in range(directions):
            cell = model.layers[k + d]
            sizes = [cell.state_size, cell.hidden_size][: cell.states]
            out, states = np.zeros((*x.shape[:2], sizes[0])), [np.zeros((len(x), n)) for n in sizes]
            for b, length in enumerate(lengths):
                state = [s[b] for s in states]
                for t in range(length)[:: -1 if d else 1]:
                    state = step(cell, x[b, t], state)
                    out[b, t] = state[0]
                for s, found in zip(states, state, strict=True):
                    s[b] = found
            sides.append(out)
            last.append(states)
        x = np.concatenate(sides, -1)
    return x, [np.stack(s) for s in zip(*last, strict=True)]


def make(variant: str, *sizes: int, **options: Any) -> Any:
    kind, own = VARIANTS[variant]
    return getattr(nn, kind)(*(sizes or (FEATURES, N)), generator=nnc.Generator(3), **own, **options)


def as_list(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


# ---- cells
@each
def test_cells(variant: str) -> None:
    cell, x = make(variant).layers[0], numbers(B, FEATURES)
    first = [numbers(B, N, seed=k + 1) for k in range(cell.states)]
    for state in ([np.zeros((B, N))] * cell.states, first):
        given = [nnc.asarray(s.astype(np.float32)) for s in state]
        found = as_list(cell(nnc.asarray(x), given[0] if cell.states == 1 else tuple(given)))
        for a, b in zip(found, step(cell, x, state), strict=True):
            near(a, b)
    for a, b in zip(as_list(cell(nnc.asarray(x))), step(cell, x, [np.zeros((B, N))] * cell.states), strict=True):
        near(a, b)


def test_a_cell_with_a_projection() -> None:
    cell, x = nn.LSTMCell(FEATURES, 4, projection=2), numbers(B, FEATURES)
    state = cell(nnc.asarray(x))
    for a, b in zip(state, step(cell, x, [np.zeros((B, 2)), np.zeros((B, 4))]), strict=True):
        near(a, b)
    assert repr(cell) == "LSTMCell(5, 4, projection=2)"


def test_first_weights_are_within_their_bound_or_what_an_initialiser_gives() -> None:
    cell = nn.GRUCell(3, 16, generator=nnc.Generator(0))
    for name, a in cell.state_dict().items():
        assert abs(a).max() <= 0.25, name
        assert a.std() == pytest.approx(0.25 / np.sqrt(3), rel=0.3), name
    from nnc_core.nn.initialise import standard

    chosen = nn.RNNCell(100, 4, init=standard).state_dict()
    assert abs(chosen["input_weight"]).max() <= 0.1 and abs(chosen["hidden_weight"]).max() > 0.1
    assert not chosen["input_bias"].any()


# ---- sequences
@each
@pytest.mark.parametrize("options", [{}, {"layers": 2}, {"layers": 2, "bidirectional": True}], ids=str)
def test_sequences(variant: str, options: dict[str, Any]) -> None:
    model, x = make(variant, **options), numbers(B, T, FEATURES)
    for lengths in (None, LENGTHS):
        expected, last = gone_through(model, x, lengths)
        for run in (model, nnc.jit(model)):
            y, state = run(nnc.asarray(x), lengths=None if lengths is None else nnc.asarray(lengths))
            near(y, expected)
            for a, b in zip(as_list(state), last, strict=True):
                near(a, b)
    with nnc.deferred():
        y, _ = model(nnc.asarray(x))
    near(y, gone_through(model, x)[0])


def test_projections_of_several_layers() -> None:
    model = nn.LSTM(FEATURES, 4, 2, projection=3, bidirectional=True)
    x = numbers(B, T, FEATURES)
    y, (h, c) = model(nnc.asarray(x))
    expected, last = gone_through(model, x)
    near(y, expected), near(h, last[0]), near(c, last[1])
    assert model.output_size == 6 and h.shape == (4, B, 3) and c.shape == (4, B, 4)


@each
def test_a_sequence_in_two_halves_goes_on_from_the_state(variant: str) -> None:
    model, x = make(variant, layers=2), nnc.asarray(numbers(B, T, FEATURES))
    whole, last = model(x)
    first, state = model(x[:, :2])
    second, after = model(x[:, 2:], state)
    near(nnc.concat([first, second], axis=1), whole.numpy())
    for a, b in zip(as_list(after), as_list(last), strict=True):
        near(a, b.numpy())


@pytest.mark.parametrize("both", [False, True])
def test_layouts_and_what_is_given_back(both: bool) -> None:
    model, x = make("lstm", bidirectional=both), numbers(B, T, FEATURES)
    expected, last = gone_through(model, x, LENGTHS)
    time_first = copy.deepcopy(model)
    time_first.batch_first = False
    y, _ = time_first(nnc.asarray(x.transpose(1, 0, 2)), lengths=nnc.asarray(LENGTHS))
    near(y, expected.transpose(1, 0, 2))
    model.returns = "outputs"
    near(model(nnc.asarray(x), lengths=nnc.asarray(LENGTHS)), expected)
    model.returns = "last"
    near(model(nnc.asarray(x), lengths=nnc.asarray(LENGTHS)), np.concatenate(last[0], -1))


def test_it_is_a_layer_among_others() -> None:
    """Owl's char-LSTM: embedding, lstm, linear."""
    model = nn.Sequential(nn.Embedding(7, FEATURES), nn.LSTM(FEATURES, N, returns="last"), nn.Linear(N, 3))
    assert model(nnc.asarray([[1, 2, 3], [0, 6, 6]])).shape == (2, 3)


def test_dropout_is_between_layers_and_in_training_only() -> None:
    model, x = make("gru", layers=2, dropout=0.5), nnc.asarray(numbers(B, T, FEATURES))
    first, second = model(x)[0].numpy(), model(x)[0].numpy()
    assert not np.array_equal(first, second)
    model.eval()
    near(model(x)[0], gone_through(model, x.numpy())[0])
    assert "generator" in model.named_buffers()
    assert make("gru", dropout=0.5).generator is None, "there is nothing between the layers of one"


@each
def test_gradients_against_finite_differences(variant: str) -> None:
    model = make(variant, layers=2, bidirectional=True, dtype="float64")
    x = nnc.asarray(numbers(2, 3, FEATURES).astype(np.float64))
    both = nn.value_and_grad(model, lambda: (model(x, lengths=nnc.asarray([3, 2]))[0] ** 2).sum())
    _, grads = both()
    _, compiled = nnc.jit(both)()
    rng = np.random.default_rng(1)
    for name, p in model.named_parameters().items():
        before, direction, losses = p.read(), rng.normal(size=p.spec.shape), []
        for sign in (1, -1):
            p.write(before + nnc.asarray(direction * 1e-5 * sign))
            losses.append(both()[0].item())
        p.write(before)
        wanted = (losses[0] - losses[1]) / 2e-5
        for found in (grads, compiled):
            np.testing.assert_allclose((found[name].numpy() * direction).sum(), wanted, rtol=1e-5, atol=1e-8,
                                       err_msg=name)


def test_training_by_both_ways_of_gradients() -> None:
    """The dynamic graph and value_and_grad, eager and compiled, go the same way."""
    x, y = nnc.asarray(numbers(B, T, FEATURES)), nnc.asarray(numbers(B, N, seed=5))

    def loss_of(model: nn.Module) -> Any:
        return ((model(x) - y) ** 2).mean()

    losses = []
    for way in ("backward", "eager", "compiled"):
        model = make("lstm", returns="last")
        minimiser = optim.SGD(model.named_parameters(), 0.5)
        found = []
        if way == "backward":
            model.requires_grad_()
            for _ in range(3):
                loss = loss_of(model)
                loss.backward()
                minimiser.update(model.gradients())
                model.zero_grad()
                found.append(loss.item())
        else:
            both = nn.value_and_grad(model, lambda model=model: loss_of(model))
            run = optim.make_step(both, minimiser, eager=way == "eager")
            found = [float(run()) for _ in range(3)]
        losses.append(found)
    assert losses[0][2] < losses[0][0]
    np.testing.assert_allclose(losses[1:], [losses[0]] * 2, rtol=1e-5)


@pytest.mark.parametrize("activation", [nnc.tanh, nnc.softsign, nn.Sigmoid()], ids=["tanh", "softsign", "a module"])
def test_owls_recurrent(activation: Any) -> None:
    model = nn.Recurrent(FEATURES, N, 3, activation, nnc.exp, generator=nnc.Generator(1))
    s, x = model.state_dict(), numbers(B, T, FEATURES)
    act = {nnc.tanh: np.tanh, nnc.softsign: lambda a: a / (1 + abs(a))}.get(activation, expit)
    h = np.zeros((B, N))
    for t in range(T):
        h = act(x[:, t] @ s["input.weight"] + s["input.bias"] + h @ s["hidden.weight"])
    expected = np.exp(h @ s["output.weight"] + s["output.bias"])
    near(model(nnc.asarray(x)), expected)
    near(nnc.jit(model)(nnc.asarray(x)), expected)
    model.output_activation = None
    near(model(nnc.asarray(x)), np.log(expected))


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.LSTM(0, 2), AttributeValueError, "LSTM: input_size is 0"),
    (lambda: nn.LSTM(2, 2, 0), AttributeValueError, "layers is 0"),
    (lambda: nn.GRU(2, 2, dropout=1.0), AttributeValueError, "dropout is 1.0"),
    (lambda: nn.GRU(2, 2, returns="state"), AttributeValueError, "returns 'state' is none of all, outputs, last"),
    (lambda: nn.RNN(2, 2, nonlinearity="exp"), AttributeValueError, "nonlinearity 'exp' is none of tanh, relu"),
    (lambda: nn.LSTM(2, 3, projection=3), AttributeValueError, "projection is 3, expected less than"),
    (lambda: nn.Recurrent(2, 3, 4, "tanh"), AttributeValueError, "activation is 'tanh', expected a function"),
    (lambda: nn.LSTM(2, 3, 2)(nnc.ones((1, 4, 3))), ShapeError,
     r"LSTM\(2, 3, layers=2\): x is float32\[1,4,3\], expected \(batch, length, 2\)"),
    (lambda: nn.LSTM(2, 3, batch_first=False)(nnc.ones((4, 2))), ShapeError, r"expected \(length, batch, 2\)"),
    (lambda: nn.GRU(2, 3)(nnc.ones((1, 4, 2)), nnc.ones((1, 2, 3))), ShapeError, "a state is"),
    (lambda: nn.GRUCell(2, 3)(nnc.ones((4, 2)), nnc.ones((3, 3))), ShapeError, r"GRUCell\(2, 3\): h is float32\[3,3\]"),
])
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_text() -> None:
    assert repr(nn.GRU(2, 3, 2, dropout=0.1)) == ("GRU(2, 3, layers=2, dropout=0.1)\n"
                                                  "  layers.0: GRUCell(2, 3)\n"
                                                  "  layers.1: GRUCell(3, 3)")

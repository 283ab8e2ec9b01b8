"""Recurrent networks: single steps, and whole sequences in layers and both directions.

Gates are in PyTorch's order.  Weights multiply from the right: x @ input + h @ hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.dropouts import check_rate, kept
from nnc_core.functions.floats import one_dtype
from nnc_core.functions.pieces import cut
from nnc_core.functions.recurrent_variants import (
    Activation,
    StepWeights,
    Variant,
    gru_variant,
    lstm_variant,
    over_rows,
    rnn_variant,
    variant_of,
)
from nnc_core.operator.recurrent import gru_step, lstm_step, products, rnn_step
from nnc_core.operator.wide import narrowed, widened_operand
from nnc_core.random.generator import Generator
from nnc_core.type import DimLike
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, names_itself, stack_of
from nnc_core.values.as_one import as_one
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["RecurrentWeights", "gru", "gru_cell", "lstm", "lstm_cell", "rnn", "rnn_cell"]


class RecurrentWeights(NamedTuple):
    """Weights of one layer in one direction, for states of n numbers and g gates (rnn 1, gru 3, lstm 4): input
    (features, g n), hidden (n, g n), biases (g n) or None.  An lstm may have a projection
    (n, m): its states have m numbers then, and hidden is (m, g n); its peepholes (3, n) are what the gates input,
    forget and output take of the cell."""

    input: ArrayLike
    hidden: ArrayLike
    bias: ArrayLike | None = None
    hidden_bias: ArrayLike | None = None
    projection: ArrayLike | None = None
    peepholes: ArrayLike | None = None


def _tensorwise(name: str) -> Activation:
    return lambda x: Tensor(getattr(F, name)(as_value(x)))


_NONLINEARITIES = {name: _tensorwise(name) for name in ("tanh", "relu")}
GRU_GATES = (_tensorwise("sigmoid"), _tensorwise("tanh"))
LSTM_GATES = (*GRU_GATES, _tensorwise("tanh"))
Layers: TypeAlias = "RecurrentWeights | Sequence[RecurrentWeights]"
"""From the first layer to the last, with two for each layer, forwards and backwards, if both directions are gone."""
Direction: TypeAlias = Callable[["_Layer", Value, "list[Value]", "tuple[Value, ...]", bool], "list[Value]"]
"""(weights, x, states, mask, reverse) -> the last states, then all results."""


class _Layer(NamedTuple):
    """Values of one dtype; a missing bias is zeros."""

    input: Value
    hidden: Value
    bias: Value
    hidden_bias: Value
    projection: tuple[Value, ...]
    peepholes: tuple[Value, ...]


def _zeros(like: Value, *shape: DimLike) -> Value:
    with beside(like):
        return F.full(shape=shape, value=0, dtype=like.dtype)


def _layer(given: Any, x: Value, gates: int) -> _Layer:
    if not isinstance(given, tuple) or len(given) != len(RecurrentWeights._fields):
        raise OperandError(f"a layer's weights are {type(given).__name__}", hint="give RecurrentWeights")
    w, u, b, c, p, q = [None if part is None else as_value_beside(part, x) for part in given]
    if w is None or u is None or w.ndim != 2 or u.ndim != 2 or (isinstance(w.shape[1], int) and w.shape[1] % gates):
        raise ShapeError(f"weights {w and w.spec} and {u and u.spec}, expected matrices (features, {gates} n) and "
                         f"(n, {gates} n)")
    if q is not None and (gates != 4 or q.shape != (3, w.shape[1] // gates)):
        raise ShapeError(f"peepholes are {q.spec}, expected (3, {w.shape[1] // gates}), of an lstm")
    zeros = _zeros(x, w.shape[1])
    return _Layer(w, u, zeros if b is None else b, zeros if c is None else c, () if p is None else (p,),
                  () if q is None else (q,))


def _alike(x: Value, states: Sequence[Value], layers: Sequence[_Layer]) -> tuple[Value, list[Value], list[_Layer]]:
    """Everything of one dtype."""
    flat = [x, *states, *[v for a in layers for v in (*a[:4], *a.projection, *a.peepholes)]]
    found = iter(one_dtype(flat))
    y, after = next(found), [next(found) for _ in states]
    made = []
    for layer in layers:
        w, u, b, c = (next(found) for _ in range(4))
        made.append(_Layer(w, u, b, c, tuple([next(found) for _ in layer.projection]),
                           tuple([next(found) for _ in layer.peepholes])))
    return y, after, made


def _sizes(layer: _Layer, gates: int, states: int) -> list[DimLike]:
    """The number of elements of each state."""
    n = layer.input.shape[1] // gates
    return [layer.projection[0].shape[1] if layer.projection else n, n][:states]


# ---- single steps
def _wide(layer: _Layer) -> list[Value]:
    return [widened_operand(F, v) for v in (layer.hidden, *layer.projection)]


def _step_weights(layer: _Layer) -> StepWeights:
    hidden, bias, *rest = [widened_operand(F, v) for v in (layer.hidden, layer.hidden_bias, *layer.projection,
                                                           *layer.peepholes)]
    split = len(layer.projection)
    return StepWeights(hidden, bias, tuple(rest[:split]), tuple([cut(p, 0, k, k + 1) for p in rest[split:]
                                                                 for k in range(3)]))


def _one_step(x: ArrayLike, states: Sequence[ArrayLike], weights: RecurrentWeights,
              gates: int) -> tuple[Value, list[Value], _Layer]:
    stack = stack_of((x, *states))
    v = as_value(x, stack)
    v, after, (layer,) = _alike(v, [as_value(s, stack) for s in states], [_layer(weights, v, gates)])
    for s, size in zip(after, _sizes(layer, gates, len(after)), strict=True):
        if v.ndim != 2 or s.shape != (v.shape[0], size):
            raise ShapeError(f"x is {v.spec}, a state {s.spec}, expected (batch, features) and (batch, {size})")
    return v, after, layer


def _stepped(found: Sequence[Value], x: Value) -> list[Tensor]:
    return [Tensor(narrowed(F, y, x.dtype)) for y in found]


@names_itself
@as_one
def rnn_cell(x: ArrayLike, h: ArrayLike, weights: RecurrentWeights, /, *, nonlinearity: str = "tanh") -> Tensor:
    """One step of `rnn`: x (batch, features), the state (batch, n) -> the next state."""
    v, (s,), layer = _one_step(x, [h], weights, 1)
    rows = products(F, v, layer.input, F.add(layer.bias, layer.hidden_bias))
    return _stepped(rnn_step(F, rows, [widened_operand(F, s)], _wide(layer), nonlinearity), v)[0]


@names_itself
@as_one
def gru_cell(x: ArrayLike, h: ArrayLike, weights: RecurrentWeights, /, *, reset_after: bool = True) -> Tensor:
    """One step of `gru`: x (batch, features), the state (batch, n) -> the next state."""
    v, (s,), layer = _one_step(x, [h], weights, 3)
    rows = products(F, v, layer.input, layer.bias)
    kept_weights = [*_wide(layer), widened_operand(F, layer.hidden_bias)]
    return _stepped(gru_step(F, rows, [widened_operand(F, s)], kept_weights, reset_after), v)[0]


@names_itself
@as_one
def lstm_cell(x: ArrayLike, state: tuple[ArrayLike, ArrayLike], weights: RecurrentWeights, /) -> tuple[Tensor, Tensor]:
    """One step of `lstm`: x (batch, features), the state (h, c), both (batch, n) -> the next (h, c)."""
    v, states, layer = _one_step(x, list(state), weights, 4)
    rows = products(F, v, layer.input, F.add(layer.bias, layer.hidden_bias))
    wide = [widened_operand(F, s) for s in states]
    if layer.peepholes:
        h, c = _stepped(lstm_variant(Variant(LSTM_GATES), _step_weights(layer))(rows, wide), v)
    else:
        h, c = _stepped(lstm_step(F, rows, wide, _wide(layer)), v)
    return h, c


# ---- sequences
class _Sequences(NamedTuple):
    """Sequences that a whole network is run on."""

    x: Value
    states: list[Value]
    layers: list[_Layer]
    mask: tuple[Value, ...]
    directions: int
    reverse: bool


def _sequences(x: ArrayLike, weights: Layers, states: Sequence[ArrayLike] | None, gates: int, count: int,
               lengths: ArrayLike | None, both: bool, reverse: bool, batch_first: bool) -> _Sequences:
    if both and reverse:
        raise AttributeValueError("both directions are gone anyway", hint="leave out reverse, or bidirectional")
    directions = 2 if both else 1
    given = [weights] if isinstance(weights, RecurrentWeights) else list(weights)
    if not given or len(given) % directions:
        raise ShapeError(f"{len(given)} weights for {directions} directions")
    stack = stack_of((x, *(states or ())))
    v = as_value(x, stack)
    if v.ndim != 3:
        raise ShapeError(f"x is {v.spec}, expected {'(batch, length' if batch_first else '(length, batch'}, features)")
    v = F.permute(v, axes=(1, 0, 2)) if batch_first else v
    layers = [_layer(w, v, gates) for w in given]
    sizes = _sizes(layers[0], gates, count)
    first = [_zeros(v, len(layers), v.shape[1], n) for n in sizes] if states is None else \
        [as_value(s, stack) for s in states]
    for s, n in zip(first, sizes, strict=True):
        if s.shape != (len(layers), v.shape[1], n):
            raise ShapeError(f"a state is {s.spec}, expected (layers * directions, batch, n) = "
                             f"({len(layers)}, {v.shape[1]}, {n})")
    mask = () if lengths is None else (_mask(as_value_beside(lengths, v), v),)
    with beside(v):
        return _Sequences(*_alike(v, first, layers), mask, directions, bool(reverse))


def _mask(lengths: Value, x: Value) -> Value:
    if lengths.shape != (x.shape[1],) or lengths.dtype.kind not in "iu":
        raise ShapeError(f"lengths are {lengths.spec}, expected an integer for each of {x.shape[1]} sequences")
    with beside(x):
        steps = F.reshape(F.arange(size=x.shape[0], dtype=int64), shape=(x.shape[0], 1))
    return F.less(steps, F.cast(lengths, dtype=int64))


def _state(v: Value, k: int) -> Value:
    return F.reshape(cut(v, 0, k, k + 1), shape=v.shape[1:])


def _run(direction: Direction, task: _Sequences, dropout: float, generator: Generator | None,
         batch_first: bool) -> tuple[Tensor, list[Tensor]]:
    with beside(task.x):
        return _gone_through(direction, task, dropout, generator, batch_first)


def _gone_through(direction: Direction, task: _Sequences, dropout: float, generator: Generator | None,
                  batch_first: bool) -> tuple[Tensor, list[Tensor]]:
    directions = task.directions
    x, last = task.x, []
    for k in range(0, len(task.layers), directions):
        if k and dropout:
            x = kept(x, dropout, generator)
        found = [direction(task.layers[k + d], x, [_state(s, k + d) for s in task.states], task.mask,
                           task.reverse or d == 1)
                 for d in range(directions)]
        last += [f[:-1] for f in found]
        x = found[0][-1] if directions == 1 else F.concat(*[f[-1] for f in found], axis=2)
    together = [F.concat(*[F.reshape(v, shape=(1, *v.shape)) for v in states], axis=0)
                for states in zip(*last, strict=True)]
    return Tensor(F.permute(x, axes=(1, 0, 2)) if batch_first else x), [Tensor(s) for s in together]


@names_itself
def rnn(x: ArrayLike, weights: Layers, h: ArrayLike | None = None, /, *, nonlinearity: str | Activation = "tanh",
        clip: float | None = None, lengths: ArrayLike | None = None, bidirectional: bool = False,
        reverse: bool = False, dropout: float = 0.0, batch_first: bool = False,
        generator: Generator | None = None) -> tuple[Tensor, Tensor]:
    """h = tanh(x @ input + h @ hidden + biases) along sequences, or relu, or a function of tensors; arguments and
    results as of `lstm`, with one state."""
    check_rate(dropout)
    task = _sequences(x, weights, None if h is None else [h], 1, 1, lengths, bidirectional, reverse, batch_first)
    own = _NONLINEARITIES.get(nonlinearity) if isinstance(nonlinearity, str) and clip is not None else nonlinearity
    variant = None if own is None or isinstance(own, str) else variant_of([own], [own], clip)

    def direction(w: _Layer, v: Value, states: list[Value], mask: tuple[Value, ...], reverse: bool) -> list[Value]:
        bias = F.add(w.bias, w.hidden_bias)
        if variant is not None:
            step = rnn_variant(variant, _step_weights(w))
            return over_rows(step, products(F, v, w.input, bias), states, mask, reverse)
        return F.picks(F.rnn(v, *states, w.input, w.hidden, bias, *mask, nonlinearity=str(nonlinearity),
                             reverse=reverse))

    y, (last,) = _run(direction, task, dropout, generator, batch_first)
    return y, last


@names_itself
def gru(x: ArrayLike, weights: Layers, h: ArrayLike | None = None, /, *, reset_after: bool = True,
        activations: Sequence[Activation] | None = None, clip: float | None = None, lengths: ArrayLike | None = None,
        bidirectional: bool = False, reverse: bool = False, dropout: float = 0.0, batch_first: bool = False,
        generator: Generator | None = None) -> tuple[Tensor, Tensor]:
    """h = (1 - z) * n + z * h along sequences, with gates reset, update, new; arguments and results as of `lstm`, with
    one state.  The reset gate is applied to h @ hidden (PyTorch's way), or else to h before.  `activations` are those
    of the gates and of the new state."""
    check_rate(dropout)
    variant = variant_of(activations, GRU_GATES, clip)
    task = _sequences(x, weights, None if h is None else [h], 3, 1, lengths, bidirectional, reverse, batch_first)

    def direction(w: _Layer, v: Value, states: list[Value], mask: tuple[Value, ...], reverse: bool) -> list[Value]:
        if variant is not None:
            step = gru_variant(variant, _step_weights(w), reset_after)
            return over_rows(step, products(F, v, w.input, w.bias), states, mask, reverse)
        return F.picks(F.gru(v, *states, w.input, w.hidden, w.bias, w.hidden_bias, *mask, reset_after=bool(reset_after),
                             reverse=reverse))

    y, (last,) = _run(direction, task, dropout, generator, batch_first)
    return y, last


@names_itself
def lstm(x: ArrayLike, weights: Layers, state: tuple[ArrayLike, ArrayLike] | None = None, /, *,
         activations: Sequence[Activation] | None = None, clip: float | None = None, coupled: bool = False,
         lengths: ArrayLike | None = None, bidirectional: bool = False, reverse: bool = False, dropout: float = 0.0,
         batch_first: bool = False, generator: Generator | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """c = f * c + i * g, h = o * tanh(c) along sequences, with gates input, forget, cell, output.

    x (length, batch, features), or (batch, length, features) if `batch_first`; weights of one or more layers, each with
    two directions if `bidirectional`; the state (h, c), each (layers * directions, batch, n), zeros without one.
    Sequence k has lengths[k] steps: behind them results are 0, and the state stays.  With `reverse` sequences are gone
    through from their last step.  `dropout` is the rate at which results are left out between layers.  Gives the
    results of the last layer, (length, batch, directions * n), and the last state.

    `activations` are functions of tensors in place of the gates' sigmoid, the tanh of what goes into the cell, and the
    tanh of what comes out; what they are given is brought into [-clip, clip]; `coupled` makes the forget gate
    1 - the input gate.
    """
    check_rate(dropout)
    variant = variant_of(activations, LSTM_GATES, clip, coupled)
    task = _sequences(x, weights, state, 4, 2, lengths, bidirectional, reverse, batch_first)

    def direction(w: _Layer, v: Value, states: list[Value], mask: tuple[Value, ...], reverse: bool) -> list[Value]:
        bias = F.add(w.bias, w.hidden_bias)
        if variant is not None or w.peepholes:
            step = lstm_variant(variant or Variant(LSTM_GATES), _step_weights(w))
            return over_rows(step, products(F, v, w.input, bias), states, mask, reverse)
        return F.picks(F.lstm(v, *states, w.input, w.hidden, bias, *w.projection, *mask,
                              projected=bool(w.projection), reverse=reverse))

    y, (h, c) = _run(direction, task, dropout, generator, batch_first)
    return y, (h, c)

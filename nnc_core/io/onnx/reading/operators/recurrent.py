"""Recurrent networks: one or two directions, each a call of nnc's own with its gates in nnc's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import public as nnc
from nnc_core.functions.recurrent import RecurrentWeights
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor

Function = Callable[..., Any]
FUNCTIONS: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {  # with ONNX' alpha and beta
    "relu": (lambda x, a, b: nnc.relu(x), 0, 0),
    "tanh": (lambda x, a, b: nnc.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: nnc.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: nnc.add(nnc.multiply(x, a), b), 1, 0),
    "leakyrelu": (lambda x, a, b: nnc.leaky_relu(x, slope=a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: nnc.where(nnc.greater(x, a), x, nnc.zeros_like(x)), 1, 0),
    "scaledtanh": (lambda x, a, b: nnc.multiply(nnc.tanh(nnc.multiply(x, b)), a), 1, 1),
    "hardsigmoid": (lambda x, a, b: nnc.clip(nnc.add(nnc.multiply(x, a), b), 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: nnc.elu(x, alpha=a), 1, 0),
    "softsign": (lambda x, a, b: nnc.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: nnc.softplus(x), 0, 0),
}


def _activations(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], usual: Sequence[str],
                 directions: int) -> list[list[Function] | None]:
    """Functions of each direction; None where they are the usual ones."""
    listed = [name.lower() for name in names] or list(usual) * directions
    left, right, made = list(alphas), list(betas), []
    for name in listed:
        if name not in FUNCTIONS:
            raise AttributeValueError(f"activation {name!r} is none of {', '.join(FUNCTIONS)}")
        function, alpha, beta = FUNCTIONS[name]
        takes_alpha, takes_beta = alpha != 0 or name == "hardsigmoid", beta != 0 or name == "affine"
        a = left.pop(0) if takes_alpha and left else alpha
        b = right.pop(0) if takes_beta and right else beta
        made.append(_bound(function, a, b))
    n = len(usual)
    return [None if listed[i * n:(i + 1) * n] == list(usual) else made[i * n:(i + 1) * n] for i in range(directions)]


def _bound(function: Callable[[Any, float, float], Any], a: float, b: float) -> Function:
    return lambda x: function(x, a, b)


def _reordered(w: Tensor, order: Sequence[int]) -> Tensor:
    """The blocks of gates along the last axis in another order."""
    if len(order) == 1:
        return w
    each = w.shape[-1] // len(order)
    return nnc.concat([w[..., i * each:(i + 1) * each] for i in order], axis=-1)


def _weights(w: Tensor, r: Tensor, b: Tensor | None, order: Sequence[int],
             peepholes: Tensor | None = None) -> RecurrentWeights:
    """Weights of one direction: gates in our order, transposed, the bias in two halves."""
    halves: list[Any] = [None, None]
    if b is not None:
        half = b.shape[0] // 2
        halves = [_reordered(b[:half], order), _reordered(b[half:], order)]
    looks = None
    if peepholes is not None:
        parts = nnc.reshape(peepholes, (3, -1))
        looks = nnc.stack([parts[0], parts[2], parts[1]])  # input, output, forget in ONNX
    return RecurrentWeights(_reordered(nnc.matrix_transpose(w), order), _reordered(nnc.matrix_transpose(r), order),
                            halves[0], halves[1], None, looks)


def _reversed(direction: str) -> list[bool]:
    found = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if found is None:
        raise AttributeValueError(f"direction {direction!r} is none of forward, reverse, bidirectional")
    return found


def _run(run: Function, x: Tensor, states: Sequence[Tensor | None], direction: str,
         layout: int) -> tuple[Tensor, ...]:
    """Results (length, directions, batch, n) and last states (directions, batch, n), or with batches first."""
    x = nnc.swapaxes(x, 0, 1) if layout else x
    given = [None if s is None else nnc.swapaxes(s, 0, 1) if layout else s for s in states]
    results, last = [], []
    for i, backwards in enumerate(_reversed(direction)):
        y, state = run(i, x, [None if s is None else s[i:i + 1] for s in given], backwards)
        results.append(y)
        last.append([s[0] for s in (state if isinstance(state, tuple) else (state,))])
    y = nnc.stack(results, axis=1)
    ends = [nnc.stack(list(parts)) for parts in zip(*last, strict=True)]
    if layout:
        y, ends = nnc.permute_dims(y, (2, 0, 1, 3)), [nnc.swapaxes(s, 0, 1) for s in ends]
    return (y, *ends)


@operator("RNN")
def rnn(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
        first: Tensor | None = None, *, activation_alpha: tuple[float, ...] = (),
        activation_beta: tuple[float, ...] = (), activations: tuple[str, ...] = (), clip: float | None = None,
        direction: str = "forward", hidden_size: int = 0, layout: int = 0, output_sequence: int = 0) -> Any:
    functions = _activations(activations, activation_alpha, activation_beta, ("tanh",), int(w.shape[0]))

    def run(i: int, x: Tensor, states: list[Any], backwards: bool) -> Any:
        chosen = functions[i]
        name = activations[i].lower() if activations else "tanh"
        function: Any = name if chosen is None or name == "relu" else chosen[0]
        return nnc.rnn(x, _weights(w[i], r[i], None if b is None else b[i], (0,)), states[0], nonlinearity=function,
                       clip=clip, lengths=lengths, reverse=backwards)

    return _run(run, x, [first], direction, layout)


@operator("GRU")
def gru(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
        first: Tensor | None = None, *, activation_alpha: tuple[float, ...] = (),
        activation_beta: tuple[float, ...] = (), activations: tuple[str, ...] = (), clip: float | None = None,
        direction: str = "forward", hidden_size: int = 0, layout: int = 0, linear_before_reset: int = 0,
        output_sequence: int = 0) -> Any:
    functions = _activations(activations, activation_alpha, activation_beta, ("sigmoid", "tanh"), int(w.shape[0]))

    def run(i: int, x: Tensor, states: list[Any], backwards: bool) -> Any:
        weights = _weights(w[i], r[i], None if b is None else b[i], (1, 0, 2))
        return nnc.gru(x, weights, states[0], reset_after=bool(linear_before_reset), activations=functions[i],
                       clip=clip, lengths=lengths, reverse=backwards)

    return _run(run, x, [first], direction, layout)


@operator("LSTM")
def lstm(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
         first: Tensor | None = None, first_cell: Tensor | None = None, peepholes: Tensor | None = None, *,
         activation_alpha: tuple[float, ...] = (), activation_beta: tuple[float, ...] = (),
         activations: tuple[str, ...] = (), clip: float | None = None, direction: str = "forward",
         hidden_size: int = 0, input_forget: int = 0, layout: int = 0, output_sequence: int = 0) -> Any:
    functions = _activations(activations, activation_alpha, activation_beta, ("sigmoid", "tanh", "tanh"),
                             int(w.shape[0]))

    def run(i: int, x: Tensor, states: list[Any], backwards: bool) -> Any:
        weights = _weights(w[i], r[i], None if b is None else b[i], (0, 2, 3, 1),
                           None if peepholes is None else peepholes[i])
        given: Any = None if states[0] is None and states[1] is None else tuple(
            nnc.zeros((1, x.shape[1], r.shape[-1]), dtype=x.dtype, device=x.device) if s is None else s for s in states)
        return nnc.lstm(x, weights, given, activations=functions[i], clip=clip, coupled=bool(input_forget),
                        lengths=lengths, reverse=backwards)

    return _run(run, x, [first, first_cell], direction, layout)

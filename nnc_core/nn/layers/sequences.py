"""Recurrent networks over whole sequences: layers of cells in one or both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.control.constructs import scan
from nnc_core.functions.creation import zeros
from nnc_core.functions.elementwise import tanh
from nnc_core.functions.joining import concat
from nnc_core.functions.movement import permute_dims
from nnc_core.functions.recurrent import gru, lstm, rnn
from nnc_core.nn.initialise import Initialiser, generator_or_default, standard
from nnc_core.nn.layers.checks import at_least_one, one_of, title, within
from nnc_core.nn.layers.linear import Linear
from nnc_core.nn.layers.recurrent import GRUCell, LSTMCell, RecurrentCell, RNNCell
from nnc_core.nn.layers.seeds import own_generator
from nnc_core.nn.module import Module
from nnc_core.random.generator import Generator
from nnc_core.values.results import ONE
from nnc_core.values.tensor import Tensor

RETURNS = ("all", "outputs", "last")


class _Sequences(Module):
    """The common part of the three networks.

    x (batch, length, input_size), or (length, batch, input_size) with batch_first=False, and optionally the state
    before and `lengths` (batch,): behind its own length the results of a sequence are 0, and its state stays.  Gives
    (outputs, state): the results of the last layer (batch, length, directions * n), forwards then backwards, and the
    last state, each (layers * directions, batch, n).  With `returns` "outputs" only the former, and with "last" the
    last result of the last layer, (batch, directions * n) (Owl's neurons).

    `layers` are cells, two for each layer if `bidirectional`.  In training results are left out between layers at the
    rate `dropout`.
    """

    cell: ClassVar[type[RecurrentCell]]

    def __init__(self, input_size: int, hidden_size: int, layers: int, bidirectional: bool, dropout: float,
                 batch_first: bool, returns: str, generator: Generator | None, **options: Any) -> None:
        kind = type(self).__name__
        at_least_one(kind, input_size=input_size, hidden_size=hidden_size, layers=layers)
        within(kind, 0, 1, dropout=dropout)
        one_of(kind, "returns", returns, RETURNS)
        self.input_size, self.hidden_size, self.returns = input_size, hidden_size, returns
        self.bidirectional, self.dropout, self.batch_first = bool(bidirectional), dropout, bool(batch_first)
        cells: list[RecurrentCell] = []
        source, directions = generator_or_default(generator), self.directions
        for k in range(layers * directions):
            taken = input_size if k < directions else directions * cells[0].state_size
            cells.append(self.cell(taken, hidden_size, generator=source, **options))
        self.layers = tuple(cells)
        self.generator = own_generator(source) if dropout and layers > 1 else None

    @property
    def directions(self) -> int:
        """1 or 2"""
        return 2 if self.bidirectional else 1

    @property
    def output_size(self) -> int:
        """The number of features in a result."""
        return self.directions * self.layers[0].state_size

    def forward(self, x: Tensor, state: Any = None, *, lengths: Any = None) -> Any:
        if x.ndim != 3 or x.shape[2] != self.input_size:
            raise ShapeError(f"x is {x.spec}, expected {'(batch, length' if self.batch_first else '(length, batch'}, "
                             f"{self.input_size})", operator=title(self))
        options = {"lengths": lengths, "bidirectional": self.bidirectional, "batch_first": self.batch_first,
                   "dropout": self.dropout if self.training else 0.0, "generator": self.generator}
        outputs, after = self._go_through(x, [cell.weights() for cell in self.layers], state, options)
        if self.returns == "last":
            h = after[0] if isinstance(after, tuple) else after
            return h[-1] if self.directions == 1 else concat([h[-2], h[-1]], axis=-1)
        return outputs if self.returns == "outputs" else (outputs, after)

    def result_structure(self) -> Any:
        return ONE if self.returns != "all" else (ONE, (ONE, ONE) if self.cell is LSTMCell else ONE)

    def _go_through(self, x: Tensor, weights: list[Any], state: Any, options: dict[str, Any]) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def describe(self) -> str:
        said = [f"{self.input_size}, {self.hidden_size}"]
        count = len(self.layers) // self.directions
        said += [f"{name}={value!r}" for name, value, usual in (
            ("layers", count, 1), ("bidirectional", self.bidirectional, False), ("dropout", self.dropout, 0.0),
            ("batch_first", self.batch_first, True), ("returns", self.returns, "all")) if value != usual]
        return ", ".join(said)


class RNN(_Sequences):
    """h = tanh(x @ input_weight + h @ hidden_weight + biases) along sequences, or relu; `forward` is described with
    `LSTM`, the state is one tensor."""

    cell = RNNCell

    def __init__(self, input_size: int, hidden_size: int, layers: int = 1, *, nonlinearity: str = "tanh",
                 bias: bool = True, bidirectional: bool = False, dropout: float = 0.0, batch_first: bool = True,
                 returns: str = "all", init: Initialiser | None = None, generator: Generator | None = None,
                 dtype: Any = None) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, layers, bidirectional, dropout, batch_first, returns, generator,
                         nonlinearity=nonlinearity, bias=bias, init=init, dtype=dtype)

    def _go_through(self, x: Tensor, weights: list[Any], state: Any, options: dict[str, Any]) -> tuple[Tensor, Any]:
        return rnn(x, weights, state, nonlinearity=self.nonlinearity, **options)


class GRU(_Sequences):
    """Gated recurrent units along sequences (Cho et al. 2014); `forward` is described with `LSTM`, the state is one
    tensor."""

    cell = GRUCell

    def __init__(self, input_size: int, hidden_size: int, layers: int = 1, *, reset_after: bool = True,
                 bias: bool = True, bidirectional: bool = False, dropout: float = 0.0, batch_first: bool = True,
                 returns: str = "all", init: Initialiser | None = None, generator: Generator | None = None,
                 dtype: Any = None) -> None:
        self.reset_after = bool(reset_after)
        super().__init__(input_size, hidden_size, layers, bidirectional, dropout, batch_first, returns, generator,
                         reset_after=reset_after, bias=bias, init=init, dtype=dtype)

    def _go_through(self, x: Tensor, weights: list[Any], state: Any, options: dict[str, Any]) -> tuple[Tensor, Any]:
        return gru(x, weights, state, reset_after=self.reset_after, **options)


class LSTM(_Sequences):
    """Long short-term memory along sequences (Hochreiter and Schmidhuber 1997): forward(x, state=None, *,
    lengths=None).

    x is (batch, length, input_size), or (length, batch, input_size) with batch_first=False; the state (h, c), each
    (layers * directions, batch, n), is zeros where it is not given.  Behind its own length, where `lengths` (batch,)
    says one, the results of a sequence are 0, and its state stays.  Gives (outputs, state): the results of the last
    layer, (batch, length, directions * n), forwards beside backwards, and the last state; with `returns` "outputs"
    only the former, with "last" the last h of the last layer, (batch, directions * n), which is what Owl's neurons
    give.  n is `projection` if there is one, else the hidden size; c always has the hidden size.

    `layers` is a tuple of cells, two for each layer if `bidirectional`.  In training results are left out between
    layers at the rate `dropout`.
    """

    cell = LSTMCell

    def __init__(self, input_size: int, hidden_size: int, layers: int = 1, *, projection: int = 0, bias: bool = True,
                 bidirectional: bool = False, dropout: float = 0.0, batch_first: bool = True, returns: str = "all",
                 init: Initialiser | None = None, generator: Generator | None = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, layers, bidirectional, dropout, batch_first, returns, generator,
                         projection=projection, bias=bias, init=init, dtype=dtype)

    def _go_through(self, x: Tensor, weights: list[Any], state: Any, options: dict[str, Any]) -> tuple[Tensor, Any]:
        return lstm(x, weights, state, **options)


class Recurrent(Module):
    """Owl's Recurrent: a plain recurrent network of any activation, and a layer on its last state.

    h = activation(x @ input.weight + input.bias + h @ hidden.weight) along x (batch, length, input_size), from zeros;
    gives h @ output.weight + output.bias, (batch, output_size), through the `output_activation` if there is one.
    """

    def __init__(self, input_size: int, hidden_size: int, output_size: int,
                 activation: Callable[[Tensor], Tensor] = tanh,
                 output_activation: Callable[[Tensor], Tensor] | None = None, *, init: Initialiser = standard,
                 generator: Generator | None = None, dtype: Any = None) -> None:
        source = generator_or_default(generator)
        for name, f in (("activation", activation), ("output_activation", output_activation)):
            if f is not None and not callable(f):
                raise AttributeValueError(f"{name} is {f!r}, expected a function or a module", operator="Recurrent")
        self.input = Linear(input_size, hidden_size, init=init, generator=source, dtype=dtype)
        self.hidden = Linear(hidden_size, hidden_size, bias=False, init=init, generator=source, dtype=dtype)
        self.output = Linear(hidden_size, output_size, init=init, generator=source, dtype=dtype)
        self.activation = activation
        self.output_activation = output_activation

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 3:
            raise ShapeError(f"x is {x.spec}, expected (batch, length, {self.input.in_features})", operator="Recurrent")
        rows = permute_dims(self.input(x), (1, 0, 2))

        def step(h: Tensor, row: Tensor) -> tuple[Tensor, tuple[()]]:
            return self.activation(row + self.hidden(h)), ()

        start = zeros((x.shape[0], self.hidden.in_features), dtype=rows.dtype, device=x.device)
        h, _ = scan(step, start, rows)
        y: Tensor = self.output(h)
        return y if self.output_activation is None else self.output_activation(y)

    def describe(self) -> str:
        return f"{self.input.in_features}, {self.input.out_features}, {self.output.out_features}"

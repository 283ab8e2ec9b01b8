"""Recurrent cells: the weights of one layer in one direction, and its step."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar, TypeAlias

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.creation import zeros
from nnc_core.functions.recurrent import RecurrentWeights, gru_cell, lstm_cell, rnn_cell
from nnc_core.nn.initialise import Initialiser, generator_or_default, uniform
from nnc_core.nn.layers.checks import at_least_one, misfit, one_of, title
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.random.generator import Generator
from nnc_core.values.tensor import Tensor

State: TypeAlias = tuple[Tensor, Tensor]
NONLINEARITIES = ("tanh", "relu")


class RecurrentCell(Module):
    """The common part of cells: weights, by default uniform within 1 / sqrt(hidden_size), biases too.

    input_weight (input_size, gates * n), hidden_weight (n, gates * n), input_bias and hidden_bias (gates * n,), with n
    the hidden size: PyTorch's weight_ih and weight_hh transposed, bias_ih and bias_hh, gates in its order.  With an
    initialiser weights are what it gives, biases zero.
    """

    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    """The number of tensors in a state."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, init: Initialiser | None = None,
                 generator: Generator | None = None, dtype: Any = None) -> None:
        at_least_one(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        self._draw(self.state_size, bias, init, generator_or_default(generator), dtype)

    def _draw(self, size: int, bias: bool, init: Initialiser | None, source: Generator, dtype: Any) -> None:
        n = self.gates * self.hidden_size

        def drawn(*shape: int) -> Parameter:
            if init is None:
                return Parameter(uniform(source, shape, 1 / sqrt(self.hidden_size), dtype))
            weighs = len(shape) == 2
            return Parameter(init(source, shape, shape[0], self.hidden_size, dtype) if weighs else
                             zeros(shape, dtype=dtype))

        self.input_weight, self.hidden_weight = drawn(self.input_size, n), drawn(size, n)
        self.input_bias, self.hidden_bias = [drawn(n) if bias else None for _ in range(2)]
        self.projection_weight = drawn(self.hidden_size, size) if size != self.hidden_size else None

    @property
    def state_size(self) -> int:
        """The number of features in the result of a step."""
        return self.hidden_size

    def weights(self) -> RecurrentWeights:
        """The weights of now, as `nnc.rnn`, `nnc.lstm` and `nnc.gru` take them."""
        held = (self.input_weight, self.hidden_weight, self.input_bias, self.hidden_bias, self.projection_weight)
        return RecurrentWeights(*[None if p is None else p.read() for p in held])

    def _zeros(self, batch: Any, size: int) -> Tensor:
        return zeros((batch, size), dtype=self.input_weight.spec.dtype, device=self.input_weight.device)

    def _batch(self, x: Tensor) -> Any:
        """The number of examples."""
        if not x.ndim:
            raise misfit(self, x, f"expected (batch, {self.input_size})")
        return x.shape[0]

    def _check(self, **given: tuple[Tensor, int]) -> None:
        (x, _), *_ = given.values()
        for name, (t, size) in given.items():
            if t.ndim != 2 or t.shape != (x.shape[0], size):
                raise ShapeError(f"{name} is {t.spec}, expected (batch, {size}) with one batch for "
                                 f"{', '.join(given)}", operator=title(self))

    def describe(self) -> str:
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *["bias=False"] * (self.input_bias is None)])


class _OneState(RecurrentCell):
    """A cell whose state is its result."""

    def initial_state(self, batch: Any) -> Tensor:
        """Zeros, on the device of the weights."""
        return self._zeros(batch, self.hidden_size)

    def _step(self, x: Tensor, h: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """x (batch, input_size), h (batch, hidden_size) or zeros -> the next h."""
        h = self.initial_state(self._batch(x)) if h is None else h
        self._check(x=(x, self.input_size), h=(h, self.hidden_size))
        return self._step(x, h)


class RNNCell(_OneState):
    """One step of a plain recurrent network: tanh(x @ input_weight + h @ hidden_weight + biases), or relu of it
    (Elman 1990)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *,
                 init: Initialiser | None = None, generator: Generator | None = None, dtype: Any = None) -> None:
        one_of(type(self).__name__, "nonlinearity", nonlinearity, NONLINEARITIES)
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, init=init, generator=generator, dtype=dtype)

    def _step(self, x: Tensor, h: Tensor) -> Tensor:
        return rnn_cell(x, h, self.weights(), nonlinearity=self.nonlinearity)

    def describe(self) -> str:
        return super().describe() + (f", {self.nonlinearity!r}" if self.nonlinearity != "tanh" else "")


class GRUCell(_OneState):
    """One step of gated recurrent units (Cho et al. 2014), gates reset, update, new.

    The reset gate is applied to h @ hidden_weight (PyTorch's way), or else to h before it.
    """

    gates = 3

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, reset_after: bool = True, *,
                 init: Initialiser | None = None, generator: Generator | None = None, dtype: Any = None) -> None:
        self.reset_after = bool(reset_after)
        super().__init__(input_size, hidden_size, bias, init=init, generator=generator, dtype=dtype)

    def _step(self, x: Tensor, h: Tensor) -> Tensor:
        return gru_cell(x, h, self.weights(), reset_after=self.reset_after)

    def describe(self) -> str:
        return super().describe() + ("" if self.reset_after else ", reset_after=False")


class LSTMCell(RecurrentCell):
    """One step of a long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000 for the forget gate),
    gates input, forget, cell, output.

    With `projection` h has so many numbers, by one more weight, projection_weight (hidden_size, projection) (Sak et
    al. 2014).
    """

    gates, states = 4, 2

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, projection: int = 0, *,
                 init: Initialiser | None = None, generator: Generator | None = None, dtype: Any = None) -> None:
        if projection:
            at_least_one(type(self).__name__, projection=projection)
            if projection >= hidden_size:
                raise AttributeValueError(f"projection is {projection}, expected less than the hidden size "
                                          f"{hidden_size}", operator=type(self).__name__)
        self.projection = projection
        super().__init__(input_size, hidden_size, bias, init=init, generator=generator, dtype=dtype)

    @property
    def state_size(self) -> int:
        return self.projection or self.hidden_size

    def forward(self, x: Tensor, state: State | None = None) -> State:
        """x (batch, input_size), state (h, c) or zeros -> the next (h, c); c (batch, hidden_size), h too or
        (batch, projection)."""
        h, c = self.initial_state(self._batch(x)) if state is None else state
        self._check(x=(x, self.input_size), h=(h, self.state_size), c=(c, self.hidden_size))
        return lstm_cell(x, (h, c), self.weights())

    def initial_state(self, batch: Any) -> State:
        """Zeros, on the device of the weights."""
        return self._zeros(batch, self.state_size), self._zeros(batch, self.hidden_size)

    def describe(self) -> str:
        return super().describe() + (f", projection={self.projection}" if self.projection else "")

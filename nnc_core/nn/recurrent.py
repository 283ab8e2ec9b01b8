"""Recurrent cells."""

from __future__ import annotations

from math import sqrt
from typing import Any

from nnc_core.base.errors import ShapeError
from nnc_core.dynamic.functions.creation import zeros
from nnc_core.dynamic.functions.elementwise import sigmoid, tanh
from nnc_core.dynamic.functions.joining import concat
from nnc_core.dynamic.random.generator import Generator
from nnc_core.dynamic.tensor import Tensor
from nnc_core.nn.checks import at_least_one
from nnc_core.nn.initialise import generator_or_default, uniform
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter

State = tuple[Tensor, Tensor]


class LSTMCell(Module):
    """One step of a long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000 for the forget gate).

    All gates come from one product, concat(x, h) @ weight + bias, in PyTorch's order input, forget, cell, output:
    weight (input_size + hidden_size, 4 * hidden_size) is PyTorch's weight_ih and weight_hh transposed, one above the
    other; bias (4 * hidden_size,) is the sum of its two.  All start uniform within 1 / sqrt(hidden_size).
    """

    def __init__(self, input_size: int, hidden_size: int, *, generator: Generator | None = None,
                 dtype: Any = None) -> None:
        at_least_one("LSTMCell", input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        source, bound = generator_or_default(generator), 1 / sqrt(hidden_size)
        self.weight = Parameter(uniform(source, (input_size + hidden_size, 4 * hidden_size), bound, dtype))
        self.bias = Parameter(uniform(source, (4 * hidden_size,), bound, dtype))

    def forward(self, x: Tensor, state: State) -> State:
        """x (batch, input_size), state (h, c) of (batch, hidden_size) each -> the next (h, c)."""
        h, c = state
        self._check(x, h, c)
        gates = concat([x, h], axis=1) @ self.weight.read() + self.bias.read()
        n = self.hidden_size
        i, f, g, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def initial_state(self, batch: int) -> State:
        """Zeros, on the device of the weights."""
        return self._zeros(batch), self._zeros(batch)

    def _zeros(self, batch: int) -> Tensor:
        return zeros((batch, self.hidden_size), dtype=self.weight.spec.dtype, device=self.weight.device)

    def _check(self, x: Tensor, h: Tensor, c: Tensor) -> None:
        for name, t, size in (("x", x, self.input_size), ("h", h, self.hidden_size), ("c", c, self.hidden_size)):
            if t.ndim != 2 or t.shape != (x.shape[0], size):
                raise ShapeError(f"{name} is {t.spec}, expected (batch, {size}) with one batch for x, h and c",
                                 operator=repr(self))

    def describe(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"

"""LeNet's training step in tinygrad, captured by its compiler, on whatever device `DEV` names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks._works import LENET_BATCH, RATE

tinygrad: Any = import_module("tinygrad")
nn: Any = import_module("tinygrad.nn")
optim: Any = import_module("tinygrad.nn.optim")


class LeNet:
    """Layers as in the other frameworks' LeNet."""

    def __init__(self) -> None:
        self.convolution = nn.Conv2d(1, 32, 5, padding=2)
        self.hidden, self.output = nn.Linear(32 * 14 * 14, 1024), nn.Linear(1024, 10)

    def __call__(self, x: Any) -> Any:
        x = self.convolution(x).relu().max_pool2d(2).dropout(0.1).flatten(1)
        return self.output(self.hidden(x).relu())


class Adagrad(optim.Optimizer):  # type: ignore[misc,name-defined]
    """Which tinygrad does not have."""

    def __init__(self, parameters: Any, rate: float) -> None:
        super().__init__(parameters, rate)
        self.squares = self._new_optim_param()

    def _step(self, parameters: Any, gradients: Any) -> Any:
        changes = []
        for squares, gradient in zip(self.squares, gradients, strict=True):
            squares.assign(squares + gradient * gradient)
            changes.append(self.lr * gradient / (squares.sqrt() + 1e-10))
        return changes, self.squares


def make(work: str, variant: str) -> Callable[[], object] | None:
    if work != "lenet training" or variant:
        return None
    rng = np.random.default_rng(0)
    network = LeNet()
    minimiser = Adagrad(nn.state.get_parameters(network), RATE)
    x = tinygrad.Tensor(rng.random((LENET_BATCH, 1, 28, 28), dtype=np.float32)).realize()
    y = tinygrad.Tensor(rng.integers(0, 10, LENET_BATCH).astype(np.int32)).realize()

    @tinygrad.TinyJit
    def step(x: Any, y: Any) -> Any:
        minimiser.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y)
        loss.backward()
        return loss.realize(*minimiser.schedule_step())

    def run() -> float:
        with tinygrad.Context(TRAINING=1):
            return float(step(x, y).item())

    return run

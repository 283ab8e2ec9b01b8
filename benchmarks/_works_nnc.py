"""The works in nnc, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._attention import sized
from benchmarks._attention_nnc import attention
from benchmarks._inference import parts_of
from benchmarks._inference_nnc import inference
from benchmarks._works import (
    CHAIN,
    CHAIN_SIZE,
    LENET_BATCH,
    LSTM_BATCH,
    LSTM_LENGTH,
    LSTM_SIZE,
    MLP_BATCH,
    RATE,
    ROWS,
    Kept,
)
from nnc_core import nn, optim
from nnc_core.cli.lenet import LeNet

Step = Callable[[], object]


def make(work: str, variant: str) -> Step | None:
    if parts := parts_of(work):
        return inference(*parts)
    if found := sized(work):
        return attention(found)
    name, _, size = work.rpartition(" ")
    if size in ROWS:
        return Kept(nnc.jit(ELEMENTWISE[name]), *arrays(ROWS[size], 4))
    return MADE[work]()


def arrays(shape: tuple[int, ...], count: int) -> list[nnc.Tensor]:
    rng = np.random.default_rng(0)
    return [nnc.asarray(rng.random(shape, dtype=np.float32) + 0.1) for _ in range(count)]


def lenet() -> Step:
    rng = np.random.default_rng(0)
    x = nnc.asarray(rng.integers(0, 256, (LENET_BATCH, 28, 28, 1)).astype(np.uint8))
    y = nnc.asarray(rng.integers(0, 10, LENET_BATCH))
    step = LeNet(0).step
    return lambda: float(step(x, y).item())


def training(module: nn.Module, *shape: int) -> Step:
    """Adagrad on random inputs and labels."""
    rng = np.random.default_rng(0)
    x, y = nnc.asarray(rng.random(shape, dtype=np.float32)), nnc.asarray(rng.integers(0, 10, shape[0]))
    minimiser = optim.Adagrad(module.named_parameters(), learning_rate=RATE)
    gradients = nn.value_and_grad(module, lambda x, y: nnc.cross_entropy(module(x), y))
    step = optim.make_step(gradients, minimiser)
    return lambda: float(step(x, y).item())


def mlp() -> Step:
    return training(nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                                  nn.Linear(1024, 10)), MLP_BATCH, 784)


class Recurrent(nn.Module):
    """The last output of an LSTM, and what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.head = nn.LSTM(LSTM_SIZE, LSTM_SIZE), nn.Linear(LSTM_SIZE, 10)

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        outputs, _ = self.recurrent(x)
        return self.head(outputs[:, -1])  # type: ignore[no-any-return]


def chained(x: Any) -> Any:
    y = x
    for k in range(CHAIN // 2):
        y = (y + x) * (0.5 if k % 2 else 0.51)
    return y


def ten(*xs: Any) -> Any:
    return sum(xs[1:], xs[0])


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.001 * m / (nnc.sqrt(v) + 1e-8), m, v


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "tanh(a*b+c)*d": lambda a, b, c, d: nnc.tanh(a * b + c) * d,
    "gelu": lambda a, *_: nnc.gelu(a),
    "softmax": lambda a, *_: nnc.softmax(a, axis=-1),
    "layer norm": lambda a, *_: nnc.layer_norm(a),
    "adam": adam,
}
MADE: dict[str, Callable[[], Step]] = {
    "lenet training": lenet,
    "mlp training": mlp,
    "lstm training": lambda: training(Recurrent(), LSTM_BATCH, LSTM_LENGTH, LSTM_SIZE),
    "chain of 200": lambda: Kept(nnc.jit(chained), *arrays((CHAIN_SIZE,), 1)),
    "call with 10 arguments": lambda: Kept(nnc.jit(ten), *arrays((8,), 10)),
}

"""The works in PyTorch: eager, compiled, and with channels last where there are images."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks import _inference_torch
from benchmarks._attention import sized
from benchmarks._attention_torch import attention
from benchmarks._inference import parts_of
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

torch: Any = import_module("torch")
nn = torch.nn
F = nn.functional
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))

Step = Callable[[], object]
CONVOLUTIONS = "conv 3x3, 16 x 56 x 56 x 64", "its two gradients"


def make(work: str, variant: str) -> Step | None:
    torch.manual_seed(0)
    compiled = torch.compile if variant == "compile" else lambda f: f
    if parts := parts_of(work):
        return inference(*parts, variant)
    if (found := sized(work)) and variant != "channels_last":
        return attention(found, compiled)
    if work in CONVOLUTIONS:
        return convolution(work) if variant == "channels_last" else None
    if variant == "channels_last" and work != "lenet training":
        return None
    name, _, size = work.rpartition(" ")
    if size in ROWS:
        f, xs = compiled(ELEMENTWISE[name]), [torch.rand(ROWS[size]) + 0.1 for _ in range(4)]
        return no_gradient(Kept(f, *xs))
    if work == "chain of 200":
        chain, x = compiled(chained), torch.rand(CHAIN_SIZE)
        return no_gradient(Kept(chain, x))
    if work == "call with 10 arguments":
        call, ten = compiled(lambda *xs: sum(xs[1:], xs[0])), [torch.rand(8) for _ in range(10)]
        return no_gradient(Kept(call, *ten))
    module, x = NETWORKS[work]()
    if variant == "channels_last":
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    return training(module, x, compiled)


def inference(name: str, batch: int, variant: str) -> Step | None:
    module, x = _inference_torch.network(name), _inference_torch.example(name, batch)
    if variant == "channels_last":
        if x.ndim != 4:
            return None
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if variant == "compile":
        import_module("torch._inductor.config").freezing = True
        module = torch.compile(module)
    return no_gradient(lambda: module(x))


def convolution(work: str) -> Step:
    """A convolution of 16 images of 56 x 56 x 64, or its two gradients."""
    x, g = [torch.rand(16, 64, 56, 56).contiguous(memory_format=torch.channels_last) for _ in range(2)]
    kernel = torch.rand(64, 64, 3, 3).contiguous(memory_format=torch.channels_last)
    if work == CONVOLUTIONS[0]:
        return no_gradient(lambda: F.conv2d(x, kernel, padding=1))
    both = torch.ops.aten.convolution_backward
    return no_gradient(lambda: both(g, x, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]))


def no_gradient(f: Callable[[], object]) -> Step:
    def step() -> object:
        with torch.no_grad():
            return f()

    return step


def training(module: Any, x: Any, compiled: Callable[[Any], Any]) -> Step:
    y = torch.randint(0, 10, (len(x),))
    minimiser = torch.optim.Adagrad(module.parameters(), lr=RATE, fused=True)
    loss_of = compiled(lambda x, y: F.cross_entropy(module(x), y))

    def step() -> float:
        minimiser.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        minimiser.step()
        return float(loss.item())

    return step


def lenet() -> tuple[Any, Any]:
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten(),
        nn.Linear(32 * 14 * 14, 1024), nn.ReLU(), nn.Linear(1024, 10)), torch.rand(LENET_BATCH, 1, 28, 28)


def mlp() -> tuple[Any, Any]:
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 10)), torch.rand(MLP_BATCH, 784)


class Recurrent(nn.Module):  # type: ignore[misc,name-defined]
    """The last output of an LSTM, and what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(LSTM_SIZE, LSTM_SIZE, batch_first=True)
        self.head = nn.Linear(LSTM_SIZE, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.recurrent(x)[0][:, -1])


def chained(x: Any) -> Any:
    y = x
    for k in range(CHAIN // 2):
        y = (y + x) * (0.5 if k % 2 else 0.51)
    return y


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.001 * m / (torch.sqrt(v) + 1e-8), m, v


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "tanh(a*b+c)*d": lambda a, b, c, d: torch.tanh(a * b + c) * d,
    "gelu": lambda a, *_: F.gelu(a),
    "softmax": lambda a, *_: F.softmax(a, -1),
    "layer norm": lambda a, *_: F.layer_norm(a, a.shape[-1:]),
    "adam": adam,
}
NETWORKS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "lenet training": lenet,
    "mlp training": mlp,
    "lstm training": lambda: (Recurrent(), torch.rand(LSTM_BATCH, LSTM_LENGTH, LSTM_SIZE)),
}

"""The works that frameworks are compared on: their names, sizes and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from benchmarks import _attention
from benchmarks._inference import BATCHES, FLOPS


class Work(NamedTuple):
    """A work; each framework that does it has a function of this name in its own file, `_works_<framework>.py`."""

    name: str
    flops: float = 0.0
    """Floating-point operations of a step's products; 0 where others count."""
    agrees: bool = False
    """True if a step gives what all frameworks compute alike."""
    moved: float = 0.0
    """Bytes that a step must read and write, where they are what it is bound by; else 0."""


class Kept:
    """Calls a function and keeps its result until the next call has given another, as loops do."""

    def __init__(self, f: Callable[..., Any], *arguments: Any) -> None:
        self.f, self.arguments = f, arguments
        self.result: Any = None

    def __call__(self) -> None:
        self.result = self.f(*self.arguments)


LENET_BATCH, MLP_BATCH = 100, 128
LSTM_BATCH, LSTM_LENGTH, LSTM_SIZE = 32, 64, 256
CHAIN, CHAIN_SIZE = 200, 1000
ROWS = {"256k": (512, 512), "16M": (4096, 4096)}
RATE = 0.005
ARRAYS = {"tanh(a*b+c)*d": 5, "gelu": 2, "softmax": 2, "layer norm": 2, "adam": 7}
"""Arrays that an elementwise work reads and writes."""

WORKS = (
    Work("lenet training", 4.1e9),
    Work("mlp training", 6 * MLP_BATCH * (784 * 1024 + 1024 * 1024 + 1024 * 10)),
    Work("lstm training", 6 * LSTM_BATCH * LSTM_LENGTH * 8 * LSTM_SIZE**2),
    *[Work(f"{name} b{batch}", batch * flops, agrees=True) for name, flops in FLOPS.items() for batch in BATCHES],
    *[Work(f"{name} {length}", _attention.flops(name, length), agrees=True) for name in _attention.PRODUCTS
      for length in _attention.LENGTHS],
    Work("chain of 200"),
    Work("call with 10 arguments"),
    *[Work(f"{name} {size}", moved=4.0 * count * prod(shape)) for size, shape in ROWS.items()
      for name, count in ARRAYS.items()],
)

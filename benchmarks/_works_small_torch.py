"""Small works in PyTorch, eagerly."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from benchmarks._small import BATCH, CLASSES, GROUPS, HIDDEN, IMAGES, IN, MODEL, RATE, ROUNDS, batch

torch: Any = import_module("torch")
nn = torch.nn
F = nn.functional
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))

Step = Callable[[], object]
Loss = Callable[[Any, Any], Any]


def make(work: str, variant: str) -> Step | None:
    torch.manual_seed(0)
    x, y = map(torch.from_numpy, batch(work))
    if work in LOSSES:
        return of_inputs(LOSSES[work], x, y)
    if work == "cnn":
        x = x.permute(0, 3, 1, 2).contiguous()
    return training(*NETWORKS[work](), x, y)


def training(network: Any, loss: Loss, x: Any, y: Any) -> Step:
    """Forward, backward and an update."""
    minimiser = torch.optim.Adam(network.parameters(), lr=RATE)

    def step() -> object:
        minimiser.zero_grad(set_to_none=True)
        found = loss(network(x), y)
        found.backward()
        minimiser.step()
        return found.detach()

    return step


def of_inputs(loss: Loss, x: Any, y: Any) -> Step:
    """Forward and backward, by the predictions."""
    x = x.requires_grad_()

    def step() -> object:
        x.grad = None
        loss(x, y).backward()
        return x.grad

    return step


class Gated(nn.Module):  # type: ignore[misc,name-defined]
    """A GRU's cell in a loop of Python's, and what its last state says."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(IN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Any) -> Any:
        h = torch.zeros(BATCH, HIDDEN)
        for t in range(ROUNDS):
            h = self.cell(x[t], h)
        return self.head(h)


class Remembering(nn.Module):  # type: ignore[misc,name-defined]
    """An LSTM's cell in a loop of Python's, and what its last state says."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(IN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Any) -> Any:
        state = (torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, HIDDEN))
        for t in range(ROUNDS):
            state = self.cell(x[t], state)
        return self.head(state[0])


class Block(nn.Module):  # type: ignore[misc,name-defined]
    """A transformer's block, pre-norm, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(MODEL), nn.LayerNorm(MODEL)
        self.attention = nn.MultiheadAttention(MODEL, 4, batch_first=True)
        self.expand, self.contract = nn.Linear(MODEL, 4 * MODEL), nn.Linear(4 * MODEL, MODEL)
        self.dropout1, self.dropout2 = nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        h = self.norm1(x)
        x = x + self.dropout1(self.attention(h, h, h, need_weights=False)[0])
        return x + self.dropout2(self.contract(F.gelu(self.expand(self.norm2(x)))))


def mlp() -> Any:
    return nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def cnn() -> Any:
    half = IMAGES // 2
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
                         nn.Linear(16 * half * half, CLASSES))


NETWORKS: Mapping[str, Callable[[], tuple[Any, Loss]]] = {
    "mlp": lambda: (mlp(), F.cross_entropy),
    "cnn": lambda: (cnn(), F.cross_entropy),
    "gru cells": lambda: (Gated(), F.cross_entropy),
    "lstm cells": lambda: (Remembering(), F.cross_entropy),
    "transformer block": lambda: (Block(), F.mse_loss),
}
LOSSES: Mapping[str, Loss] = {
    "cross_entropy": F.cross_entropy,
    "mse": F.mse_loss,
    "bce with logits": F.binary_cross_entropy_with_logits,
    "kl": lambda x, y: F.kl_div(x, y, reduction="batchmean"),
    "huber": F.huber_loss,
    "group_norm": lambda x, y: (F.group_norm(x, GROUPS) * y).sum(),
    "sum of tanh": lambda x, y: torch.tanh(x).sum(),
}

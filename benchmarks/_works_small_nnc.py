"""Small works in nnc, eagerly: by `backward` on the dynamic graph, or by the functions that take gradients ("grad")."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import nnc_core as nnc
from benchmarks._small import BATCH, CLASSES, GROUPS, HIDDEN, IMAGES, IN, MODEL, RATE, ROUNDS, batch
from nnc_core import nn, optim
from nnc_cpu.blas import thread_count

Step = Callable[[], object]
Loss = Callable[[Any, Any], Any]


def make(work: str, variant: str) -> Step | None:
    nnc.config.compile_at_once = True
    nnc.config.threads = int(os.environ.get("OMP_NUM_THREADS", "2"))
    if (blas := thread_count()) is not None:
        blas.set(nnc.config.threads)
    nnc.manual_seed(0)
    if work in LOSSES:
        return of_inputs(LOSSES[work], *map(nnc.asarray, batch(work)), variant)
    return training(*NETWORKS[work](), *map(nnc.asarray, batch(work)), variant)


def training(network: nn.Module, loss: Loss, x: nnc.Tensor, y: nnc.Tensor, variant: str) -> Step:
    """Forward, backward and an update."""
    minimiser = optim.Adam(network.parameters(), RATE)
    if variant == "grad":
        gradients = nn.value_and_grad(network, lambda x, y: loss(network(x), y))
        step_of = optim.make_step(gradients, minimiser, eager=True)
        return lambda: step_of(x, y)
    network.requires_grad_()

    def step() -> object:
        network.zero_grad()
        found = loss(network(x), y)
        found.backward()
        minimiser.update(network.gradients())
        return found

    return step


def of_inputs(loss: Loss, x: nnc.Tensor, y: nnc.Tensor, variant: str) -> Step:
    """Forward and backward, by the predictions."""
    if variant == "grad":
        gradient = nnc.value_and_grad(loss)
        return lambda: gradient(x, y)
    v = nnc.variable(x)

    def step() -> object:
        v.grad = None
        loss(v, y).backward()
        return v.grad

    return step


class Gated(nn.Module):
    """A GRU's cell in a loop of Python's, and what its last state says."""

    def __init__(self) -> None:
        self.cell, self.head = nn.GRUCell(IN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Any) -> Any:
        h = nnc.zeros((BATCH, HIDDEN))
        for t in range(ROUNDS):
            h = self.cell(x[t], h)
        return self.head(h)


class Remembering(nn.Module):
    """An LSTM's cell in a loop of Python's, and what its last state says."""

    def __init__(self) -> None:
        self.cell, self.head = nn.LSTMCell(IN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Any) -> Any:
        state = (nnc.zeros((BATCH, HIDDEN)), nnc.zeros((BATCH, HIDDEN)))
        for t in range(ROUNDS):
            state = self.cell(x[t], state)
        return self.head(state[0])


class Block(nn.Module):
    """A transformer's block, pre-norm, written out."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(MODEL), nn.LayerNorm(MODEL)
        self.attention = nn.MultiHeadAttention(MODEL, 4)
        self.expand, self.contract = nn.Linear(MODEL, 4 * MODEL), nn.Linear(4 * MODEL, MODEL)
        self.dropout1, self.dropout2 = nn.Dropout(0.1), nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        x = x + self.dropout1(self.attention(self.norm1(x)))
        return x + self.dropout2(self.contract(nnc.gelu(self.expand(self.norm2(x)))))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def cnn() -> nn.Module:
    half = IMAGES // 2
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm(16), nn.ReLU(), nn.Flatten(),
                         nn.Linear(16 * half * half, CLASSES))


NETWORKS: Mapping[str, Callable[[], tuple[nn.Module, Loss]]] = {
    "mlp": lambda: (mlp(), nnc.cross_entropy),
    "cnn": lambda: (cnn(), nnc.cross_entropy),
    "gru cells": lambda: (Gated(), nnc.cross_entropy),
    "lstm cells": lambda: (Remembering(), nnc.cross_entropy),
    "transformer block": lambda: (Block(), nnc.mse_loss),
}
LOSSES: Mapping[str, Loss] = {
    "cross_entropy": nnc.cross_entropy,
    "mse": nnc.mse_loss,
    "bce with logits": nnc.binary_cross_entropy_with_logits,
    "kl": lambda x, y: nnc.kl_div(x, y, reduction="batchmean"),
    "huber": nnc.huber_loss,
    "group_norm": lambda x, y: (nnc.group_norm(x, GROUPS) * y).sum(),
    "sum of tanh": lambda x, y: nnc.tanh(x).sum(),
}

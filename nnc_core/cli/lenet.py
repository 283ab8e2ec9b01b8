"""Owl's LeNet-like network for digits of 28x28 pixels, and its training step: one graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.dynamic.compiled import CompiledGraph
from nnc_core.optim.training import make_step

BATCH = 100
LEARNING_RATE = 0.005


def network() -> nn.Sequential:
    """Images (N, 28, 28, 1), uint8 in 0-255, to logits (N, 10)."""
    return nn.Sequential(
        nn.Lambda(lambda images: images.astype(nnc.float32) / 256),
        nn.Conv2d(1, 32, 5, padding="SAME"), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten(),
        nn.Linear(14 * 14 * 32, 1024), nn.ReLU(),
        nn.Linear(1024, 10),
    )


class LeNet:
    """The network with weights from `seed` on the current device, its minimiser (Adagrad) and compiled calls."""

    def __init__(self, seed: int) -> None:
        nnc.manual_seed(seed)
        self.module = network()
        self.minimiser = optim.Adagrad(self.module.named_parameters(), learning_rate=LEARNING_RATE)
        self.step = make_step(self.module, self.minimiser, nnc.cross_entropy)
        """step(images, labels) gives the loss; forward, backward and update run as one graph."""
        self._classify = nnc.jit(self._classified)

    def _classified(self, images: nnc.Tensor) -> nnc.Tensor:
        return nnc.argmax(self.module(images), axis=-1)

    def classify(self, images: NDArray[np.uint8], batch: int = BATCH) -> NDArray[np.int64]:
        """The likeliest digit of each image, dropout off."""
        self.module.eval()
        try:
            parts = [self._classify(nnc.asarray(images[i : i + batch])).numpy() for i in range(0, len(images), batch)]
        finally:
            self.module.train()
        return np.concatenate(parts)

    def accuracy(self, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> float:
        """The part of the images, 0 to 1, that is classified as labelled."""
        return float(np.mean(self.classify(images) == labels))

    def compiled_step(self, batch: int = BATCH) -> CompiledGraph:
        """The training step as it runs on batches of this size."""
        images, labels = np.zeros((batch, 28, 28, 1), np.uint8), np.zeros(batch, np.int64)
        found: Any = self.step.lower(nnc.asarray(images), nnc.asarray(labels))
        return found

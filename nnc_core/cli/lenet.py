"""Owl's LeNet-like network for digits of 28x28 pixels, and its training step: one graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.device import DeviceSpec
from nnc_core.io.training_state import SavedProgress, load_training_state, save_training_state
from nnc_core.nn.initialise import Initialiser, glorot_uniform
from nnc_core.recording.compiled import CompiledGraph
from nnc_core.tracing.jit import Jitted
from nnc_core.values.modes import current_stack

BATCH = 100
HIDDEN = 1024
LEARNING_RATE = 0.005
# Adagrad's first step moves each weight by the whole rate, whatever its gradient, and it never forgets the squares of
# gradients.  This epsilon, and dense weights that are large against the rate, keep the first steps from throwing the
# network off, which would leave little rate for the rest.
EPSILON = 1e-3
CONVOLUTION_GAIN, HIDDEN_GAIN, OUTPUT_GAIN = 0.3, 2.0, 6.0


def network() -> nn.Sequential:
    """Images (N, 28, 28, 1), uint8 in 0-255, to logits (N, 10); weights from the default generator."""
    return nn.Sequential(
        nn.Lambda(_scaled),
        nn.Conv2d(1, 32, 5, padding="SAME", init=_glorot_times(CONVOLUTION_GAIN)), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.1), nn.Flatten(),
        nn.Linear(14 * 14 * 32, HIDDEN, init=_glorot_times(HIDDEN_GAIN)), nn.ReLU(),
        nn.Linear(HIDDEN, 10, init=_glorot_times(OUTPUT_GAIN)),
    )


def _glorot_times(gain: float) -> Initialiser:
    def drawn(generator: nnc.Generator, shape: Sequence[int], fan_in: int, fan_out: int, dtype: Any) -> nnc.Tensor:
        weights: nnc.Tensor = glorot_uniform(generator, shape, fan_in, fan_out, dtype) * gain
        return weights

    return drawn


def _scaled(images: nnc.Tensor) -> nnc.Tensor:
    scaled: nnc.Tensor = nnc.astype(images, nnc.float32) / 256
    return scaled


class LeNet:
    """The network, its minimiser (Adagrad) and calls on batches, compiled or eager; on the current device.

    `step(images, labels)` trains and gives the loss: forward, backward and update are one graph.
    """

    def __init__(self, seed: int, *, compiled: bool = True) -> None:
        nnc.manual_seed(seed)
        self.device: DeviceSpec = current_stack().device.spec
        self.compiled = compiled
        self.module = network()
        self.minimiser = optim.Adagrad(self.module.named_parameters(), learning_rate=LEARNING_RATE, epsilon=EPSILON)
        gradients = nn.value_and_grad(self.module, self._loss)
        self.step = optim.make_step(gradients, self.minimiser, eager=not compiled)
        self._label = nnc.jit(self._likeliest) if compiled else self._likeliest

    def _loss(self, images: nnc.Tensor, labels: nnc.Tensor) -> nnc.Tensor:
        return nnc.cross_entropy(self.module(images), labels)

    def _likeliest(self, images: nnc.Tensor) -> nnc.Tensor:
        return nnc.argmax(self.module(images), axis=-1)

    def classify(self, images: NDArray[np.uint8], batch: int = BATCH) -> NDArray[np.int64]:
        """The likeliest digit of each image (N,), dropout off."""
        self.module.eval()
        try:
            with nnc.no_grad():
                parts = [self._label(nnc.asarray(images[i : i + batch])) for i in range(0, len(images), batch)]
        finally:
            self.module.train()
        return np.concatenate([part.numpy() for part in parts])

    def accuracy(self, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> float:
        """The part of the images, 0 to 1, that is classified as labelled."""
        return float(np.mean(self.classify(images) == labels))

    def compiled_step(self, batch: int = BATCH) -> CompiledGraph:
        """The training step as it runs on batches of this size; compiled here if it has not been yet."""
        step: Any = self.step if isinstance(self.step, Jitted) else nnc.jit(self.step)
        found: CompiledGraph = step.lower(nnc.zeros((batch, 28, 28, 1), dtype=nnc.uint8),
                                          nnc.zeros(batch, dtype=nnc.int64))
        return found

    def save(self, path: Path, epoch: int, progress: SavedProgress | None = None) -> None:
        """Write weights, minimiser, random keys and where the run is, so that training can go on."""
        save_training_state(path, self.module, self.minimiser, metadata={"network": "lenet", "epoch": str(epoch)},
                            progress=progress)

    def load(self, path: Path, progress: SavedProgress) -> None:
        """Go on where a run was saved."""
        load_training_state(path, self.module, self.minimiser, progress=progress)

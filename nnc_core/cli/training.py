"""Epochs of training on shifted digits, for whoever watches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import nnc_core as nnc
from nnc_core.cli.lenet import BATCH, LeNet
from nnc_core.data import Dataset, batches, shift_images

SHIFT = 2  # pixels, in each direction
LOOKED_AT = 10  # steps from one look at the loss to the next: each look waits for the device


@dataclass(frozen=True, slots=True)
class Epoch:
    """Counted from 1; mean loss of its steps, accuracy (0 to 1) on the held-out digits, seconds that both took."""

    number: int
    loss: float
    accuracy: float
    seconds: float


class Watcher(Protocol):
    """Hears of each step."""

    def begin(self, epoch: int, steps: int) -> None: ...

    def step(self, loss: float | None) -> None:
        """A step is done; its loss now and then."""


def train(lenet: LeNet, digits: Dataset, epochs: int, seed: int, watcher: Watcher) -> Iterator[Epoch]:
    """Train, stopping after each epoch; order and shifts of the digits follow from the seed."""
    shifts = np.random.default_rng(seed)
    for number in range(1, epochs + 1):
        start = perf_counter()
        loss = _one_epoch(lenet, shift_images(digits.train_images, SHIFT, shifts), digits.train_labels,
                          list(batches(len(digits.train_images), BATCH, seed=seed, epoch=number)), number, watcher)
        accuracy = lenet.accuracy(digits.test_images, digits.test_labels)
        yield Epoch(number, loss, accuracy, perf_counter() - start)


def _one_epoch(lenet: LeNet, images: NDArray[np.uint8], labels: NDArray[np.int64],
               order: list[NDArray[np.int64]], number: int, watcher: Watcher) -> float:
    """The mean loss."""
    watcher.begin(number, len(order))
    losses = []
    for i, chosen in enumerate(order, 1):
        losses.append(lenet.step(nnc.asarray(images[chosen]), nnc.asarray(labels[chosen])))
        watcher.step(losses[-1].item() if i % LOOKED_AT == 0 or i == len(order) else None)
    return float(np.mean([loss.item() for loss in losses]))

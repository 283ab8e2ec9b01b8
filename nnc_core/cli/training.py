"""Epochs of training on shifted digits, for whoever watches; a run that was ended goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import nnc_core as nnc
from nnc_core.base.errors import StateError
from nnc_core.cli.lenet import BATCH, LeNet
from nnc_core.data import DataOrder, Dataset, translate_images

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


class DemoProgress:
    """The position of a run, as state: the place in the data, the epochs behind it, the losses of this one.

    `settings` are what the run was started with; a run that was started otherwise cannot be taken up.
    """

    def __init__(self, digits: Dataset, seed: int, **settings: Any) -> None:
        self.order = DataOrder(len(digits.train_images), BATCH, seed=seed)
        self.order.epoch = 1
        self.settings = {"seed": seed, **settings}
        self.history: list[Epoch] = []
        self.losses: list[nnc.Tensor | float] = []

    def state_dict(self) -> dict[str, Any]:
        return {"settings": self.settings, "order": self.order.state_dict(),
                "history": [asdict(epoch) for epoch in self.history], "losses": self.read_losses()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["settings"] != self.settings:
            said = [f"{name} {state['settings'].get(name)} instead of {mine}" for name, mine in self.settings.items()
                    if state["settings"].get(name) != mine]
            raise StateError(f"the run was started with other options: {', '.join(said)}",
                             hint="give the same ones, or another --out")
        self.order.load_state_dict(state["order"])
        self.history = [Epoch(**epoch) for epoch in state["history"]]
        self.losses = list(state["losses"])

    def read_losses(self) -> list[float]:
        """The losses of the steps of this epoch; waits for the device."""
        self.losses = [x if isinstance(x, float) else x.item() for x in self.losses]
        return self.losses  # type: ignore[return-value]


def train(lenet: LeNet, digits: Dataset, epochs: int, progress: DemoProgress, watcher: Watcher,
          after_step: Callable[[], object] = lambda: None) -> Iterator[Epoch]:
    """Train, stopping after each epoch, from where the progress is; order and shifts of the digits follow from its
    seed."""
    shifts = np.random.default_rng(progress.settings["seed"])
    for _ in range(1, progress.order.epoch):
        _draw_shifts(len(digits.train_images), shifts)
    while progress.order.epoch <= epochs:
        start, number = perf_counter(), progress.order.epoch
        images = translate_images(digits.train_images, *_draw_shifts(len(digits.train_images), shifts))
        _one_epoch(lenet, images, digits.train_labels, progress, watcher, after_step)
        loss = float(np.mean(progress.read_losses()))
        progress.losses = []
        accuracy = lenet.accuracy(digits.test_images, digits.test_labels)
        progress.history.append(Epoch(number, loss, accuracy, perf_counter() - start))
        yield progress.history[-1]


def _draw_shifts(count: int, shifts: np.random.Generator) -> NDArray[np.int64]:
    """One epoch's (dy, dx) of each digit."""
    return shifts.integers(-SHIFT, SHIFT, size=(2, count), endpoint=True)


def _one_epoch(lenet: LeNet, images: NDArray[np.uint8], labels: NDArray[np.int64], progress: DemoProgress,
               watcher: Watcher, after_step: Callable[[], object]) -> None:
    """The rest of the epoch."""
    order = progress.order
    steps = len(order)
    watcher.begin(order.epoch, steps)
    for chosen in order:
        loss = lenet.step(nnc.asarray(images[chosen]), nnc.asarray(labels[chosen]))
        progress.losses.append(loss)
        i = order.position
        watcher.step(loss.item() if i % LOOKED_AT == 0 or i == steps else None)
        after_step()

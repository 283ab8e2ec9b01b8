"""A training run in a process of its own, which is killed and started again: `python -m ... CHECKPOINT SETTINGS`.

It says on its output what it does, line by line, so that a test knows where it was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.data import DataOrder
from nnc_core.io import load_training_state, save_training_state

EPOCHS, EXAMPLES, BATCH, EVERY = 6, 23, 4, 2  # 5 batches an epoch: checkpoints fall anywhere in it
PACE = 0.01  # seconds from one step to the next, so that there is time to be killed


def say(*words: Any) -> None:
    print(*words, flush=True)


class Run:
    """A network with dropout on shuffled batches, with noise from the default generator."""

    def __init__(self, minimiser: str, eager: bool) -> None:
        self.noise = nnc.manual_seed(5)
        self.model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3))
        weights = self.model.named_parameters()
        self.minimiser = (optim.Adagrad(weights, 0.05) if minimiser == "adagrad" else
                          optim.SGD(weights, lambda step: 0.1 / (1 + step), momentum=0.9))
        gradients = nn.value_and_grad(self.model, lambda x, y: nnc.cross_entropy(self.model(x), y))
        self.step = optim.make_step(gradients, self.minimiser, eager=eager)
        self.order = DataOrder(EXAMPLES, BATCH, seed=7)
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(EXAMPLES, 6)).astype(np.float32)
        self.y = rng.integers(0, 3, EXAMPLES)

    def train(self, path: Path) -> None:
        while self.order.epoch < EPOCHS:
            for chosen in self.order:
                x = nnc.asarray(self.x[chosen])
                x = x + self.noise.normal(x.shape).to(x.device.id) * 0.1
                loss = self.step(x, nnc.asarray(self.y[chosen]))
                say("step", self.order.epoch, self.order.position, loss.numpy().tobytes().hex())
                if self.order.position % EVERY == 0:
                    save_training_state(path, self.model, self.minimiser, progress=self.order)
                    say("saved")
                time.sleep(PACE)

    def digest(self) -> str:
        arrays = {**self.model.state_dict(), **self.minimiser.state_dict(), "noise": self.noise.key.read().numpy()}
        return hashlib.sha256(b"".join(name.encode() + arrays[name].tobytes() for name in sorted(arrays))).hexdigest()


def write_slowly() -> None:
    """Time to be killed in the middle of a write."""
    synchronise = os.fsync

    def slow(descriptor: int) -> None:
        say("writing")
        time.sleep(0.3)
        synchronise(descriptor)

    os.fsync = slow


def main(path: Path, settings: dict[str, Any]) -> None:
    if settings["slow"]:
        write_slowly()
    with nnc.use_device(settings["device"]), nnc.config.using(deterministic=settings["deterministic"]):
        run = Run(settings["minimiser"], settings["eager"])
        if path.exists():
            load_training_state(path, run.model, run.minimiser, progress=run.order, exact=True)
            say("resumed", run.order.epoch, run.order.position)
        run.train(path)
        say("finished", run.digest())


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))

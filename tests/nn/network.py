"""The small network of several tests, and where they run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim

MODES = ("eager", "deferred", "compiled")


def chosen_device() -> str:
    """What NNC_TEST_DEVICE says, else cpu:0, or the interpreter where no CPU plugin is installed."""
    return os.environ.get("NNC_TEST_DEVICE") or ("cpu:0" if find_spec("nnc_cpu") else "strict:0")


@pytest.fixture
def device() -> Iterator[str]:
    """The device that is the default in this test."""
    id = chosen_device()
    with nnc.use_device(id):
        yield id


def small_lenet(seed: int = 0, rate: float = 0.25) -> nn.Sequential:
    """Owl's LeNet-like network for 8x8 images and three classes."""
    g = nnc.Generator(seed)
    return nn.Sequential(
        nn.Lambda(lambda x: x / 16),
        nn.Conv2d(1, 4, 3, padding="SAME", generator=g),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(rate, nnc.Generator(seed + 1)),
        nn.Flatten(),
        nn.Linear(64, 8, generator=g),
        nn.Tanh(),
        nn.Linear(8, 3, generator=g),
    )


def digits(count: int = 6, seed: int = 0) -> tuple[nnc.Tensor, nnc.Tensor]:
    """Images of noise and labels."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 17, (count, 8, 8, 1)).astype(np.float32)
    return nnc.asarray(images), nnc.asarray(rng.integers(0, 3, count))


def make_training(model: nn.Module, minimiser: optim.Minimiser, mode: str) -> Any:
    """A step in one of the modes."""
    both = nn.value_and_grad(model, lambda x, y: nnc.cross_entropy(model(x), y))
    step = optim.make_step(both, minimiser, eager=mode != "compiled")

    def run(*batch: Any) -> Any:
        with nnc.deferred() if mode == "deferred" else nullcontext():
            return step(*batch)

    return run

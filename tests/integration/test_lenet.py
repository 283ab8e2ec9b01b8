"""One model, one seed: the same numbers in every mode of a device, and the same training on every device."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.cli import lenet
from nnc_core.cli.lenet import LeNet
from nnc_core.data import load_mnist
from nnc_core.values.cell import Cell
from tests.sizes import WHOLE, whole_or_quarter

Arrays = dict[str, np.ndarray[Any, Any]]


def usable(device: str) -> str:
    """The device, or a skip that says why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nnc.stack_for(device)
    except nnc.Error as error:
        pytest.skip(f"no {device}: {error.message}")
    return device


@pytest.fixture(params=["cpu:0", "opencl:0"])
def device(request: pytest.FixtureRequest) -> str:
    return usable(request.param)


def digits(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    sample = load_mnist("sample")
    return sample.train_images[:count], sample.train_labels[:count]


def weights(network: LeNet) -> Arrays:
    return {name: p.read().numpy() for name, p in network.module.named_parameters().items()}


def train(mode: str, device: str, steps: int, batch: int) -> tuple[list[float], Arrays]:
    """Losses of all steps, and the weights after them."""
    gc.collect()  # the network before this one, which is part of a cycle
    images, labels = digits(steps * batch)
    with nnc.use_device(device):
        network = LeNet(0, compiled=mode == "compiled")
        losses = []
        for k in range(0, steps * batch, batch):
            x, y = nnc.asarray(images[k : k + batch]), nnc.asarray(labels[k : k + batch])
            if mode == "deferred":
                with nnc.deferred():
                    loss = network.step(x, y)
            else:
                loss = network.step(x, y)
            losses.append(float(loss.item()))
        return losses, weights(network)


@pytest.mark.parametrize("steps, hidden", [(2, 64), pytest.param(4, lenet.HIDDEN, marks=pytest.mark.slow)])
def test_modes_agree_to_the_bit(device: str, steps: int, hidden: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout, max pooling, cross-entropy and Adagrad included."""
    monkeypatch.setattr(lenet, "HIDDEN", hidden)  # deferred steps, which can be exported, hold ten times the weights
    with nnc.config.using(deterministic=True):
        losses, expected = train("eager", device, steps, batch=4)
        for mode in ("deferred", "compiled"):
            found, result = train(mode, device, steps, batch=4)
            assert found == losses, mode
            for name, w in expected.items():
                np.testing.assert_array_equal(result[name], w, err_msg=f"{mode}: {name}")


def test_opencl_follows_the_cpu() -> None:
    """Steps of the full network from the same seed: losses, and weights by norm.

    Not weight by weight: Adagrad divides by the gradient's own size, so where a gradient is rounding noise (a few in
    a million are) its sign, and with it a whole step, may differ.
    """
    usable("opencl:0")
    losses, expected = train("compiled", usable("cpu:0"), steps=whole_or_quarter(20), batch=20)
    found, result = train("compiled", "opencl:0", steps=whole_or_quarter(20), batch=20)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    for name, w in expected.items():
        assert np.linalg.norm(result[name] - w) <= 1e-4 * np.linalg.norm(w), name


def test_it_learns() -> None:
    losses, _ = train("compiled", usable("cpu:0"), steps=30, batch=50)
    assert np.mean(losses[-5:]) < 0.6 * losses[0]


def test_devices_swap_at_run_time() -> None:
    """A network trained on one device classifies the same on another."""
    images, _ = digits(3 if WHOLE else 1)  # the strict device takes seconds for each
    with nnc.use_device(usable("cpu:0")):
        network = LeNet(0)
        before = network.classify(images)
    network.module.to("strict:0")
    with nnc.use_device("strict:0"):
        np.testing.assert_array_equal(network.classify(images, batch=2), before)
    assert all(isinstance(c, Cell) for c in network.module.named_parameters().values())

"""Training on two devices in one process, and a move from one to the other in the middle of it.

Run it with `python examples/two_devices.py [DEVICE]`; the other device is opencl:0 if there is one, else strict:0.
"""

from __future__ import annotations

import sys

import numpy as np

import nnc_core as nnc
from nnc_core import nn, optim

STEPS = 20


def other_device() -> str:
    """OpenCL where a driver works, or the device that needs none."""
    try:
        return nnc.ones(1, device="opencl").device.id
    except nnc.Error:
        return "strict:0"


class Fit:
    """A small network that learns sines, on whatever device its weights are."""

    def __init__(self, device: str) -> None:
        with nnc.use_device(device):
            self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
            self.minimiser = optim.Adam(self.net.named_parameters(), learning_rate=0.02)
        self.step = optim.make_step(nn.value_and_grad(self.net, self.loss), self.minimiser)

    def loss(self, x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return nnc.mean((self.net(x) - y) ** 2)

    def train(self, x: nnc.Tensor, y: nnc.Tensor, steps: int) -> float:
        with nnc.use_device(x.device):
            losses = [self.step(x, y) for _ in range(steps)]
        return losses[-1].item()

    def move(self, device: str) -> None:
        """Weights and the minimiser's state; the step is compiled anew at its next call."""
        self.net.to(device)
        self.minimiser.to(device)


def main(device: str | None = None) -> None:
    host_x = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
    data = {id: (nnc.asarray(host_x, device=id), nnc.asarray(np.sin(host_x), device=id))
            for id in dict.fromkeys((nnc.ones(1).device.id, device or other_device()))}
    first, second = next(iter(data)), [*data][-1]

    losses = {}
    for id, (x, y) in data.items():  # each device trains a network of its own
        nnc.manual_seed(0)
        losses[id] = Fit(id).train(x, y, 2 * STEPS)
        print(f"{id}: loss {losses[id]:.6f}")

    nnc.manual_seed(0)
    fit = Fit(first)
    fit.train(*data[first], STEPS)
    fit.move(second)
    moved = fit.train(*data[second], STEPS)
    print(f"{first}, then {second}: loss {moved:.6f}")
    assert np.allclose([moved, losses[second]], losses[first], rtol=1e-2), "it is the same training everywhere"


if __name__ == "__main__":
    main(*sys.argv[1:2])

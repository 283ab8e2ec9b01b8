"""A network that learns whether two numbers have the same sign: forward, backward and update in one compiled graph."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from nnc_core import nn, optim


def main() -> None:
    nnc.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    minimiser = optim.Adam(network.named_parameters(), learning_rate=0.01)
    gradients = nn.value_and_grad(network, lambda x, label: nnc.cross_entropy(network(x), label))

    @nnc.jit
    def step(x: nnc.Tensor, label: nnc.Tensor) -> nnc.Tensor:
        loss, grads = gradients(x, label)
        minimiser.update(grads)
        return loss

    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(512, 2)).astype(np.float32)
    labels = (points[:, 0] * points[:, 1] > 0).astype(np.int64)
    x, label = nnc.asarray(points[:256]), nnc.asarray(labels[:256])
    for i in range(301):
        loss = step(x, label)
        if i % 100 == 0:
            print(f"step {i:3}  loss {loss.item():.4f}")
    print(f"traced {step.traces} time; {step.lower(x, label).memory_plan}")

    network.eval()  # dropout off
    with nnc.no_grad():
        found = nnc.argmax(network(nnc.asarray(points[256:])), axis=-1).numpy()
    accuracy = np.mean(found == labels[256:])
    print(f"accuracy on points that it has not seen: {100 * accuracy:.1f} %")
    assert accuracy > 0.9


if __name__ == "__main__":
    main()

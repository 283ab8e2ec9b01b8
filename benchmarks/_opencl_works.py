"""What is run on an OpenCL device and on `cpu:0`: products, convolutions, functions, sums, training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from benchmarks._works import MLP_BATCH
from nnc_core import nn, optim
from nnc_core.cli.lenet import LeNet

Function = Callable[[], object]
MILLION = 1 << 20
LENET, MLP = "LeNet training step", "MLP training step"
IMAGE, KERNEL = (16, 56, 56, 64), (3, 3, 64, 64)
CONVOLUTION, GRADIENTS = "conv 3x3, 16 x 56 x 56 x 64", "its two gradients"


class Work(NamedTuple):
    """A work with its operations, and the bytes that it has to read and write; 0 where others count."""

    run: Function
    flops: float = 0.0
    nbytes: float = 0.0


def called(function: Callable[..., Any], device: str, *shapes: tuple[int, ...]) -> Function:
    """The compiled function on random arrays of a device, run to its end."""
    rng = np.random.default_rng(0)
    arrays = [nnc.asarray(rng.standard_normal(shape).astype(np.float32), device=device) for shape in shapes]
    compiled = nnc.jit(function)

    def run() -> None:
        compiled(*arrays)
        nnc.synchronize()

    return run


def convolved(x: Any, kernel: Any) -> Any:
    return nnc.conv2d(x, kernel, padding="SAME", layout="NHWC")


def gradients(x: Any, kernel: Any, g: Any) -> Any:
    return nnc.grad(lambda x, kernel: nnc.sum(convolved(x, kernel) * g), argnums=(0, 1))(x, kernel)


def adam(weights: Any, gradient: Any, mean: Any, square: Any) -> Any:
    """A step: new weights and moments."""
    mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * nnc.abs(square) + 0.001 * gradient * gradient
    return weights - 0.001 * mean / (nnc.sqrt(square) + 1e-8), mean, square


def works(device: str) -> dict[str, Work]:
    """What is run on a device, by name."""
    return {**products(device), **functions(device), LENET: Work(lenet(device)), MLP: Work(mlp(device))}


def products(device: str) -> dict[str, Work]:
    found = {f"matmul {n}": Work(called(nnc.matmul, device, (n, n), (n, n)), 2.0 * n**3)
             for n in (256, 512, 1024, 2048)}
    layer = called(nnc.matmul, device, (100, 6272), (6272, 1024))
    found["matmul 100 x 1024 x 6272"] = Work(layer, 2.0 * 100 * 1024 * 6272)
    flops = 2.0 * 16 * 56 * 56 * 64 * 64 * 9
    found[CONVOLUTION] = Work(called(convolved, device, IMAGE, KERNEL), flops)
    found[GRADIENTS] = Work(called(gradients, device, IMAGE, KERNEL, IMAGE), 2 * flops)
    return found


def functions(device: str) -> dict[str, Work]:
    """Functions and sums, which memory bounds."""
    some, square = (MILLION,), (1024, 1024)
    chain = called(lambda a, b, c, d: nnc.tanh(a * b + c) * d, device, some, some, some, some)
    norm = called(nnc.layer_norm, device, square, (1024,), (1024,))
    columns = called(lambda x: nnc.sum(x, axis=0), device, (4096, 4096))
    return {
        "tanh(a*b+c)*d of 1M": Work(chain, nbytes=20.0 * MILLION),
        "a + b of 1M": Work(called(nnc.add, device, some, some), nbytes=12.0 * MILLION),
        "softmax of 1024 x 1024": Work(called(nnc.softmax, device, square), nbytes=8.0 * MILLION),
        "layer norm of 1024 x 1024": Work(norm, nbytes=8.0 * MILLION),
        "Adam of 1M": Work(called(adam, device, some, some, some, some), nbytes=28.0 * MILLION),
        "argsort of 1M": Work(called(nnc.argsort, device, some), nbytes=12.0 * MILLION),
        "sum of 16M": Work(called(nnc.sum, device, (16 * MILLION,)), nbytes=64.0 * MILLION),
        "sum of columns of 4096 x 4096": Work(columns, nbytes=64.0 * MILLION),
        "-x of 1M": Work(called(nnc.negative, device, some), nbytes=8.0 * MILLION),
    }


def lenet(device: str) -> Function:
    """A training step of a batch of 100."""
    rng = np.random.default_rng(0)
    with nnc.use_device(device):
        network = LeNet(0, compiled=True)
        x = nnc.asarray(rng.integers(0, 256, (100, 28, 28, 1)).astype(np.uint8))
        y = nnc.asarray(rng.integers(0, 10, 100))

    def step() -> None:
        with nnc.use_device(device):
            network.step(x, y).item()

    return step


def mlp(device: str) -> Function:
    """A training step of two hidden layers of 1,024, by Adagrad."""
    rng = np.random.default_rng(0)
    with nnc.use_device(device):
        net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
        minimiser = optim.Adagrad(net.named_parameters(), learning_rate=0.005)
        step = optim.make_step(nn.value_and_grad(net, lambda x, y: nnc.cross_entropy(net(x), y)), minimiser)
        x = nnc.asarray(rng.standard_normal((MLP_BATCH, 784)).astype(np.float32))
        y = nnc.asarray(rng.integers(0, 10, MLP_BATCH))

    def run() -> None:
        with nnc.use_device(device):
            step(x, y).item()

    return run

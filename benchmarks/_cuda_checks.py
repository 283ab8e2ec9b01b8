"""`python -m benchmarks._cuda_checks DEVICE`: a GPU trains like cpu:0, draws the same bits, keeps its memory, and runs
work of two threads on two streams side by side.  Each check says what it found; the exit status is the failures."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from nnc_core import nn, optim, stacks
from nnc_core.base.record import Call
from nnc_core.cli.lenet import LeNet
from nnc_core.device import Device
from nnc_core.stacks import Stack
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.running import get, kernel, put

BOUND = 1e-3


def main(id: str, scale: Scale) -> int:
    device = stacks.stack_for(id).device
    print(f"{device.spec.name}, driver {device.spec.driver}, features {sorted(device.spec.features)}")
    failures = 0
    for check in (lenet, bits, memory, overlap):
        try:
            found, said = check(device, scale)
        except Exception:
            found, said = False, traceback.format_exc()
        print("ok    " if found else "FAILED", said, flush=True)
        failures += int(not found)
    return failures


class Small:
    """A network like LeNet for devices that take long: its step."""

    def __init__(self, seed: int) -> None:
        nnc.manual_seed(seed)
        self.module = nn.Sequential(
            nn.Lambda(lambda images: nnc.astype(images, nnc.float32) / 256), nn.Conv2d(1, 4, 3, padding="SAME"),
            nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten(), nn.Linear(64, 10))
        minimiser = optim.Adagrad(self.module.named_parameters(), learning_rate=0.005)
        gradients = nn.value_and_grad(self.module, lambda x, y: nnc.cross_entropy(self.module(x), y))
        self.step = optim.make_step(gradients, minimiser)


class Scale(NamedTuple):
    """How much is done."""

    network: Callable[[int], Any]
    side: int
    batch: int
    compared: int
    """Steps whose losses are compared."""
    steps: int
    """Steps over which memory is looked at."""
    points: int
    """Elements of the rows that two threads work on."""


WHOLE, FEW = Scale(LeNet, 28, 100, 20, 2000, 1 << 20), Scale(Small, 8, 4, 2, 10, 1 << 9)


def batch(scale: Scale, seed: int) -> tuple[nnc.Tensor, nnc.Tensor]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (scale.batch, scale.side, scale.side, 1)).astype(np.uint8)
    return nnc.asarray(images), nnc.asarray(rng.integers(0, 10, scale.batch))


def losses(id: str, scale: Scale) -> list[float]:
    with nnc.use_device(id):
        network = scale.network(0)
        return [float(network.step(*batch(scale, n)).item()) for n in range(scale.compared)]


def lenet(device: Device, scale: Scale) -> tuple[bool, str]:
    """Losses of the first steps, dropout and all."""
    ours, theirs = (np.array(losses(id, scale)) for id in (device.spec.id, "cpu:0"))
    apart = float(np.max(np.abs(ours - theirs) / np.abs(theirs)))
    name = scale.network.__name__  # type: ignore[attr-defined]
    return apart < BOUND, f"{name}: losses of {scale.compared} steps differ from cpu:0's by {apart:.1e} of them at most"


def bits(device: Device, scale: Scale) -> tuple[bool, str]:
    """Random numbers, and sums of two runs."""
    def drawn(id: str) -> list[Any]:
        with nnc.use_device(id):
            generator = nnc.Generator(7)
            return [generator.uniform((1000, 37)).numpy(), generator.integers(0, 1000, (999,)).numpy()]

    same = all((a == b).all() for a, b in zip(drawn(device.spec.id), drawn("cpu:0"), strict=True))
    twice = losses(device.spec.id, scale) == losses(device.spec.id, scale)
    return same and twice, f"random numbers have the bits of cpu:0: {same}; two runs have the same losses: {twice}"


def memory(device: Device, scale: Scale) -> tuple[bool, str]:
    """Memory after many steps, as nnc counts it and as the driver does."""
    counted, steps = [], scale.steps
    with nnc.use_device(device.spec.id):
        network, given = scale.network(0), batch(scale, 0)
        for n in range(steps):
            network.step(*given)
            if n in (steps // 10, steps - 1):
                device.default_stream.synchronize()
                info = device.memory_info()
                counted.append((info.used, info.total - info.free - info.pooled if info.free and info.total else 0))
    (used, taken), (used_later, taken_later) = counted
    grown = max(used_later - used, taken_later - taken)
    return grown < 1 << 20, f"memory grows by {grown} bytes in {steps - steps // 10} steps, from {used}"


def overlap(device: Device, scale: Scale) -> tuple[bool, str]:
    """Two captured programs, run by two threads on streams of their own, beside one after another.  Each of their
    kernels is one block, so that two have room side by side: how long they take is told, what they compute checked."""
    chains = [Chain(stacks.stack_for(device), seed, scale.points) for seed in range(2)]
    alone = timed(lambda: [chain() for chain in chains])
    together = timed(lambda: side_by_side(chains))
    right = all([chain.is_right() for chain in chains])
    text = f"two graphs from two threads on two streams take {together / alone:.2f} of the time of one after another"
    return right, f"{text}; their values are right: {right}"


class Chain:
    """Running sums of one row, there and back, as a program on a stream of its own."""

    def __init__(self, stack: Stack, seed: int, size: int) -> None:
        self.host = np.random.default_rng(seed).integers(0, 2, size).astype(np.int32)
        self.device, self.stream = stack.device, stack.device.stream()
        spec = TensorSpec(self.host.shape, self.host.dtype)
        self.slots = [put(self.device, self.host), *[put(self.device, np.zeros_like(self.host)) for _ in range(2)]]
        ahead, back = (kernel(stack, "cumulative_sum", spec, attributes=(0, reverse)) for reverse in (False, True))
        calls = [call for _ in range(10) for call in (Call(ahead, (0, 1)), Call(back, (0, 2)))]
        self.program = self.device.capture(calls, self.slots, self.stream)
        self.device.default_stream.synchronize()

    def __call__(self) -> None:
        for _ in range(5):
            self.program.run()
        self.stream.synchronize()

    def is_right(self) -> bool:
        ahead, back = (get(self.device, self.slots[n], self.host) for n in (1, 2))
        return bool((ahead == np.cumsum(self.host)).all() and (back == np.cumsum(self.host[::-1])[::-1]).all())


def side_by_side(work: list[Any]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def timed(f: Callable[[], object]) -> float:
    f()
    begun = perf_counter()
    f()
    return perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], FEW if "--few" in sys.argv else WHOLE))

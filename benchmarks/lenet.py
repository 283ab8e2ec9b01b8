"""A LeNet training step (batch 100, Adagrad): NumPy by hand, eager, dynamic graph, compiled, in turn; peak memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from benchmarks._measure import child, in_turn, peak_megabytes, show

if TYPE_CHECKING:
    from nnc_core import Tensor
    from nnc_core.cli.lenet import LeNet

VARIANTS = ("numpy by hand", "nnc eager", "nnc dynamic graph", "nnc compiled")
BATCH = 100


def stepper(variant: str) -> Callable[[], float]:
    """One step on fixed random digits, its loss looked at."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (BATCH, 28, 28, 1)).astype(np.uint8)
    labels = rng.integers(0, 10, BATCH)
    if variant == "numpy by hand":
        from benchmarks._lenet_by_hand import ByHand

        hand = ByHand()
        return lambda: hand.step(images, labels)
    import nnc_core as nnc
    from nnc_core.cli.lenet import LeNet

    lenet = LeNet(0, compiled=variant == "nnc compiled")
    x, y = nnc.asarray(images), nnc.asarray(labels)
    if variant == "nnc dynamic graph":
        return dynamic_step(lenet, x, y)
    return lambda: float(lenet.step(x, y).item())


def dynamic_step(lenet: LeNet, x: Tensor, y: Tensor) -> Callable[[], float]:
    """Eager operations, traced; a backward pass compiled by its structure; a compiled update.  The first steps, before
    anything is compiled, are made here."""
    import nnc_core as nnc

    module = lenet.module.requires_grad_()
    update = nnc.jit(lenet.minimiser.update)

    def step() -> float:
        module.zero_grad()
        loss = nnc.cross_entropy(module(x), y)
        loss.backward()
        with nnc.no_grad():
            update(module.gradients())
        return float(loss.item())

    for _ in range(3):
        step()
    return step


def memory(variant: str) -> float:
    """Peak megabytes of a process that makes ten steps and nothing else."""
    return float(child("benchmarks.lenet", variant))


def main() -> None:
    if len(sys.argv) == 2 and sys.argv[1] in VARIANTS:
        step = stepper(sys.argv[1])
        for _ in range(10):
            step()
        print(peak_megabytes())
        return
    times = in_turn({v: stepper(v) for v in VARIANTS}, repeats=15)
    hand, compiled = times["numpy by hand"], times["nnc compiled"]
    rows = [[v, f"{t * 1e3:.1f}", f"{t / hand:.2f}", f"{t / compiled:.2f}", f"{memory(v):.0f}"]
            for v, t in times.items()]
    show("LeNet training step", ["", "ms (median)", "x numpy", "x compiled", "peak MB"], rows)
    from nnc_core.cli.lenet import LeNet

    print(LeNet(0).compiled_step(BATCH).memory_plan)


if __name__ == "__main__":
    main()

"""Matrix products and convolutions of `cpu:0` on one thread, beside NumPy's BLAS, as shares of the machine's peak.

The peak is measured in the same run: multiply-adds of vectors in registers, with nothing to load.  NumPy gathers the
windows of convolutions into columns.  Packed before: the weights are constants, packed when the graph is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks._machine import peak_rate
from benchmarks._measure import show
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.base.layout import Layout
from nnc_core.device import CommandBackend
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.packing import UNPACK
from nnc_core.operator.program import Input, Program, Step, StepResult
from nnc_core.type import TensorSpec
from nnc_cpu.backends import NumpyBackend
from nnc_cpu.blas import on_one_thread
from nnc_cpu.products import PRODUCTS

ROUNDS, SECONDS = 7, 0.02
"""Rounds, and about how long one takes of each."""
GEMMS = {"256": (256, 256, 256), "512": (512, 512, 512), "1024": (1024, 1024, 1024), "2048": (2048, 2048, 2048),
         "100 x 1024 x 6272": (100, 1024, 6272), "100 x 1024 x 6272, B transposed": (100, 1024, 6272)}
"""Rows, columns, steps."""


class Layer(NamedTuple):
    """A convolution of square images."""

    size: int
    channels: int
    outputs: int
    window: int
    stride: int = 1


LAYERS = {
    "ResNet-50 conv1": Layer(224, 3, 64, 7, 2), "ResNet-50 56 3x3": Layer(56, 64, 64, 3),
    "ResNet-50 56 1x1": Layer(56, 64, 256, 1), "ResNet-50 28 3x3": Layer(28, 128, 128, 3),
    "ResNet-50 14 3x3": Layer(14, 256, 256, 3), "ResNet-50 7 3x3": Layer(7, 512, 512, 3),
    "MobileNet conv1": Layer(224, 3, 32, 3, 2), "MobileNet 112 1x1": Layer(112, 32, 64, 1),
    "MobileNet 14 1x1": Layer(14, 512, 512, 1)}  # fmt: skip


class Case(NamedTuple):
    """A command, and its multiplications and additions."""

    command: Command
    flops: float


def product(m: int, n: int, k: int, transposed: bool = False) -> Case:
    a, b = Layout.packed((m, k), float32), Layout.packed((n, k) if transposed else (k, n), float32)
    return Case(Command("matmul", (False, transposed), (a, b), (Layout.packed((m, n), float32),)), 2.0 * m * n * k)


def convolution(layer: Layer, operator: str) -> Case:
    """The convolution, or one of its gradients, of one image."""
    size, channels, outputs, window, stride = layer
    x = Layout.packed((1, size, size, channels), float32)
    kernel = Layout.packed((window, window, channels, outputs), float32)
    how = ((stride, stride), ((window // 2, window // 2),) * 2, (1, 1), 1, "NHWC")
    y = OPERATORS["conv"].infer(TensorSpec(x.shape, float32), TensorSpec(kernel.shape, float32), *how).layout()
    flops = 2.0 * prod(y.shape) * window * window * channels
    if operator == "conv":
        return Case(Command(operator, how, (x, kernel), (y,)), flops)
    if operator == "conv_input_gradient":
        return Case(Command(operator, ((size, size), *how), (y, kernel), (x,)), flops)
    return Case(Command(operator, ((window, window), *how), (x, y), (kernel,)), flops)


def packed_before(case: Case) -> Case:
    """The same with its weights in panels, as constants are."""
    command = case.command
    [(_, tiling)] = PRODUCTS[command.name][0].wants(command).items()
    a, b, out = (TensorSpec(x.shape, x.dtype) for x in (*command.inputs, command.output))
    packed = TensorSpec(tiling.packed(b.static_shape), b.dtype)
    steps = (Step(UNPACK, (tiling, b.static_shape), (Input(1),), b),
             Step(OPERATORS[command.name], command.attributes, (Input(0), StepResult(0)), out))
    program = Program(steps, (a, packed), (1,), library=1)
    return Case(Command(FUSED.name, (program,), (a.layout(), packed.layout()), command.outputs), case.flops)


def operator_of(command: Command) -> str:
    if command.name != FUSED.name:
        return command.name
    program: Program = command.attributes[0]
    return program.steps[-1].op.name


def launch_of(backend: CommandBackend, command: Command) -> Callable[[], object] | None:
    """The command, bound to numbers; None where the code refuses it."""
    if backend.refuse(command) is not None:
        return None
    rng = np.random.default_rng(0)
    buffers: list[Any] = [rng.standard_normal(prod(x.shape)).astype(np.float32).view(np.uint8)
                          for x in (*command.inputs, *command.outputs)]
    workspace = backend.workspace(command)
    return on_one_thread(backend.prepare(command).bind(
        [*buffers, *([np.empty(workspace, np.uint8)] if workspace else [])]))


def rates(case: Case) -> list[float | None]:
    """Operations a second of our code and of NumPy's, the best of rounds in turn; the time is that of this thread."""
    operator = operator_of(case.command)
    launches = [launch_of(PRODUCTS[operator][0], case.command), launch_of(NumpyBackend(operator), case.command)]
    best: list[float | None] = []
    for launch in launches:
        best.append(None if launch is None else 0.0)
        if launch is not None:
            launch()
    calls = max(1, int(SECONDS * 5e10 / case.flops))
    for _ in range(ROUNDS):
        for n, launch in enumerate(launches):
            if launch is not None:
                start = thread_time()
                for _ in range(calls):
                    launch()
                best[n] = max(best[n] or 0.0, case.flops * calls / (thread_time() - start))
    return best


def cases() -> dict[str, Case]:
    found = {f"matmul {name}": product(*size, transposed="transposed" in name) for name, size in GEMMS.items()}
    for operator in ("conv", "conv_input_gradient", "conv_kernel_gradient"):
        found |= {f"{operator} {name}": convolution(layer, operator) for name, layer in LAYERS.items()}
    for name in ("matmul 1024", "matmul 100 x 1024 x 6272", "conv ResNet-50 14 3x3", "conv ResNet-50 7 3x3",
                 "conv MobileNet 14 1x1"):
        found[f"{name}, packed before"] = packed_before(found[name])
    return found


def main() -> None:
    with config.using(threads=1):
        peak = peak_rate()
        rows = []
        for name, case in cases().items():
            ours, numpy = rates(case)
            rows.append([name, *[_shown(rate, peak) for rate in (ours, numpy)],
                         "" if ours is None or numpy is None else f"{ours / numpy:.2f}"])
    print(f"peak of one thread: {peak / 1e9:.0f} GFLOP/s")
    show("one thread, GFLOP/s and share of the peak", ["", "nnc", "NumPy", "nnc / NumPy"], rows)


def _shown(rate: float | None, peak: float) -> str:
    return "other code" if rate is None else f"{rate / 1e9:.0f}  {rate / peak:.0%}"


if __name__ == "__main__":
    main()

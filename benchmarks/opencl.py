"""OpenCL devices beside `cpu:0` of the same run: products, convolutions, functions, sums, a LeNet training step.

Products are shares of the machine's peak, which is measured by the same driver: multiply-adds of vectors in registers,
on all cores.  Functions and sums are to be held against the bandwidth of -x, which copies.  Words after
`-m benchmarks.opencl` choose rows; `calls` is what a call costs beside the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

import nnc_core as nnc
from benchmarks._measure import least, show
from benchmarks._opencl_calls import calls
from nnc_core.cli.lenet import LeNet
from nnc_core.stacks import stack_for
from nnc_opencl.device import OpenCLDevice

ROUNDS = 25
SUMS, STEPS = 20, 1 << 17
"""Vectors that the peak is measured with, and multiply-adds of each."""
PEAK = """
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void peak(__global float *x) {{
  const float16 a = x[0], b = x[1];
  {sums}
  for (int n = 0; n < {steps}; ++n) {{ {folds} }}
  vstore16({total}, get_global_id(0), x);
}}
"""
MILLION = 1 << 20
Function = Callable[[], object]


def peak_of(device: OpenCLDevice) -> tuple[Function, float]:
    """A function that keeps all cores busy with multiply-adds, and the number of its operations."""
    stream = device.default_stream
    names = [f"c{n}" for n in range(SUMS)]
    source = PEAK.format(sums=" ".join([f"float16 {c} = {n};" for n, c in enumerate(names)]), steps=STEPS,
                         folds=" ".join([f"{c} = fma(a, b, {c});" for c in names]), total=" + ".join(names))
    kernel = cl.Kernel(cl.Program(stream.context, source).build(), "peak")
    [cores] = [d.max_compute_units for d in stream.context.devices]
    memory = cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, 64 * cores)
    kernel.set_args(memory)

    def run() -> None:
        cl.enqueue_nd_range_kernel(stream.queue, kernel, (cores,), (1,))
        stream.queue.finish()

    return run, 2.0 * 16 * SUMS * STEPS * cores


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


def works(device: str) -> dict[str, tuple[Function, float, float]]:
    """What is run on a device: functions, operations and bytes."""
    found: dict[str, tuple[Function, float, float]] = {}
    for n in (256, 512, 1024, 2048):
        found[f"matmul {n}"] = called(nnc.matmul, device, (n, n), (n, n)), 2.0 * n**3, 0
    layer = called(nnc.matmul, device, (100, 6272), (6272, 1024))
    found["matmul 100 x 1024 x 6272"] = layer, 2.0 * 100 * 1024 * 6272, 0
    image, kernel = (16, 56, 56, 64), (3, 3, 64, 64)
    flops = 2.0 * 16 * 56 * 56 * 64 * 64 * 9
    found["conv 3x3, 16 x 56 x 56 x 64"] = called(convolved, device, image, kernel), flops, 0
    found["its two gradients"] = called(gradients, device, image, kernel, image), 2 * flops, 0
    some = (MILLION,)
    chain = called(lambda a, b, c, d: nnc.tanh(a * b + c) * d, device, some, some, some, some)
    found["tanh(a*b+c)*d of 1M"] = chain, 0, 20.0 * MILLION
    found["a + b of 1M"] = called(nnc.add, device, some, some), 0, 12.0 * MILLION
    found["softmax of 1024 x 1024"] = called(nnc.softmax, device, (1024, 1024)), 0, 8.0 * MILLION
    norm = called(nnc.layer_norm, device, (1024, 1024), (1024,), (1024,))
    found["layer norm of 1024 x 1024"] = norm, 0, 8.0 * MILLION
    found["Adam of 1M"] = called(adam, device, some, some, some, some), 0, 28.0 * MILLION
    found["argsort of 1M"] = called(nnc.argsort, device, some), 0, 12.0 * MILLION
    found["sum of 16M"] = called(nnc.sum, device, (16 * MILLION,)), 0, 64.0 * MILLION
    columns = called(lambda x: nnc.sum(x, axis=0), device, (4096, 4096))
    found["sum of columns of 4096 x 4096"] = columns, 0, 64.0 * MILLION
    found["-x of 1M"] = called(nnc.negative, device, some), 0, 8.0 * MILLION
    return found


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


def main(chosen: Sequence[str] = ()) -> None:
    opencl = "opencl:0"
    device = stack_for(opencl).device
    assert isinstance(device, OpenCLDevice)
    peak, operations = peak_of(device)
    sets = {name: works(name) for name in (opencl, "cpu:0")}
    for name in sets:
        sets[name]["LeNet training step"] = lenet(name), 0, 0
    rows = []
    for work, (_, flops, nbytes) in sets[opencl].items():
        if chosen and not any([word in work for word in chosen]):
            continue
        both = {name: made[work][0] for name, made in sets.items()}
        for function in both.values():
            function(), function(), function()
        times = least({**both, "peak": peak}, repeats=ROUNDS, calls=1)
        ours, theirs, highest = times[opencl], times["cpu:0"], operations / times["peak"]
        share = f"{flops / ours / highest:.2f} ({flops / theirs / highest:.2f})" if flops else ""
        rate = f"{flops / ours / 1e9:.0f}" if flops else f"{nbytes / ours / 1e9:.1f} GB/s" if nbytes else ""
        rows.append([work, f"{ours * 1e3:.2f}", f"{theirs * 1e3:.2f}", f"{theirs / ours:.2f}", rate, share])
        print(*rows[-1], file=sys.stderr, flush=True)
    show("OpenCL", ["", "opencl:0 ms", "cpu:0 ms", "cpu:0 / opencl:0", "GFLOP/s", "of the peak (cpu:0)"], rows)
    if not chosen or "calls" in chosen:
        show("Calls", ["", "microseconds", "times the driver's"], calls(opencl, sets[opencl]["LeNet training step"][0]))


if __name__ == "__main__":
    main(sys.argv[1:])

"""OpenCL devices beside `cpu:0` of the same run, their driver, and peers: each row with what it is held against.

Products are shares of the machine's peak, which is measured by the same driver: multiply-adds of vectors in registers,
on all cores.  Functions and sums are shares of the bandwidth at which the driver copies a buffer of a million floats.
Words after `-m benchmarks.opencl` choose rows; `calls`, `lstm`, `torch` and `tinygrad` are what a call costs beside the
driver, compiling, and peers, where they are installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks._measure import least, show
from benchmarks._opencl_calls import calls
from benchmarks._opencl_driver import copy_of, peak_of
from benchmarks._opencl_lstm import cold_and_warm
from benchmarks._opencl_peers import beside_tinygrad, beside_torch
from benchmarks._opencl_works import LENET, MILLION, Work, works
from nnc_core.stacks import stack_for
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.stream import OpenCLStream

ROUNDS = 25
OPENCL = "opencl:0"
HEADER = ["", "opencl:0 ms", "cpu:0 ms", "cpu:0 / opencl:0", "of the peak", "of the driver's copy"]


def is_chosen(name: str, chosen: Sequence[str]) -> bool:
    return not chosen or any([word in name for word in chosen])


def table(stream: OpenCLStream, sets: dict[str, dict[str, Work]], chosen: Sequence[str]) -> list[list[str]]:
    """Milliseconds of each work on both devices, and shares of what the driver reaches."""
    (peak, operations), (copy, copied) = peak_of(stream), copy_of(stream, MILLION)
    rows = []
    for name, work in sets[OPENCL].items():
        if not is_chosen(name, chosen):
            continue
        both = {device: made[name].run for device, made in sets.items()}
        for function in both.values():
            function(), function(), function()
        times = least({**both, "peak": peak, "copy": copy}, repeats=ROUNDS, calls=1)
        ours, theirs = times[OPENCL], times["cpu:0"]
        share = f"{work.flops / ours / (operations / times['peak']):.2f}" if work.flops else ""
        rate = f"{work.nbytes / ours / (copied / times['copy']):.2f}" if work.nbytes else ""
        rows.append([name, f"{ours * 1e3:.2f}", f"{theirs * 1e3:.2f}", f"{theirs / ours:.2f}", share, rate])
        print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def main(chosen: Sequence[str] = ()) -> None:
    device = stack_for(OPENCL).device
    assert isinstance(device, OpenCLDevice)
    sets = {name: works(name) for name in (OPENCL, "cpu:0")}
    if rows := table(device.default_stream, sets, chosen):
        show("OpenCL", HEADER, rows)
    if is_chosen("calls", chosen):
        show("Calls", ["", "microseconds", "times the driver's"], calls(OPENCL, sets[OPENCL][LENET].run))
    if is_chosen("lstm", chosen):
        cold, warm = cold_and_warm(OPENCL)
        show("Owl's LSTM graph, compiling and first run", ["cold s", "warm s"], [[f"{cold:.1f}", f"{warm:.1f}"]])
    peers = [*(beside_torch(sets[OPENCL]) if is_chosen("torch", chosen) else []),
             *(beside_tinygrad(sets[OPENCL][LENET].run) if is_chosen("tinygrad", chosen) else [])]
    if peers:
        show("Peers", ["", "opencl:0 ms", "theirs ms", "theirs / opencl:0"], peers)


if __name__ == "__main__":
    main(sys.argv[1:])

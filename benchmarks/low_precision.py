"""Products of bfloat16, float16 and 8-bit integers on `cpu:0`, one thread, beside float32 and PyTorch.

Shares are of the peak of the instruction that multiplies the dtype, which is measured in the same run: multiply-adds of
vectors in registers, with nothing to load.  PyTorch is asked where it is installed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks._machine import STEPS, SUMS, peak_rate
from benchmarks._measure import show
from benchmarks.products import ROUNDS, SECONDS, Case, Layer
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, int8, int32, is_integer, uint8
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.type import TensorSpec
from nnc_cpu.llvm.compiler import HostCompiler, host
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products import PRODUCTS, amx
from nnc_cpu.products.backend import problem_of
from nnc_cpu.products.dots import Dots, added, dots_of
from nnc_cpu.products.writing import function_text, loaded, moved, store

GEMMS = {"256": (256, 256, 256), "1024": (1024, 1024, 1024), "100 x 1024 x 6272": (100, 1024, 6272),
         "8 x 1024 x 1024": (8, 1024, 1024)}
"""Rows, columns, steps."""
LAYERS = {"56 3x3": Layer(56, 64, 64, 3), "56 1x1": Layer(56, 64, 256, 1), "14 3x3": Layer(14, 256, 256, 3)}
"""Convolutions of ResNet-50."""


class Way(NamedTuple):
    """Dtypes of the factors, and whether bits are promised."""

    a: DType
    b: DType
    exact: bool = False

    def __str__(self) -> str:
        return f"{self.a} by {self.b}" if self.a != self.b else f"{self.a}{', deterministic' * self.exact}"


WAYS = (Way(float32, float32), Way(bfloat16, bfloat16), Way(bfloat16, bfloat16, True), Way(float16, float16),
        Way(int8, int8), Way(uint8, int8), Way(uint8, uint8))


def product(way: Way, m: int, n: int, k: int) -> Case:
    name, out = ("matmul_integer", int32) if is_integer(way.a) else ("matmul", way.a)
    a, b = Layout.packed((m, k), way.a), Layout.packed((k, n), way.b)
    return Case(Command(name, (False, False), (a, b), (Layout.packed((m, n), out),)), 2.0 * m * n * k)


def convolution(way: Way, layer: Layer) -> Case:
    """The convolution of one image."""
    size, channels, outputs, window, stride = layer
    name = "conv_integer" if is_integer(way.a) else "conv"
    x, kernel = TensorSpec((1, size, size, channels), way.a), TensorSpec((window, window, channels, outputs), way.b)
    how = ((stride, stride), ((window // 2, window // 2),) * 2, (1, 1), 1, "NHWC")
    y = OPERATORS[name].infer(x, kernel, *how)
    flops = 2.0 * np.prod(y.static_shape) * window * window * channels
    return Case(Command(name, how, (x.layout(), kernel.layout()), (y.layout(),)), float(flops))


def numbers(shape: tuple[int, ...], dtype: DType) -> Any:
    drawn = np.random.default_rng(0).standard_normal(shape)
    return (drawn * 40).astype(np.int8).astype(dtype) if is_integer(dtype) else drawn.astype(dtype)


def ours(way: Way, case: Case) -> Callable[[], object]:
    command = case.command
    with config.using(deterministic=way.exact):
        backend = next(x for x in PRODUCTS[command.name] if x.refuse(command) is None)
        buffers = [numbers(x.shape, x.dtype).reshape(-1).view(np.uint8) for x in (*command.inputs, *command.outputs)]
        return backend.prepare(command).bind(buffers)


def of_torch(way: Way, case: Case) -> Callable[[], object] | None:
    """The same by PyTorch; None where it is not there, or has no such product."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    if way.exact or way.a != way.b or way.a == uint8 or (is_integer(way.a) and case.command.name != "matmul_integer"):
        return None
    torch.set_num_threads(1)
    kind = getattr(torch, way.a.name)
    a, b = (torch.from_numpy(numbers(x.shape, int8 if is_integer(way.a) else float32)).to(kind)
            for x in case.command.inputs)
    if is_integer(way.a):
        return lambda: torch._int_mm(a, b)
    if case.command.name == "matmul":
        return lambda: a @ b
    window, image = b.shape[0], a.permute(0, 3, 1, 2)
    kernel = b.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(image, kernel, padding=window // 2)


def peak_of(dots: Dots) -> float:
    """Operations a second of an instruction that goes through several steps, in registers."""
    declared = dict[str, None]()
    work, texts = (_of_tiles if dots.is_amx else _of_vectors)(dots, declared)
    machine = HostCompiler(host())
    module = machine.load([machine.compile("\n".join([*declared, *texts]))], ["peak"])
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.addresses["peak"])
    out = np.zeros(SUMS * host().lanes, np.int32)
    return max(2.0 * STEPS * work / _seconds(lambda: run(out.ctypes.data)) for _ in range(ROUNDS))


def _of_vectors(dots: Dots, declared: dict[str, None]) -> tuple[int, list[str]]:
    """The multiply-adds of a round, and code of such rounds, with sums in vectors."""
    f, lanes = FunctionWriter(declared), host().lanes
    type = "float" if "bf16" in dots.instruction else "i32"
    places = [moved(f, Register("%out", "ptr"), type, integer(n), lanes) for n in range(SUMS)]
    sums = [f.variable(type, lanes) for _ in range(SUMS)]
    factor = loaded(f, places[0], type, lanes, 4, None)
    for x, place in zip(sums, places, strict=True):
        f.set(x, loaded(f, place, type, lanes, 4, None))
    with f.loop(integer(0), integer(STEPS)):
        for x in sums:
            f.set(x, added(f, dots, f.get(x, type, lanes), factor, factor))
    for x, place in zip(sums, places, strict=True):
        store(f, f.get(x, type, lanes), place, 4, None)
    return SUMS * lanes * dots.steps, [function_text(f, "peak", (("out", "ptr"),), linkage="")]


def _of_tiles(dots: Dots, declared: dict[str, None]) -> tuple[int, list[str]]:
    """The same with sums in four tiles of AMX."""
    f = FunctionWriter(declared)
    f.call_void("llvm.x86.ldtilecfg", Register(f"@{amx.CONFIGURATION}", "ptr"))
    for n in range(8):
        f.call_void("llvm.x86.tilezero", integer(n, 8))
    with f.loop(integer(0), integer(STEPS)):
        for n in range(4):
            f.call_void(dots.instruction, integer(n, 8), integer(4 + n % 2, 8), integer(6 + n // 2, 8))
    f.call_void("llvm.x86.tilerelease")
    text = function_text(f, "peak", (("out", "ptr"),), linkage="")
    return 4 * amx.ROWS**3 * dots.steps, [amx.configuration_text(), text]


def _seconds(f: Callable[[], object]) -> float:
    start = thread_time()
    f()
    return thread_time() - start


def rates(case: Case, launches: list[Callable[[], object] | None]) -> list[float | None]:
    """Operations a second, the best of rounds in turn; the time is that of this thread."""
    best: list[float | None] = [None if launch is None else 0.0 for launch in launches]
    calls = max(1, int(SECONDS * 5e10 / case.flops))
    for _ in range(ROUNDS + 1):
        for n, launch in enumerate(launches):
            if launch is not None:
                seconds = _seconds(lambda launch=launch: [launch() for _ in range(calls)])  # type: ignore[misc]
                best[n] = max(best[n] or 0.0, case.flops * calls / seconds)
    return best


def main() -> None:
    with config.using(threads=1):
        plain = peak_rate()
        for way in WAYS:
            cases = {f"matmul {name}": product(way, *size) for name, size in GEMMS.items()}
            cases |= {f"conv {name}": convolution(way, layer) for name, layer in LAYERS.items()}
            dots = dots_of(problem_of(next(iter(cases.values())).command), host(), way.exact)
            peak = plain if dots is None else peak_of(dots)
            rows = []
            for name, case in cases.items():
                own, torch = rates(case, [ours(way, case), of_torch(way, case)])
                rows.append([name, f"{(own or 0) / 1e9:.0f}  {(own or 0) / peak:.0%}",
                             "" if torch is None else f"{torch / 1e9:.0f}",
                             "" if torch is None else f"{(own or 0) / torch:.2f}"])
            show(f"{way}: peak {peak / 1e9:.0f} Gop/s", ["", "nnc, Gop/s", "PyTorch", "nnc / PyTorch"], rows)


if __name__ == "__main__":
    main()

"""`python -m benchmarks._cuda_works FRAMEWORK DEVICE SECONDS`: milliseconds of works on a GPU in one framework (nnc,
torch, torch-compile, jax), a line of JSON for each, until the seconds are over."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks._works import Kept

WORKS = ("lenet training", "mlp training", "lstm training", "encoder block b8", "resnet50 b1", "resnet50 b32",
         "tanh(a*b+c)*d 16M", "softmax 16M", "layer norm 16M", "adam 16M", "call with 10 arguments")
PRODUCTS = {f"{dtype} product of {size}": (size, dtype) for dtype in ("float32", "float16") for size in (1024, 4096)}
COPY = "copy of 16M"
LAYERS = ("float16 convolution", "float16 attention")
SORT, FOURIER = "sort of 4M", "fft of 1024x4096"
ENOUGH, REPEATS, CALLS = 1.0, 7, 10
FEW = ("call with 10 arguments",)
"""Works for devices that take long."""

Step = Callable[[], object]


class Framework:
    """What is asked of one: steps, and a wait for all that they have enqueued."""

    def step(self, work: str) -> Step | None: ...  # type: ignore[empty-body]

    def wait(self) -> None: ...

    def here(self) -> AbstractContextManager[object]:
        return nullcontext()


class OfNnc(Framework):
    def __init__(self, device: str) -> None:
        self.nnc, self.works = import_module("nnc_core"), import_module("benchmarks._works_nnc")
        self.id, self.device = device, import_module("nnc_core.stacks").stack_for(device).device

    def here(self) -> AbstractContextManager[object]:
        return self.nnc.use_device(self.id)  # type: ignore[no-any-return]

    def step(self, work: str) -> Step | None:
        if work in PRODUCTS:
            a, b = (self.nnc.asarray(x) for x in factors(*PRODUCTS[work]))
            return Kept(self.nnc.jit(lambda a, b: a @ b), a, b)
        if work == COPY:
            source, target = (self.device.allocate(4 << 24) for _ in range(2))
            return lambda: self.device.copy(source, target)
        if work in LAYERS:
            layers = (partial(self.nnc.conv2d, padding="SAME"),
                      partial(self.nnc.scaled_dot_product_attention, causal=True))
            layer = layers[LAYERS.index(work)]
            return Kept(self.nnc.jit(lambda *given: layer(*given)), *[self.nnc.asarray(x) for x in operands(work)])
        if work in ROWS:
            function = self.nnc.sort if work == SORT else self.nnc.fft.fft
            return Kept(self.nnc.jit(lambda x: function(x, axis=-1)), self.nnc.asarray(ROWS[work]()))
        return self.works.make(work, "")  # type: ignore[no-any-return]

    def wait(self) -> None:
        self.device.default_stream.synchronize()


class OfTorch(Framework):
    def __init__(self, variant: str) -> None:
        self.torch, self.variant = import_module("torch"), variant
        self.torch.set_default_device("cuda")
        self.works = import_module("benchmarks._works_torch")
        example = import_module("benchmarks._inference_torch")
        made = example.example
        example.example = lambda name, batch: made(name, batch).to("cuda")

    def step(self, work: str) -> Step | None:
        if work in PRODUCTS:
            a, b = (self.torch.from_numpy(x).to("cuda") for x in factors(*PRODUCTS[work]))
            return Kept(self.torch.matmul, a, b)
        if work == COPY:
            source, target = (self.torch.empty(1 << 24) for _ in range(2))
            return lambda: target.copy_(source)
        if work in LAYERS:
            f, given = self.torch.nn.functional, [self.torch.from_numpy(x).to("cuda") for x in operands(work)]
            if work == LAYERS[1]:
                return Kept(partial(f.scaled_dot_product_attention, is_causal=True), *given)
            x, w = given[0].permute(0, 3, 1, 2), given[1].permute(3, 2, 0, 1).contiguous(
                memory_format=self.torch.channels_last)
            return Kept(partial(f.conv2d, padding=1), x, w)
        if work in ROWS:
            function = self.torch.sort if work == SORT else self.torch.fft.fft
            return Kept(function, self.torch.from_numpy(ROWS[work]()).to("cuda"))
        return self.works.make(work, self.variant)  # type: ignore[no-any-return]

    def wait(self) -> None:
        self.torch.cuda.synchronize()


class OfJax(Framework):
    def __init__(self) -> None:
        self.works, self.numpy = import_module("benchmarks._works_jax"), import_module("jax.numpy")
        self.jax = import_module("jax")

    def step(self, work: str) -> Step | None:
        if work in PRODUCTS:
            a, b = (self.numpy.asarray(x) for x in factors(*PRODUCTS[work]))
            f = self.jax.jit(lambda a, b: self.jax.lax.dot(a, b, precision="highest"))
            return self.works.waited(f, a, b)  # type: ignore[no-any-return]
        if work in LAYERS:
            given = [self.numpy.asarray(x) for x in operands(work)]
            if work == LAYERS[1]:
                turned = [self.numpy.swapaxes(x, 1, 2) for x in given]
                return self.works.waited(  # type: ignore[no-any-return]
                    self.jax.jit(partial(self.jax.nn.dot_product_attention, is_causal=True)), *turned)
            f = self.jax.jit(lambda x, w: self.jax.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            return self.works.waited(f, *given)  # type: ignore[no-any-return]
        if work in ROWS:
            f = self.jax.jit(self.numpy.sort if work == SORT else self.numpy.fft.fft)
            return self.works.waited(f, self.numpy.asarray(ROWS[work]()))  # type: ignore[no-any-return]
        return None if work == COPY else self.works.make(work, "")


def factors(size: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((size, size), dtype=np.float32).astype(dtype) for _ in range(2)]


def operands(work: str) -> list[Any]:
    """Images (32, 56, 56, 64) and a kernel (3, 3, 64, 64); queries, keys and values (8, 16, 1024, 64)."""
    shapes = ((32, 56, 56, 64), (3, 3, 64, 64)) if work == LAYERS[0] else ((8, 16, 1024, 64),) * 3
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32).astype(np.float16) for shape in shapes]


def numbers() -> Any:
    return np.random.default_rng(0).standard_normal((1, 1 << 22), dtype=np.float32)


ROWS: dict[str, Callable[[], Any]] = {
    SORT: numbers, FOURIER: lambda: numbers().reshape(1024, 4096).astype(np.complex64)}


def measured(framework: Framework, step: Step) -> tuple[float, float, float]:
    """Seconds of a call, of its first call, and of the host alone in a call."""
    begun = perf_counter()
    step()
    framework.wait()
    first = perf_counter() - begun
    step()
    framework.wait()
    whole, host = [], []
    begun_all = perf_counter()
    while len(whole) < REPEATS and (perf_counter() - begun_all < ENOUGH or not whole):
        begun = perf_counter()
        for _ in range(CALLS):
            step()
        host.append((perf_counter() - begun) / CALLS)
        framework.wait()
        whole.append((perf_counter() - begun) / CALLS)
    return median(whole), first, median(host)


def main(name: str, device: str, seconds: float, works: tuple[str, ...]) -> None:
    end = perf_counter() + seconds
    framework = (OfNnc(device) if name == "nnc" else OfJax() if name == "jax"
                 else OfTorch("compile" if name == "torch-compile" else ""))
    for work in works:
        if perf_counter() > end:
            print(json.dumps({"framework": name, "work": work, "error": "there was no time left"}), flush=True)
            continue
        try:
            with framework.here():
                step = framework.step(work)
                if step is None:
                    continue
                whole, first, host = measured(framework, step)
            found: dict[str, Any] = {"ms": whole * 1e3, "first": first, "host": host * 1e3}
        except Exception as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps({"framework": name, "work": work, **found}), flush=True)


if __name__ == "__main__":
    few = "--few" in sys.argv
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), FEW if few else (COPY, *WORKS, *PRODUCTS, *LAYERS, *ROWS))

"""ONNX models: load time, first call, latency and planned memory, ONNX Runtime beside.

`NNC_BENCHMARK_MODELS` names a folder of models; without it the models are networks of the zoo, exported first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._measure import in_turn, show
from benchmarks._onnx import threads
from nnc_core.io import load_onnx, save_onnx
from nnc_core.nn import zoo

SMALLEST, LARGEST = 1, 320
"""Sizes that stand for dimensions without a number: of batches, and of what comes behind the channels."""


@contextmanager
def models() -> Iterator[list[Path]]:
    """Files of models, while the block runs."""
    folder = os.environ.get("NNC_BENCHMARK_MODELS")
    if folder is not None:
        yield sorted(Path(folder).glob("*.onnx"))
        return
    with TemporaryDirectory() as made:
        path = Path(made) / "resnet18.onnx"
        network = zoo.resnet18(generator=nnc.Generator(0)).eval()
        save_onnx(network, path, inputs=[("batch", 224, 224, 3)])
        yield [path]


def inputs_of(session: Any) -> dict[str, Any]:
    """Random arrays for the inputs that a session of ONNX Runtime declares."""
    rng = np.random.default_rng(0)
    found = {}
    for declared in session.get_inputs():
        shape = [n if isinstance(n, int) and n > 0 else SMALLEST if i == 0 else LARGEST
                 for i, n in enumerate(declared.shape)]
        kind = declared.type.removeprefix("tensor(").removesuffix(")")
        dtype = np.dtype({"float": "float32", "double": "float64"}.get(kind, kind))
        found[declared.name] = (rng.standard_normal(shape).astype(dtype) if dtype.kind == "f"
                                else rng.integers(0, 100, shape).astype(dtype))
    return found


def timed(f: Callable[[], Any]) -> tuple[Any, float]:
    begin = perf_counter()
    found = f()
    return found, 1e3 * (perf_counter() - begin)


def row(path: Path, runtime: Any) -> list[str]:
    """Milliseconds of one model."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads(), 4
    session, their_load = timed(lambda: runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"]))
    try:
        given = inputs_of(session)
        expected, their_first = timed(lambda: session.run(None, given))
    except Exception as error:  # sizes that only the model's makers know
        return [path.stem, f"ONNX Runtime: {type(error).__name__}", *[""] * 7]
    module, load = timed(lambda: load_onnx(path))
    known = {name: given[name] for name in module.static_names}
    tensors = {name: nnc.asarray(x) for name, x in given.items() if name not in known}
    sizes = {name: n for x in module.inputs for name, n in zip(x.shape or (), given[x.name].shape, strict=False)
             if isinstance(name, str)}
    sizes |= {f"{x.name}_{i}": n for x in module.inputs for i, n in enumerate(given[x.name].shape)}
    compiled, first = timed(lambda: module.graph(frozen=True, sizes=sizes, **known).compile())

    def ours() -> list[Any]:
        return [np.asarray(y) for y in compiled(**tensors).values()]

    results, call = timed(ours)
    worst = max((float(np.max(np.abs(a - b) / (np.abs(b) + 1e-3))) for a, b in zip(results, expected, strict=True)
                 if b.size), default=0.0)
    times = in_turn({"nnc": ours, "theirs": lambda: session.run(None, given)}, repeats=21)
    return [path.stem, f"{load:.0f}", f"{their_load:.0f}", f"{first + call:.0f}", f"{their_first:.1f}",
            f"{1e3 * times['nnc']:.2f}", f"{1e3 * times['theirs']:.2f}", f"{times['theirs'] / times['nnc']:.2f}",
            f"{compiled.memory_plan.peak / 2**20:.1f}", f"{worst:.0e}"]


def main() -> None:
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        print("ONNX Runtime is not installed: pip install onnxruntime")
        return
    nnc.config.threads = threads()
    with models() as files:
        header = ["model", "load", "ORT", "compile and first call", "ORT first", "a call", "ORT", "ORT / nnc",
                  "planned MiB", "relative error"]
        show("milliseconds", header, [row(path, runtime) for path in files])


if __name__ == "__main__":
    main()

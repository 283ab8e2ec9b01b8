"""A process of its own: compiles Owl's LSTM graph for a device, runs it once, and says the seconds of both."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from time import perf_counter

import nnc_core as nnc
from benchmarks import lstm
from benchmarks._measure import child
from nnc_core.symbol import without_collector


def main() -> None:
    stack = nnc.stack_for(sys.argv[1])
    with without_collector():
        graph = lstm.build(stack.operator.open())
        arrays = lstm.data(graph, stack.engine)
        begin = perf_counter()
        run = stack.engine.compile(graph)
        compiled = perf_counter()
        loss = float(stack.engine.executor.download(run.run(arrays)["loss"]))
        end = perf_counter()
    print(json.dumps({"compiling": compiled - begin, "first": end - compiled, "loss": loss}))


def cold_and_warm(device: str) -> tuple[float, float]:
    """Seconds to compile and run once, where nothing is kept on disk, and where what the first process made is: the
    least of three."""
    kept = os.environ.get("NNC_CACHE_FOLDER")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NNC_CACHE_FOLDER"] = folder
        try:
            said = [json.loads(child("benchmarks._opencl_lstm", device)) for _ in range(4)]
        finally:
            del os.environ["NNC_CACHE_FOLDER"]
            if kept is not None:
                os.environ["NNC_CACHE_FOLDER"] = kept
    cold, *warm = [each["compiling"] + each["first"] for each in said]
    return cold, min(warm)


if __name__ == "__main__":
    main()

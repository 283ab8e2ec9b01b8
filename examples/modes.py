"""One function, three times: eager, deferred and compiled, on any device.

Run it with `python examples/modes.py [DEVICE]`, for example opencl:0.
"""

from __future__ import annotations

import sys

import numpy as np

import nnc_core as nnc


def layer(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
    return nnc.tanh(x @ w) + 1


def main(device: str | None = None) -> None:
    rng = np.random.default_rng(0)
    host_x, host_w = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 3), (3, 2)))
    x, w = nnc.asarray(host_x, device=device), nnc.asarray(host_w, device=device)
    print(f"on {x.device.id}, {x.device.name}")

    eager = layer(x, w)  # runs now

    with nnc.deferred():
        later = layer(x, w)  # recorded; shapes are checked here
    print(f"deferred: shape {later.shape} is known, computed: {not later.is_deferred}")

    graph = nnc.export(inputs={"x": x, "w": w}, outputs={"y": later})  # both ends are named after the fact
    run = graph.compile(device=x.device.id)
    compiled = run(x=host_x, w=host_w)["y"]
    print(graph)
    print(run.memory_plan)

    step = nnc.jit(layer)  # the same in one word: traced once for each signature
    for name, y in (("deferred", later), ("compiled", compiled), ("jit", step(x, w))):
        difference = np.abs(y.numpy() - eager.numpy()).max()
        print(f"{name} and eager differ by at most {difference:.1g}")
        assert difference < 1e-6


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""Inference in nnc: a network with its weights as constants, compiled; the network itself is given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nnc_core as nnc
from benchmarks._inference import CLASSES, FEATURES, HEADS, HIDDEN, drawn, input_of
from nnc_core import nn
from nnc_core.nn import zoo

BUILT: dict[str, Callable[[], Any]] = {
    "resnet50": lambda: zoo.resnet50(CLASSES),
    "mobilenet": lambda: zoo.mobilenet_v2(CLASSES),
    "encoder block": lambda: nn.TransformerEncoderLayer(FEATURES, HEADS, hidden=HIDDEN, activation="gelu"),
}


def inference(name: str, batch: int) -> Callable[[], object]:
    array = input_of(name, batch)
    network = BUILT[name]().eval()
    weights = [*network.named_parameters().values(), *network.named_buffers().values()]
    for number, cell in enumerate([x for x in weights if x.spec.dtype == nnc.float32]):
        cell.write(nnc.asarray(drawn(number, cell.spec.static_shape)))
    x = nnc.var_arr("x", array.shape)
    graph = nnc.export({"x": x}, {"y": network(x)}, capture="constant")
    del network, weights, cell
    return Step(graph.compile(consume=True), nnc.asarray(array))


class Step:
    """Keeps the result until the next call, as loops do."""

    def __init__(self, run: Any, x: nnc.Tensor) -> None:
        self.run, self.x = run, x
        self.result: Any = None

    def __call__(self) -> Any:
        self.result = self.run(x=self.x)
        return self.result["y"] if isinstance(self.result, dict) else self.result

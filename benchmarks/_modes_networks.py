"""The networks of the comparison of modes: Owl's sizes, weights drawn, and inputs that are the same in every mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.cli.lenet import LeNet
from nnc_core.nn import zoo
from nnc_core.values.cell import Cell

LENET_BATCH = 100
WINDOW, VOCABULARY, EMBEDDING, HIDDEN, LINEAR, TEXTS = 100, 60, 40, 128, 512, 100
CLASSES, OBJECT_CLASSES = 1000, 81


class Training(NamedTuple):
    """A step that runs operator by operator, the same step compiled, its batch, and what it writes."""

    step: Callable[..., nnc.Tensor]
    compiled: Any
    batch: tuple[nnc.Tensor, ...]
    written: Sequence[Cell]


class Inference(NamedTuple):
    """A network that is not trained any more, and its images."""

    network: nn.Module
    images: nnc.Tensor


Work = Training | Inference


class OwlLSTM(nn.Module):
    """Owl's lstm.ml: letters as rows of an embedding, matrices of its own for each gate, two dense layers."""

    def __init__(self) -> None:
        self.embedding = nn.Linear(VOCABULARY, EMBEDDING, bias=False)
        self.given = nn.ModuleDict({gate: nn.Linear(EMBEDDING, HIDDEN) for gate in "ifoc"})
        self.carried = nn.ModuleDict({gate: nn.Linear(HIDDEN, HIDDEN, bias=False) for gate in "ifoc"})
        self.dense, self.head = nn.Linear(HIDDEN, LINEAR), nn.Linear(LINEAR, VOCABULARY)

    def forward(self, texts: nnc.Tensor) -> nnc.Tensor:
        """(batch, length) -> logits of the letter that follows."""
        h = c = nnc.zeros((texts.shape[0], HIDDEN))
        for t in range(int(texts.shape[1])):
            x = self.embedding(nnc.one_hot(texts[:, t], VOCABULARY))
            i, f, o, new = (self.given[gate](x) + self.carried[gate](h) for gate in "ifoc")
            c = nnc.sigmoid(f) * c + nnc.sigmoid(i) * nnc.tanh(new)
            h = nnc.sigmoid(o) * nnc.tanh(c)
        logits: nnc.Tensor = self.head(nnc.relu(self.dense(h)))
        return logits


def trained(network: nn.Module, minimiser: optim.Minimiser, *batch: nnc.Tensor) -> Training:
    def loss(*given: nnc.Tensor) -> nnc.Tensor:
        *inputs, labels = given
        return nnc.cross_entropy(network(*inputs), labels)

    gradients = nn.value_and_grad(network, loss)
    return Training(optim.make_step(gradients, minimiser, eager=True), optim.make_step(gradients, minimiser), batch,
                    [*network.cells().values(), *minimiser.cells().values()])


def lenet() -> Training:
    rng, network = np.random.default_rng(0), LeNet(0)
    images = rng.integers(0, 256, (LENET_BATCH, 28, 28, 1)).astype(np.uint8)
    return trained(network.module, network.minimiser, nnc.asarray(images), labels(10, LENET_BATCH))


def lstm() -> Training:
    nnc.manual_seed(0)
    network = OwlLSTM()
    texts = np.random.default_rng(0).integers(0, VOCABULARY, (TEXTS, WINDOW))
    return trained(network, optim.Adagrad(network.named_parameters(), learning_rate=0.01), nnc.asarray(texts),
                   labels(VOCABULARY, TEXTS))


def labels(classes: int, batch: int) -> nnc.Tensor:
    return nnc.asarray(np.random.default_rng(1).integers(0, classes, batch))


def inference(build: Callable[[int], nn.Module], classes: int, side: int) -> Inference:
    nnc.manual_seed(0)
    images = np.random.default_rng(0).standard_normal((1, side, side, 3), dtype=np.float32)
    return Inference(build(classes).eval(), nnc.asarray(images))


WORKS: dict[str, Callable[[], Work]] = {
    "LeNet": lenet,
    "ResNet-50": lambda: inference(zoo.resnet50, CLASSES, 299),
    "InceptionV3": lambda: inference(zoo.inception_v3, CLASSES, 299),
    "Mask R-CNN": lambda: inference(zoo.mask_rcnn, OBJECT_CLASSES, 768),
    "LSTM": lstm,
}

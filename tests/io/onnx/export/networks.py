"""The networks of the zoo, small, with the shapes of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.nn import Module, zoo
from nnc_core.nn.zoo.detection.model import DetectionSettings
from nnc_core.nn.zoo.detection.proposals import ProposalSettings

BATCH = nnc.Dim("batch")


class Network(NamedTuple):
    """How to build one, and what it takes: images of a size and of some channels, or rows of tokens."""

    build: Callable[[], Module]
    images: tuple[int, int] | None = None
    tokens: tuple[int, ...] = ()
    batch: Any = BATCH

    def specs(self) -> list[nnc.TensorSpec]:
        if self.images is not None:
            size, channels = self.images
            return [nnc.TensorSpec((self.batch, size, size, channels), np.dtype(np.float32))]
        return [nnc.TensorSpec((self.batch, length), np.dtype(np.int32)) for length in self.tokens]

    def inputs(self, rows: int, seed: int = 0) -> list[Any]:
        """Arrays of so many rows, or of as many as the network is for."""
        rng = np.random.default_rng(seed)
        shapes = [(rows if self.batch is BATCH else self.batch, *spec.shape[1:]) for spec in self.specs()]
        if self.images is not None:
            return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        return [rng.integers(0, 50, shape).astype(np.int32) for shape in shapes]


def detector() -> Module:
    """Mask R-CNN with boxes near their anchors and no class much likelier than another, so that it finds something."""
    network = zoo.mask_rcnn(classes=5, width=8, features=16, hidden=16, proposals=ProposalSettings(50, 20, 0.7),
                            detections=DetectionSettings(10, 30, 0.0, 0.5))
    for name, parameter in network.named_parameters().items():
        if "differences" in name or "logits" in name:
            parameter.write(parameter.read() * 1e-3)
        if name.startswith("pyramid"):
            parameter.write(parameter.read() * 0.1)
    return network


_SMALL: Mapping[str, Any] = {"classes": 10, "width": 8}
_NARROW: Mapping[str, Any] = {"classes": 10, "width": 0.25}
_TEXT: Mapping[str, Any] = {"features": 16, "heads": 2, "layers": 2, "hidden": 32}
NETWORKS: dict[str, Network] = {
    "lenet5": Network(zoo.lenet5, (28, 1)),
    "owl_lenet": Network(lambda: zoo.owl_lenet(width=4, hidden=32), (28, 1)),
    "vgg16": Network(lambda: zoo.vgg16(**_SMALL, hidden=32, image=64), (64, 3)),
    "googlenet": Network(lambda: zoo.googlenet(**_NARROW), (64, 3)),
    "resnet18": Network(lambda: zoo.resnet18(**_SMALL), (64, 3)),
    "resnet50": Network(lambda: zoo.resnet50(**_SMALL), (64, 3)),
    "densenet121": Network(lambda: zoo.densenet121(classes=10, growth=4), (64, 3)),
    "efficientnet_b0": Network(lambda: zoo.efficientnet_b0(**_NARROW), (64, 3)),
    "mobilenet_v2": Network(lambda: zoo.mobilenet_v2(**_NARROW), (64, 3)),
    "inception_v3": Network(lambda: zoo.inception_v3(classes=10, width=0.125), (299, 3)),
    "mask_rcnn": Network(detector, (64, 3), batch=2),
    "lstm_language_model": Network(lambda: zoo.lstm_language_model(50, features=16, hidden=16), tokens=(7,)),
    "lstm_classifier": Network(lambda: zoo.lstm_classifier(vocabulary=50, features=16, hidden=16), tokens=(7,)),
    "transformer": Network(lambda: zoo.transformer(50, **_TEXT), tokens=(7, 5)),
    "transformer_language_model": Network(lambda: zoo.transformer_language_model(50, **_TEXT), tokens=(7,)),
    "transformer_classifier": Network(lambda: zoo.transformer_classifier(vocabulary=50, **_TEXT), tokens=(7,)),
}

EVERY_TIME = ("lenet5", "resnet18", "lstm_classifier", "transformer_classifier")
NAMES = [pytest.param(n, marks=() if n in EVERY_TIME else pytest.mark.slow) for n in NETWORKS]
"""All of them; what is not tested every time is slow."""

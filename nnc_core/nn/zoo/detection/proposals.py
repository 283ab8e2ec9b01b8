"""The region proposal network (Ren et al. 2015): where objects may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnc_core.functions.creation import full
from nnc_core.functions.elementwise import logical_and, maximum, relu, where
from nnc_core.functions.indexing import take
from nnc_core.functions.joining import concat
from nnc_core.functions.movement import permute_dims, reshape
from nnc_core.functions.regions import batched_nms
from nnc_core.functions.sorting import top_k
from nnc_core.nn import Conv2d, Module
from nnc_core.nn.zoo.detection.boxes import OF_ANCHORS, clipped, decoded
from nnc_core.values.tensor import Tensor

SMALLEST = 1e-3
"""Boxes with a shorter side, in pixels, are no proposals."""


class Found(NamedTuple):
    """For each anchor of each level: logits [(batch, anchors)] and differences [(batch, anchors, 4)]."""

    logits: list[Tensor]
    differences: list[Tensor]


class ProposalSettings(NamedTuple):
    """Limits of proposals: boxes of each level that are looked at, those proposed, and how much they may overlap."""

    candidates: int = 1000
    proposals: int = 1000
    overlap: float = 0.7


class ProposalNetwork(Module):
    """A 3x3 convolution, and on it how likely an object is and how its box differs, for each anchor of a pixel."""

    def __init__(self, channels: int, anchors: int, layout: str = "NHWC") -> None:
        self.conv = Conv2d(channels, channels, 3, padding=1, layout=layout)
        self.logits = Conv2d(channels, anchors, 1, layout=layout)
        self.differences = Conv2d(channels, 4 * anchors, 1, layout=layout)
        self.layout = layout

    def forward(self, levels: Sequence[Tensor]) -> Found:
        found = Found([], [])
        for level in levels:
            x = relu(self.conv(level))
            found.logits.append(reshape(self._channels_last(self.logits(x)), (x.shape[0], -1)))
            found.differences.append(reshape(self._channels_last(self.differences(x)), (x.shape[0], -1, 4)))
        return found

    def _channels_last(self, x: Tensor) -> Tensor:
        return x if self.layout == "NHWC" else permute_dims(x, (0, 2, 3, 1))


def proposed(found: Found, anchors: Sequence[Tensor], size: tuple[int, int], settings: ProposalSettings,
             image: int) -> tuple[Tensor, Tensor]:
    """The likeliest boxes of an image (proposals, 4), and whether there is one (proposals,); zeros where not."""
    boxes, scores, groups = [], [], []
    for level, (logits, differences, references) in enumerate(zip(*found, anchors, strict=True)):
        best, where_best = top_k(logits[image], min(settings.candidates, int(references.shape[0])))
        near = decoded(take(differences[image], where_best, axis=0), take(references, where_best, axis=0), OF_ANCHORS)
        boxes.append(near)
        scores.append(best)
        groups.append(full(best.shape, level, dtype="int64", device=best.device))
    every, logits, group = clipped(concat(boxes), *size), concat(scores), concat(groups)
    sides = every[:, 2:] - every[:, :2]
    large = logical_and(sides[:, 0] >= SMALLEST, sides[:, 1] >= SMALLEST)
    order = batched_nms(every, where(large, logits, -float("inf")), group, settings.overlap, padded=True)
    kept = order[: settings.proposals]
    index = maximum(kept, 0)
    there = logical_and(kept >= 0, take(large, index, axis=0))
    return where(there[:, None], take(every, index, axis=0), 0.0), there

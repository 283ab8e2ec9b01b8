"""Mask R-CNN (He et al. 2017) on a feature pyramid: boxes, classes and masks of the objects in images."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.errors import ShapeError
from nnc_core.functions.creation import asarray
from nnc_core.functions.elementwise import greater, logical_and, maximum, sigmoid, stop_gradient, where
from nnc_core.functions.indexing import take
from nnc_core.functions.joining import concat, stack
from nnc_core.functions.movement import reshape
from nnc_core.functions.neural import softmax
from nnc_core.functions.regions import batched_nms
from nnc_core.functions.sorting import top_k
from nnc_core.nn import Module
from nnc_core.nn.zoo.blocks import channel_axis
from nnc_core.nn.zoo.detection.anchors import RATIOS, pyramid_anchors
from nnc_core.nn.zoo.detection.boxes import OF_REGIONS, clipped, decoded
from nnc_core.nn.zoo.detection.heads import BoxHead, MaskHead, pooled
from nnc_core.nn.zoo.detection.losses import (
    Losses,
    Targets,
    mask_loss,
    of_class,
    proposal_losses,
    region_losses,
)
from nnc_core.nn.zoo.detection.proposals import ProposalNetwork, ProposalSettings, proposed
from nnc_core.nn.zoo.detection.pyramid import FeaturePyramid, freeze_batch_norm
from nnc_core.nn.zoo.resnet import ResNet, resnet50
from nnc_core.values.tensor import Tensor

STRIDES = (4, 8, 16, 32, 64)
MULTIPLE = 32
"""The number that divides height and width, so that each of the first four levels is half of the one before."""
ANCHOR_SIZES = (32, 64, 128, 256, 512)
BOX_SIZE, MASK_SIZE = 7, 14
"""Sides of the regions that the heads read; masks are twice as large."""


class Detections(NamedTuple):
    """The best first, then zeros: boxes (batch, n, 4), scores (batch, n) and int64 classes (batch, n), 0 where there is
    none; masks (batch, n, 28, 28), probabilities within the box."""

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    masks: Tensor


class DetectionSettings(NamedTuple):
    """Limits of detection: objects in an image, candidates (boxes with a class) they are from, how likely they must be,
    and how much boxes of one class may overlap."""

    objects: int = 100
    candidates: int = 1000
    score: float = 0.05
    overlap: float = 0.5


PROPOSALS, DETECTIONS = ProposalSettings(), DetectionSettings()


class MaskRCNN(Module):
    """Images (batch, height, width, channels) -> Detections; height and width are multiples of 32.

    All shapes are known beforehand, so that detection and training are one static graph each.  Class 0 is none.
    """

    def __init__(self, backbone: ResNet, classes: int, *, features: int = 256, hidden: int = 1024,
                 proposals: ProposalSettings = PROPOSALS, detections: DetectionSettings = DETECTIONS,
                 layout: str = "NHWC") -> None:
        del backbone.head
        freeze_batch_norm(backbone)
        self.backbone, self.pyramid = backbone, FeaturePyramid(backbone.widths, features, layout)
        self.proposals = ProposalNetwork(features, len(RATIOS), layout)
        self.boxes, self.masks = BoxHead(features, BOX_SIZE, hidden, classes), MaskHead(features, classes, layout)
        self.proposal_settings, self.detection_settings = proposals, detections
        self.classes, self.layout = classes, layout

    # ---- what images give
    def levels(self, images: Tensor) -> list[Tensor]:
        """The feature maps of the pyramid, at 1/4, 1/8, 1/16, 1/32 and (rounded up) 1/64 of the size."""
        height, width = self._size(images)
        if height % MULTIPLE or width % MULTIPLE:
            raise ShapeError(f"the images {images.spec} are {height} x {width}, expected multiples of {MULTIPLE}",
                             operator="MaskRCNN", hint="pad them with zeros after the end")
        return self.pyramid(self.backbone.features(images))  # type: ignore[no-any-return]

    def anchors(self, images: Tensor) -> list[Tensor]:
        """The anchors (anchors, 4) of each level for such images, in pixels."""
        height, width = self._size(images)
        levels = [(-(-height // stride), -(-width // stride)) for stride in STRIDES]
        return [asarray(a, device=images.device) for a in pyramid_anchors(levels, STRIDES, ANCHOR_SIZES)]

    def _size(self, images: Tensor) -> tuple[int, int]:
        height, width = self.layout.index("H"), self.layout.index("W")
        return int(images.shape[height]), int(images.shape[width])

    def _regions(self, levels: list[Tensor], boxes: Tensor, size: int) -> Tensor:
        return pooled(levels[:-1], STRIDES[:-1], boxes, size, self.layout)

    # ---- detection
    def forward(self, images: Tensor) -> Detections:
        levels, size = self.levels(images), self._size(images)
        regions, there = self._proposed(levels, images, size)
        logits, differences = self.boxes(self._regions(levels, regions, BOX_SIZE))
        count = regions.shape[1]
        found = [self._detected(softmax(logits[k * count : (k + 1) * count]), differences[k * count : (k + 1) * count],
                                regions[k], there[k], size) for k in range(int(images.shape[0]))]
        boxes, scores, labels = (stack(parts) for parts in zip(*found, strict=True))
        masks = sigmoid(of_class(self.masks(self._regions(levels, boxes, MASK_SIZE)), reshape(labels, (-1,)),
                                 channel_axis(self.layout)))
        return Detections(boxes, scores, labels, reshape(masks, (*labels.shape, *masks.shape[1:])))

    def _proposed(self, levels: list[Tensor], images: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        found, anchors = self.proposals(levels), self.anchors(images)
        each = [proposed(found, anchors, size, self.proposal_settings, k) for k in range(int(images.shape[0]))]
        return stack([boxes for boxes, _ in each]), stack([there for _, there in each])

    def _detected(self, probabilities: Tensor, differences: Tensor, regions: Tensor, there: Tensor,
                  size: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes, scores and classes in one image."""
        objects, candidates, least, overlap = self.detection_settings
        likely = logical_and(greater(probabilities, least), there[:, None])
        scores = reshape(where(likely, probabilities, 0.0)[:, 1:], (-1,))
        best, places = top_k(scores, min(candidates, int(scores.shape[0])))
        boxes = reshape(clipped(decoded(differences, regions[:, None], OF_REGIONS), *size)[:, 1:], (-1, 4))
        boxes, labels = take(boxes, places, axis=0), places % (self.classes - 1) + 1
        kept = batched_nms(boxes, best, labels, overlap, padded=True)[:objects]
        index = maximum(kept, 0)
        found = where(kept >= 0, take(best, index, axis=0), 0.0)
        some = greater(found, 0)
        return (where(some[:, None], take(boxes, index, axis=0), 0.0), found,
                where(some, take(labels, index, axis=0), 0))

    # ---- training
    def propose(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Regions (batch, n, 4) to make targets of, constant to differentiation, and which there are (batch, n)."""
        regions, there = self._proposed(self.levels(images), images, self._size(images))
        return stop_gradient(regions), there

    def losses(self, images: Tensor, targets: Targets) -> Losses:
        """The losses of what is found in images."""
        levels = self.levels(images)
        found, anchors = self.proposals(levels), concat(self.anchors(images))
        objectness, anchor_boxes = proposal_losses(concat(found.logits, axis=1), concat(found.differences, axis=1),
                                                   anchors, targets)
        logits, differences = self.boxes(self._regions(levels, targets.regions, BOX_SIZE))
        classes, boxes = region_losses(logits, differences, targets)
        masked = targets.regions[:, : targets.masks.shape[1]]
        masks = mask_loss(self.masks(self._regions(levels, masked, MASK_SIZE)), targets, channel_axis(self.layout))
        return Losses(objectness, anchor_boxes, classes, boxes, masks)


def mask_rcnn(classes: int = 91, channels: int = 3, *, width: int = 64, features: int = 256, hidden: int = 1024,
              proposals: ProposalSettings = PROPOSALS, detections: DetectionSettings = DETECTIONS,
              layout: str = "NHWC") -> MaskRCNN:
    """Mask R-CNN on ResNet-50 with a feature pyramid; its batch normalisation is constant."""
    return MaskRCNN(resnet50(1, channels, width=width, layout=layout), classes, features=features, hidden=hidden,
                    proposals=proposals, detections=detections, layout=layout)

"""The losses of Mask R-CNN, in shapes that do not depend on data."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.functions.casts import astype
from nnc_core.functions.classification import binary_cross_entropy_with_logits, cross_entropy
from nnc_core.functions.elementwise import equal, greater, greater_equal, maximum, where
from nnc_core.functions.indexing import take_along_axis
from nnc_core.functions.loss import smooth_l1_loss
from nnc_core.functions.movement import reshape
from nnc_core.functions.reduction import mean
from nnc_core.functions.reduction import sum as total
from nnc_core.nn.zoo.detection.boxes import OF_ANCHORS, OF_REGIONS, Weights, chosen, encoded
from nnc_core.values.tensor import Tensor

BETA = 1 / 9
"""Below which differences of boxes count by their square."""
IGNORED = -1


class Targets(NamedTuple):
    """The objects to be found in a batch of images; labels are int64, boxes and masks floats.

    anchor_labels (batch, anchors): 1 for an object, 0 for none, -1 for anchors that do not count; anchor_boxes
    (batch, anchors, 4): the object's.  regions (batch, n, 4) are looked at by the heads; labels (batch, n): their
    classes, 0 for none, -1 for those that do not count; boxes (batch, n, 4): their objects'.  masks (batch, m, 2 size,
    2 size) in 0-1 for the first m regions, within these; those of labels below 1 do not count.
    """

    anchor_labels: Tensor
    anchor_boxes: Tensor
    regions: Tensor
    labels: Tensor
    boxes: Tensor
    masks: Tensor


class Losses(NamedTuple):
    """Scalars, to be added."""

    objectness: Tensor
    anchor_boxes: Tensor
    classes: Tensor
    boxes: Tensor
    masks: Tensor

    @property
    def sum(self) -> Tensor:
        """All of them."""
        added: Tensor = self.objectness + self.anchor_boxes + self.classes + self.boxes + self.masks
        return added


def _share(losses: Tensor, counts: Tensor, among: Tensor) -> Tensor:
    """The sum of those losses that count, divided by how many others there are; 0 where there is none."""
    summed = total(where(counts, losses, 0.0))
    found: Tensor = summed / maximum(total(astype(among, losses.dtype)), 1.0)
    return found


def _box_loss(differences: Tensor, boxes: Tensor, references: Tensor, wanted: Tensor, among: Tensor,
              weights: Weights) -> Tensor:
    aims = encoded(chosen(wanted, boxes), chosen(wanted, references), weights)
    rows = total(smooth_l1_loss(differences, aims, beta=BETA, reduction="none"), axis=-1)
    return _share(rows, wanted, among)


def proposal_losses(logits: Tensor, differences: Tensor, anchors: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """The losses of the logits (batch, anchors) and the differences (batch, anchors, 4)."""
    labels = targets.anchor_labels
    counted, wanted = greater_equal(labels, 0), equal(labels, 1)
    rows = binary_cross_entropy_with_logits(logits, astype(wanted, logits.dtype), reduction="none")
    return (_share(rows, counted, counted),
            _box_loss(differences, targets.anchor_boxes, anchors, wanted, counted, OF_ANCHORS))


def region_losses(logits: Tensor, differences: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """The losses of the logits (batch * n, classes) and the differences (batch * n, classes, 4)."""
    labels = reshape(targets.labels, (-1,))
    boxes, regions = reshape(targets.boxes, (-1, 4)), reshape(targets.regions, (-1, 4))
    own = take_along_axis(differences, maximum(labels, 0)[:, None, None], axis=1)[:, 0]
    counted, wanted = greater_equal(labels, 0), greater(labels, 0)
    rows = cross_entropy(logits, labels, ignore_index=IGNORED, reduction="none")
    return (_share(rows, counted, counted),
            _box_loss(own, boxes, regions, wanted, counted, OF_REGIONS))


def of_class(masks: Tensor, labels: Tensor, axis: int) -> Tensor:
    """The masks (n, side, side) of each one's class (n,), which are along an axis."""
    index = reshape(maximum(labels, 0), (-1, 1, 1, 1))
    own: Tensor = take_along_axis(masks, index, axis=axis).squeeze(axis)
    return own


def mask_loss(logits: Tensor, targets: Targets, axis: int) -> Tensor:
    """The loss of logits (batch * m, side, side, classes), the classes along an axis."""
    masks = targets.masks
    labels = reshape(targets.labels[:, : masks.shape[1]], (-1,))
    wanted = reshape(masks, (-1, *masks.shape[2:]))
    pixels = binary_cross_entropy_with_logits(of_class(logits, labels, axis), wanted, reduction="none")
    objects = greater(labels, 0)
    return _share(mean(pixels, axis=(1, 2)), objects, objects)

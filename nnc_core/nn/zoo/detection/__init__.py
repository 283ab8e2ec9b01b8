"""Mask R-CNN: detection of objects, and what it is trained by."""

from nnc_core.nn.zoo.detection.losses import Losses, Targets
from nnc_core.nn.zoo.detection.model import Detections, DetectionSettings, MaskRCNN, mask_rcnn
from nnc_core.nn.zoo.detection.proposals import ProposalSettings

__all__ = ["DetectionSettings", "Detections", "Losses", "MaskRCNN", "ProposalSettings", "Targets", "mask_rcnn"]

"""Grids, regions and boxes."""

from __future__ import annotations

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.functions.regions import batched_nms
from nnc_core.io.onnx.names import OWN_DOMAIN
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.operators.windows import layout_of
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor

METHODS = {"linear": "linear", "bilinear": "linear", "nearest": "nearest", "cubic": "cubic", "bicubic": "cubic"}


@operator("GridSample", since=16)
def grid_sample(x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear",
                padding_mode: str = "zeros") -> Tensor:
    return nnc.grid_sample(x, grid, method=METHODS[mode], padding_mode=padding_mode, align_corners=bool(align_corners),
                           layout=layout_of(x.ndim - 2))


@operator("AffineGrid", since=20)
def affine_grid(theta: Tensor, size: Host, *, align_corners: int = 0) -> Tensor:
    return nnc.affine_grid(theta, tuple(size[2:].tolist()), align_corners=bool(align_corners))


@operator("RoiAlign", since=16)
def roi_align(x: Tensor, rois: Tensor, images: Tensor, *, coordinate_transformation_mode: str = "half_pixel",
              mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0) -> Tensor:
    aligned = coordinate_transformation_mode == "half_pixel"
    return nnc.roi_align(x, rois, (output_height, output_width), images=images, scale=spatial_scale,
                         sampling_ratio=sampling_ratio, aligned=aligned, mode=mode, layout="NCHW")


@operator("RoiAlign", since=10)
def roi_align_first(x: Tensor, rois: Tensor, images: Tensor, *, mode: str = "avg", output_height: int = 1,
                    output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0) -> Tensor:
    return roi_align(x, rois, images, coordinate_transformation_mode="output_half_pixel", mode=mode,
                     output_height=output_height, output_width=output_width, sampling_ratio=sampling_ratio,
                     spatial_scale=spatial_scale)


@operator("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: tuple[int, ...], spatial_scale: float = 1.0) -> Tensor:
    return nnc.roi_pool(x, rois[:, 1:], pooled_shape, images=nnc.astype(rois[:, 0], np.int64), scale=spatial_scale,
                        layout="NCHW")


@operator("nms_order", domain=OWN_DOMAIN)
def nms_order(boxes: Tensor, scores: Tensor, groups: Tensor, *, threshold: float) -> Tensor:
    return batched_nms(boxes, scores, groups, threshold, padded=True)


@operator("NonMaxSuppression", since=10)
def non_max_suppression(boxes: Tensor, scores: Tensor, most: Host | None = None, overlap: Host | None = None,
                        score: Host | None = None, *, center_point_box: int = 0) -> Tensor:
    """Nothing stays where no number of boxes is given."""
    return nnc.non_max_suppression(boxes, scores, max_output=0 if most is None else int(most.reshape(())),
                                   iou_threshold=0.0 if overlap is None else float(overlap.reshape(())),
                                   score_threshold=None if score is None else float(score.reshape(())),
                                   centers=bool(center_point_box))

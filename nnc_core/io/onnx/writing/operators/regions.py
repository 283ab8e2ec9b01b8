"""Regions of images, and boxes of which the best stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.dtype import accumulator, boolean, float32, float64, int32, int64
from nnc_core.io.onnx.writing.held import inverse
from nnc_core.io.onnx.writing.operators.ordering import top
from nnc_core.io.onnx.writing.operators.windows import channels_first
from nnc_core.io.onnx.writing.pointwise import held
from nnc_core.io.onnx.writing.table import Written, says, writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


@writes("roi_align", fits=lambda node: node.attributes[4] and node.dtype != float64)
def _roi_align(w: NodeWriter, node: Node) -> Written:
    """ONNX counts the numbers of images from 0 only."""
    x, boxes, images = node.inputs
    size, scale, ratio, aligned, _, layout = node.attributes
    number = w.cast(w.read(images), images.dtype, int64)
    count = w.scalar(x.shape[0], int64)
    number = w.b.op("Where", w.b.op("Less", number, w.b.constant(0, int64)), w.b.op("Add", number, count), number)
    where = w.cast(w.read(boxes), boxes.dtype, x.dtype)
    name = w.b.op("RoiAlign", w.arranged(x, channels_first(layout)), where, number,
                  output_height=size[0], output_width=size[1], spatial_scale=float(scale), sampling_ratio=ratio,
                  coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel", mode="avg")
    return held(name, inverse(channels_first(layout)))


@says("region_product")
def _region_product(F: Any, x: Any, rows: Any, columns: Any, images: Any, layout: str) -> Any:
    """Two matrix products for each region: along its columns, then along its rows."""
    last = layout == "NHWC"
    taken = F.cast(F.take(x, images, axis=0), dtype=accumulator(x.dtype))
    image = taken if last else F.permute(taken, axes=(0, 2, 3, 1))
    k, height, width, channels = image.shape
    across = F.matmul(F.reshape(columns, shape=(k, 1, columns.shape[1], width)), image)
    flat = F.reshape(across, shape=(k, height, columns.shape[1] * channels))
    found = F.reshape(F.matmul(rows, flat), shape=(k, rows.shape[1], columns.shape[1], channels))
    return F.cast(found if last else F.permute(found, axes=(0, 3, 1, 2)), dtype=x.dtype)


@writes("nms_order", fits=lambda node: node.inputs[0].dtype != float64)
def _nms_order(w: NodeWriter, node: Node) -> str:
    """Each group is a class to ONNX, in which the boxes of others have scores below the threshold."""
    boxes, scores, groups = node.inputs
    b, count = w.b, boxes.shape[0]
    score = w.cast(w.read(scores), scores.dtype, float32)
    group = w.cast(w.read(groups), groups.dtype, int64)
    zero, one = b.constant(0, int64), b.constant(1, int64)
    least = b.op("ReduceMin", group, b.integers([0]), keepdims=1)
    number = b.op("Sub", group, least)
    largest = b.op("ReduceMax", number, b.integers([0]), keepdims=0)
    classes = b.op("Unsqueeze", b.op("Range", zero, b.op("Add", largest, one), one), b.integers([1]))
    outside = b.constant(-np.inf, float32)
    own = b.op("Where", b.op("Equal", number, classes), score, outside)
    chosen = b.op("NonMaxSuppression", b.op("Unsqueeze", w.cast(w.read(boxes), boxes.dtype, float32), b.integers([0])),
                  b.op("Unsqueeze", own, b.integers([0])), w.shape([count]),
                  b.constant([node.attributes[0]], float32), b.constant([np.finfo(np.float32).min], float32))
    numbers = b.op("Gather", chosen, b.constant(2, int64), axis=1)
    stay = _marked(w, numbers, count)
    return _first_those_that_stay(w, score, stay, count)


def _marked(w: NodeWriter, numbers: str, count: Any) -> str:
    """int32: 1 for the numbers that are named, 0 for the others."""
    nothing = w.expanded(w.b.constant(0, int32), (count,))
    ones = w.b.op("Expand", w.b.constant(1, int32), w.b.op("Shape", numbers))
    return w.b.op("ScatterElements", nothing, numbers, ones, axis=0)


def _first_those_that_stay(w: NodeWriter, score: str, stay: str, count: Any) -> str:
    """Their numbers by falling scores, then -1."""
    b, rows = w.b, w.shape([count])
    order = top(w, score, rows, 0, True)[1]
    marks = b.op("Gather", stay, order, axis=0)
    kept, first = top(w, marks, rows, 0, True)
    return b.op("Where", w.cast(kept, int32, boolean), b.op("Gather", order, first, axis=0), b.constant(-1, int64))

"""Regions of images, and boxes of which the best stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.dtype import accumulator, boolean, float32, float64, int32, int64
from nnc_core.io.onnx.writing.dtypes import ELEMENT_TYPES
from nnc_core.io.onnx.writing.emitter import NodeEmitter
from nnc_core.io.onnx.writing.held import inverse
from nnc_core.io.onnx.writing.operators.windows import channels_first
from nnc_core.io.onnx.writing.own import own, own_name
from nnc_core.io.onnx.writing.pointwise import held
from nnc_core.io.onnx.writing.records import CallAttribute
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
    return w.b.op(own_name("nms_order"), *[w.read(x) for x in node.inputs], threshold=float(node.attributes[0]))


@own("nms_order", ("boxes", "scores", "groups"), ("threshold",))
def _order_of_what_stays(b: NodeEmitter, boxes: str, scores: str, groups: str) -> str:
    """Each group is a class to ONNX, in which the boxes of others have scores below the threshold."""
    zero, one, count = b.constant(0, int64), b.constant(1, int64), b.op("Shape", boxes, start=0, end=1)
    score = b.op("Cast", scores, to=ELEMENT_TYPES[float32])
    group = b.op("Cast", groups, to=ELEMENT_TYPES[int64])
    number = b.op("Sub", group, b.op("ReduceMin", group, b.integers([0]), keepdims=1))
    largest = b.op("ReduceMax", number, b.integers([0]), keepdims=0)
    classes = b.op("Unsqueeze", b.op("Range", zero, b.op("Add", largest, one), one), b.integers([1]))
    own_scores = b.op("Where", b.op("Equal", number, classes), score, b.constant(-np.inf, float32))
    operands = (b.op("Cast", boxes, to=ELEMENT_TYPES[float32]), own_scores,
                b.op("Constant", value_float=CallAttribute("threshold")))
    box, scored, overlap = (b.op("Unsqueeze", x, b.integers([0])) for x in operands)
    chosen = b.op("NonMaxSuppression", box, scored, count, overlap, b.constant([np.finfo(np.float32).min], float32))
    return _first_those_that_stay(b, score, b.op("Gather", chosen, b.constant(2, int64), axis=1), count)


def _first_those_that_stay(b: NodeEmitter, score: str, numbers: str, count: str) -> str:
    """Those of these numbers by falling scores, then -1."""
    ones = b.op("Expand", b.constant(1, int32), b.op("Shape", numbers))
    stay = b.op("ScatterElements", b.op("Expand", b.constant(0, int32), count), numbers, ones, axis=0)
    order = b.ops("TopK", score, count, count=2, axis=0, largest=1, sorted=1)[1]
    kept, first = b.ops("TopK", b.op("Gather", stay, order, axis=0), count, count=2, axis=0, largest=1, sorted=1)
    return b.op("Where", b.op("Cast", kept, to=ELEMENT_TYPES[boolean]), b.op("Gather", order, first, axis=0),
                b.constant(-1, int64))

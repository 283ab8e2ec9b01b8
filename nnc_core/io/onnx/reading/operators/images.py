"""Compressed images, which Pillow decodes."""

from __future__ import annotations

import io

import numpy as np

from nnc_core.base.errors import AttributeValueError, FileFormatError
from nnc_core.base.missing import require
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import operator

MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@operator("ImageDecoder", since=20)
def image_decoder(data: Host, *, pixel_format: str = "RGB") -> Host:
    """uint8[height, width, channels] of the bytes of an image file."""
    if pixel_format not in MODES:
        raise AttributeValueError(f"pixel_format {pixel_format!r} is none of {', '.join(MODES)}")
    pillow = require("PIL.Image", purpose="decoding images", extra="plots")
    try:
        image = np.asarray(pillow.open(io.BytesIO(data.tobytes())).convert(MODES[pixel_format]))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"the image cannot be decoded: {error}") from error
    if pixel_format == "Grayscale":
        return image[..., None]
    return image[..., ::-1] if pixel_format == "BGR" else image

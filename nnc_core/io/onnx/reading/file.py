"""Model files: read with suspicion, large tensors mapped where they lie outside of the file."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from nnc_core.base.errors import FileFormatError
from nnc_core.base.missing import MissingFileError, NotAFileError

LIMIT = 2 << 30
"""Bytes of a message above which Protocol Buffers do not go."""


def read_model(source: str | os.PathLike[str] | bytes) -> tuple[onnx.ModelProto, str, str]:
    """The message of a model, a name for errors, and the folder of its external data."""
    if isinstance(source, bytes):
        return parsed(source, "the model"), "the model", ""
    path = Path(source)
    if path.is_dir():
        raise NotAFileError(f"{str(path)!r} is a directory, not an ONNX model")
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no file {str(path)!r}") from error
    return parsed(data, str(path)), path.name, str(path.parent)


def parsed(data: bytes, name: str) -> onnx.ModelProto:
    """The message of a model's bytes."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError) as error:
        raise FileFormatError(f"{name} is no ONNX model, or is cut off: {error}") from error
    if not model.HasField("graph") or not model.opset_import:
        raise FileFormatError(f"{name} is no ONNX model: it has no graph or imports no operators")
    return model

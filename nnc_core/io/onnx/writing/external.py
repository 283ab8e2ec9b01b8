"""Arrays in a file beside the model."""

from __future__ import annotations

from typing import Any, BinaryIO

from nnc_core.io.onnx.writing.proto import inline

_ALIGNED = 4096
"""Arrays begin at multiples of so many bytes, so that they can be mapped."""
_SMALL = 1024
"""Arrays of fewer bytes are in the model itself: its readers want shapes and axes there."""


class ExternalData:
    """Writes arrays into a file and says in their tensors where they are."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name, self.end = file, name, 0

    def put(self, proto: Any, data: bytes) -> None:
        """Store the elements of one array."""
        if len(data) < _SMALL:
            inline(proto, data)
            return
        start = -(-self.end // _ALIGNED) * _ALIGNED
        self.file.write(bytes(start - self.end))
        self.file.write(data)
        self.end = start + len(data)
        proto.data_location = proto.EXTERNAL
        for key, value in (("location", self.name), ("offset", start), ("length", len(data))):
            proto.external_data.add(key=key, value=str(value))

"""The IDX format of the MNIST files (http://yann.lecun.com/exdb/mnist/), plain or compressed by gzip.

Two zero bytes, one for the type, one for the number of dimensions, each dimension as a big-endian uint32,
then the elements in C order, big-endian.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnc_core.base.errors import FileFormatError
from nnc_core.base.missing import MissingFileError

_ELEMENT_TYPES: Mapping[int, np.dtype[Any]] = {
    0x08: np.dtype("u1"), 0x09: np.dtype("i1"), 0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"), 0x0D: np.dtype(">f4"), 0x0E: np.dtype(">f8"),
}
_GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an IDX file into a writable array of native byte order.

    Raises MissingFileError when there is no such file, FileFormatError when it is damaged or something else.
    """
    content = _uncompressed(path)
    if len(content) < 4 or content[:2] != b"\0\0":
        start = content[:4].hex(" ") or "nothing"
        raise _damaged(path, f"it begins with {start}, expected 00 00 and bytes for type and dimensions")
    dtype = _ELEMENT_TYPES.get(content[2])
    if dtype is None:
        raise _damaged(path, f"unknown element type 0x{content[2]:02x}")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise _damaged(path, f"its header ends after {len(content)} of {header} bytes")
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    expected = header + math.prod(shape) * dtype.itemsize
    if len(content) != expected:
        raise _damaged(path, f"it has {len(content)} bytes, {dtype.name} of shape {shape} needs {expected}")
    return np.ndarray(shape, dtype, content, header).astype(dtype.newbyteorder("="))


def _uncompressed(path: str | os.PathLike[str]) -> bytes:
    try:
        content = Path(path).read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no IDX file {os.fspath(path)!r}", hint="check the path") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(path, f"it cannot be decompressed ({error})") from error


def _damaged(path: str | os.PathLike[str], reason: str) -> FileFormatError:
    return FileFormatError(f"{os.fspath(path)!r} is not a whole IDX file: {reason}",
                           hint="delete the file and download it again")

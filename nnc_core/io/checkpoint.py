"""Named arrays on disk in the safetensors format, written atomically and checked when read.

The metadata of the file carries a SHA-256 digest over names, dtypes, shapes, bytes and the user's metadata.
Files by other programs have none and are read without this check; the format's own checks always hold.
Dtypes of 2 and 4 bits, which the format does not have, are packed into bytes; the metadata says which they are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.atomic import open_atomically
from nnc_core.base.dtype import (
    ALL_DTYPES,
    bfloat16,
    bits_of,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
)
from nnc_core.base.errors import DataError, DTypeError, FileFormatError
from nnc_core.base.missing import MissingFileError, require
from nnc_core.base.packed import packed_elements, packed_nbytes, unpacked_elements

Array = np.ndarray[Any, np.dtype[Any]]

_FORMAT_KEY, _DIGEST_KEY, _PACKED_KEY = "nnc.format", "nnc.sha256", "nnc.packed"
_FORMAT = "checkpoint-1"
_DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "I8": np.dtype("i1"), "I16": np.dtype("<i2"), "I32": np.dtype("<i4"), "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"), "U16": np.dtype("<u2"), "U32": np.dtype("<u4"), "U64": np.dtype("<u8"),
    "F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8"),
    "BF16": bfloat16, "F8_E4M3": float8_e4m3fn, "F8_E4M3FNUZ": float8_e4m3fnuz, "F8_E5M2": float8_e5m2,
    "F8_E5M2FNUZ": float8_e5m2fnuz, "F8_E8M0": float8_e8m0fnu, "F4": float4_e2m1fn,
}  # fmt: skip
_PACKED = {d.name: d for d in ALL_DTYPES.values() if bits_of(d) < 8}
"""Dtypes of which a byte holds several."""
_NAMES = frozenset(dtype.name for dtype in _DTYPES.values()) | frozenset(_PACKED)


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array],
                metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays and text metadata to a safetensors file; an old one stays until the new is whole.

    Arrays of any shape and memory order; bool, (u)int2-64, float4 to float64 and bfloat16. Raises DTypeError for
    other dtypes and non-arrays, DataError for names that the format cannot hold, MissingFileError for a
    missing directory and MissingPackageError without safetensors.
    """
    library = require("safetensors.numpy", purpose="writing a checkpoint", extra="io")
    storable = {_text(name, "array name"): _storable(name, array) for name, array in arrays.items()}
    if "__metadata__" in storable:
        raise DataError("an array cannot be named '__metadata__' in a safetensors file", hint="rename it")
    texts = _storable_metadata(metadata or {})
    marks = {_FORMAT_KEY: _FORMAT, _DIGEST_KEY: _digest(storable, texts)}
    few = {name: x for name, x in storable.items() if x.dtype.name in _PACKED}
    if few:
        marks[_PACKED_KEY] = json.dumps({name: [x.dtype.name, *x.shape] for name, x in few.items()})
    content: bytes = library.save(storable | {name: packed_elements(x) for name, x in few.items()}, {**texts, **marks})
    with open_atomically(path) as file:
        file.write(content)


def load_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Read a safetensors file: (arrays by name, metadata). The arrays are contiguous and writable.

    Raises MissingFileError for a missing file and FileFormatError for one that is damaged, truncated, of
    another format or with a dtype that nnc does not have.
    """
    found = read_file(path)
    return found.arrays, found.metadata


class Stored(NamedTuple):
    """The content of a safetensors file, and whether nnc wrote it."""

    arrays: dict[str, Array]
    metadata: dict[str, str]
    is_ours: bool


def read_file(path: str | os.PathLike[str]) -> Stored:
    """`load_arrays`, with whether nnc wrote the file."""
    library = require("safetensors", purpose="reading a checkpoint", extra="io")
    content = _read(path)
    try:
        entries = library.deserialize(content)
    except library.SafetensorError as error:
        raise damaged(path, str(error)) from error
    arrays = {name: _array(path, name, entry) for name, entry in sorted(entries, key=itemgetter(0))}
    metadata = _metadata(content)
    arrays = with_packed(path, arrays, metadata)
    return Stored(arrays, metadata, _verified(path, arrays, metadata))


def with_packed(path: str | os.PathLike[str], arrays: dict[str, Array], metadata: dict[str, str]) -> dict[str, Array]:
    """The arrays, those that are several elements to a byte unpacked; the mark is taken out of the metadata."""
    mark = metadata.pop(_PACKED_KEY, None)
    if mark is None:
        return arrays
    try:
        return arrays | {name: _unpacked(arrays[name], *kind) for name, kind in json.loads(mark).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(path, f"what it says of packed arrays is not understood: {error!r}") from error


def _unpacked(content: Array, name: str, *shape: int) -> Array:
    dtype = _PACKED[name]
    if content.dtype != np.uint8 or content.shape != (packed_nbytes(shape, dtype),) or min(shape, default=0) < 0:
        raise ValueError(f"{name}{list(shape)} in {content.dtype}{list(content.shape)}")
    return np.asarray(unpacked_elements(content, dtype, shape))


def _text(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise DTypeError(f"{what} must be a str, not {type(text).__name__}: {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{what} {text!r} holds a surrogate, which UTF-8 cannot store"
        raise DataError(message, hint="use valid text") from error
    return text


def _storable(name: str, array: object) -> Array:
    if not isinstance(array, np.ndarray | np.generic):
        raise DTypeError(f"array {name!r} is no NumPy array but {type(array).__name__}", hint="numpy.asarray")
    if array.dtype.name not in _NAMES:
        raise DTypeError(f"array {name!r} has dtype {array.dtype}, which a checkpoint cannot hold",
                         hint=f"cast it to one of {', '.join(sorted(_NAMES))}")
    little = array.dtype if array.dtype.itemsize == 1 or array.dtype.kind == "V" else array.dtype.newbyteorder("<")
    return np.asarray(array, dtype=little, order="C")


def _storable_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    texts = {_text(key, "metadata key"): _text(value, f"metadata {key!r}") for key, value in metadata.items()}
    for reserved in (_FORMAT_KEY, _DIGEST_KEY, _PACKED_KEY):
        if reserved in texts:
            raise DataError(f"the metadata key {reserved!r} is reserved", hint="use another key")
    return texts


def _read(path: str | os.PathLike[str]) -> bytes:
    with opening(path):
        return Path(path).read_bytes()


@contextmanager
def opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of a file that is not there, or is none, in nnc's words."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no checkpoint {os.fspath(path)!r}",
                               hint="check the path, or save one with save_arrays") from error
    except IsADirectoryError as error:
        raise FileFormatError(f"{os.fspath(path)!r} is a directory, not a checkpoint",
                              hint="give the name of a .safetensors file") from error


def _array(path: str | os.PathLike[str], name: str, entry: Mapping[str, Any]) -> Array:
    dtype = dtype_of(path, name, entry["dtype"])
    if bits_of(dtype) < 8:
        return np.asarray(unpacked_elements(np.frombuffer(entry["data"], np.uint8), dtype, tuple(entry["shape"])))
    native = dtype if dtype.itemsize == 1 else dtype.newbyteorder("=")
    return np.ndarray(entry["shape"], dtype, bytes(entry["data"])).astype(native)


def dtype_of(path: str | os.PathLike[str], name: str, code: str) -> np.dtype[Any]:
    """The dtype that the format calls so, little-endian."""
    dtype = _DTYPES.get(code)
    if dtype is None:
        raise FileFormatError(f"{os.fspath(path)!r}: array {name!r} has the unknown dtype {code}",
                              hint=f"store it as one of {', '.join(sorted(_DTYPES))}")
    return dtype


def _metadata(content: bytes) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    return metadata


def _verified(path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: dict[str, str]) -> bool:
    """Take the marks out of the metadata and hold the digest against the content: whether nnc wrote the file."""
    is_ours, digest = take_marks(path, metadata)
    if is_ours and digest != _digest(arrays, metadata):
        raise damaged(path, "the SHA-256 checksum does not match the content")
    return is_ours


def take_marks(path: str | os.PathLike[str], metadata: dict[str, str]) -> tuple[bool, str | None]:
    """Take nnc's marks out of the metadata: (whether nnc wrote the file, its digest).

    Either mark alone shows that nnc wrote the file, so damage to one of them cannot switch the check off.
    """
    kind, digest = metadata.pop(_FORMAT_KEY, None), metadata.pop(_DIGEST_KEY, None)
    if kind is None and digest is None:
        return False, None
    if kind != _FORMAT:
        raise damaged(path, f"{_FORMAT_KEY} is {kind!r}, expected {_FORMAT!r}")
    return True, digest


def _digest(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.name, array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def damaged(path: str | os.PathLike[str], reason: str) -> FileFormatError:
    """The error for a file that is not what it should be."""
    return FileFormatError(f"{os.fspath(path)!r} is not a whole checkpoint in safetensors format: {reason}",
                           hint="restore the file from a copy or save it again")

"""Named arrays on disk in the safetensors format, written atomically and checked when read.

The metadata of the file carries a SHA-256 digest over names, dtypes, shapes, bytes and the user's metadata.
Files by other programs have none and are read without this check; the format's own checks always hold.
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

import ml_dtypes
import numpy as np

from nnc_core.base.atomic import open_atomically
from nnc_core.base.errors import DataError, DTypeError, FileFormatError
from nnc_core.base.missing import MissingFileError, require

Array = np.ndarray[Any, np.dtype[Any]]

_FORMAT_KEY, _DIGEST_KEY = "nnc.format", "nnc.sha256"
_FORMAT = "checkpoint-1"
_DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "I8": np.dtype("i1"), "I16": np.dtype("<i2"), "I32": np.dtype("<i4"), "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"), "U16": np.dtype("<u2"), "U32": np.dtype("<u4"), "U64": np.dtype("<u8"),
    "F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
_NAMES = frozenset(dtype.name for dtype in _DTYPES.values())


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array],
                metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays and text metadata to a safetensors file; an old one stays until the new is whole.

    Arrays of any shape and memory order; bool, (u)int8-64, float16/32/64 and bfloat16. Raises DTypeError for
    other dtypes and non-arrays, DataError for names that the format cannot hold, MissingFileError for a
    missing directory and MissingPackageError without safetensors.
    """
    library = require("safetensors.numpy", purpose="writing a checkpoint", extra="io")
    storable = {_text(name, "array name"): _storable(name, array) for name, array in arrays.items()}
    if "__metadata__" in storable:
        raise DataError("an array cannot be named '__metadata__' in a safetensors file", hint="rename it")
    texts = _storable_metadata(metadata or {})
    marks = {_FORMAT_KEY: _FORMAT, _DIGEST_KEY: _digest(storable, texts)}
    content: bytes = library.save(storable, {**texts, **marks})
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
    return Stored(arrays, metadata, _verified(path, arrays, metadata))


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
    little = array.dtype if array.dtype.kind == "V" else array.dtype.newbyteorder("<")
    return np.asarray(array, dtype=little, order="C")


def _storable_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    texts = {_text(key, "metadata key"): _text(value, f"metadata {key!r}") for key, value in metadata.items()}
    for reserved in (_FORMAT_KEY, _DIGEST_KEY):
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
    return np.ndarray(entry["shape"], dtype, bytes(entry["data"])).astype(dtype.newbyteorder("="))


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

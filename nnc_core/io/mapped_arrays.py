"""Named arrays that stay in their safetensors file, mapped into memory and read-only.

The header is looked at as strictly as the format demands; the elements are read by the operating system when they are
used, so that the checksum of `save_arrays` is not looked at.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from nnc_core.base.dtype import bits_of
from nnc_core.base.packed import packed_nbytes, unpacked_elements
from nnc_core.io.checkpoint import Array, Stored, damaged, dtype_of, opening, take_marks, with_packed

Path = str | os.PathLike[str]
_LONGEST_HEADER = 100_000_000
_PREFIX = 8
"""Bytes that say how long the header is."""


def map_arrays(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of a safetensors file where they lie, read-only: (arrays by name, metadata).

    Nothing but the header is read now.  The file may be deleted, or replaced by another of its name (as `save_arrays`
    does), and the arrays stay what they are; who overwrites it in place changes them, and who cuts it off while they
    are used ends the process.  Arrays may lie at addresses that their dtype is not aligned to; those of 2 and 4 bits
    are unpacked into memory of their own.

    Raises MissingFileError for a missing file and FileFormatError for one that is damaged, truncated, of another
    format or with a dtype that nnc does not have.
    """
    found = map_file(path)
    return found.arrays, found.metadata


def map_file(path: Path) -> Stored:
    """`map_arrays`, with whether nnc wrote the file."""
    content = _mapping(path)
    header = _header(path, content)
    metadata = _metadata(path, header)
    start = len(content) - _check_places(path, header, content)
    arrays = {name: _array(path, name, header[name], content, start) for name in sorted(header)}
    arrays = with_packed(path, arrays, metadata)
    is_ours, _ = take_marks(path, metadata)
    return Stored(arrays, metadata, is_ours)


def _mapping(path: Path) -> mmap.mmap:
    with opening(path), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _PREFIX:
            raise damaged(path, f"it has {size} bytes")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


# ---- the header
def _header(path: Path, content: mmap.mmap) -> dict[str, Any]:
    length = _header_length(content)
    if length > min(_LONGEST_HEADER, len(content) - _PREFIX):
        raise damaged(path, f"its header would have {length:,} bytes, the whole file has {len(content):,}")
    try:
        header = json.loads(content[_PREFIX : _PREFIX + length].decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"its header cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise damaged(path, "its header is no JSON object")
    return header


def _header_length(content: mmap.mmap) -> int:
    return int.from_bytes(content[:_PREFIX], "little")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _metadata(path: Path, header: dict[str, Any]) -> dict[str, str]:
    """Taken out of the header."""
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all([isinstance(text, str) for text in metadata.values()]):
        raise damaged(path, "its metadata is no object of texts")
    return metadata


# ---- the places of arrays
def _check_places(path: Path, header: Mapping[str, Any], content: mmap.mmap) -> int:
    """Check the places of arrays, which follow one another without gaps to the end of the file; count their bytes."""
    for name, entry in header.items():
        if not _is_entry(entry):
            raise damaged(path, f"what its header says of {name!r} is not understood")
    end = 0
    for first, behind, name in sorted([(*entry["data_offsets"], name) for name, entry in header.items()]):
        if first != end or behind < first:
            raise damaged(path, f"array {name!r} takes bytes {first} to {behind} of the data, expected from {end}")
        end = behind
    there = len(content) - _PREFIX - _header_length(content)
    if end != there:
        raise damaged(path, f"its arrays take {end:,} bytes, {there:,} are there")
    return end


def _is_entry(entry: Any) -> bool:
    return (isinstance(entry, dict) and isinstance(entry.get("dtype"), str) and _are_sizes(entry.get("shape"))
            and _are_sizes(entry.get("data_offsets")) and len(entry["data_offsets"]) == 2)


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all([type(n) is int and n >= 0 for n in numbers])


def _array(path: Path, name: str, entry: Mapping[str, Any], content: mmap.mmap, start: int) -> Array:
    dtype, shape, (first, behind) = dtype_of(path, name, entry["dtype"]), entry["shape"], entry["data_offsets"]
    if packed_nbytes(tuple(shape), dtype) != behind - first:
        raise damaged(path, f"array {name!r}, {dtype}{shape}, has {behind - first:,} bytes")
    try:
        if bits_of(dtype) < 8:
            content_of = np.frombuffer(content, np.uint8, behind - first, start + first)
            return np.asarray(unpacked_elements(content_of, dtype, tuple(shape)))
        return np.ndarray(shape, dtype, content, start + first)
    except (ValueError, OverflowError) as error:
        raise damaged(path, f"array {name!r} cannot have shape {shape}: {error}") from error

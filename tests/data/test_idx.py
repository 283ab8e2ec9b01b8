from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from nnc_core.base.errors import FileFormatError
from nnc_core.base.missing import MissingFileError
from nnc_core.data import read_idx

CODES = {"u1": 8, "i1": 9, ">i2": 11, ">i4": 12, ">f4": 13, ">f8": 14}


def idx_bytes(array: np.ndarray[Any, Any]) -> bytes:
    code = CODES[array.dtype.str.lstrip("|")]
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("idx") / "some-idx"


@given(array=st.sampled_from(sorted(CODES)).flatmap(
    lambda code: npst.arrays(code, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))),
    compressed=st.booleans())
def test_round_trip(scratch: Path, array: np.ndarray[Any, Any], compressed: bool) -> None:
    content = idx_bytes(array)
    scratch.write_bytes(gzip.compress(content) if compressed else content)
    loaded = read_idx(scratch)
    assert loaded.dtype == array.dtype.newbyteorder("=") and loaded.flags.writeable
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("compressed", [False, True])
def test_every_truncation_is_one_clear_error(scratch: Path, compressed: bool) -> None:
    content = idx_bytes(np.arange(12, dtype=np.uint8).reshape(3, 4))
    content = gzip.compress(content) if compressed else content
    for length in range(len(content)):
        scratch.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match="some-idx' is not a whole IDX file"):
            read_idx(scratch)


def test_flips_in_compressed_data_are_seen_or_harmless(scratch: Path) -> None:
    array = np.arange(200, dtype=np.uint8).reshape(10, 20)
    content = gzip.compress(idx_bytes(array))
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x40
        scratch.write_bytes(damaged)
        try:
            loaded = read_idx(scratch)
        except FileFormatError as error:
            assert "some-idx" in str(error)
        else:
            # The gzip header holds a time and flags that do not matter.
            np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("content, words", [
    (b"", "begins with nothing"),
    (b"\x89PNG", "begins with 89 50 4e 47"),
    (b"\0\0\x07\x01\0\0\0\0", "unknown element type 0x07"),
    (b"\0\0\x08\x03\0\0\0\x01", "header ends after 8 of 16 bytes"),
    (b"\0\0\x08\x03" + b"\xff" * 12, "16 bytes, uint8 of shape"),
    (b"\0\0\x08\x01\0\0\0\x01ab", "10 bytes, uint8 of shape \\(1,\\) needs 9"),
])
def test_damage_is_described(scratch: Path, content: bytes, words: str) -> None:
    scratch.write_bytes(content)
    with pytest.raises(FileFormatError, match=words):
        read_idx(scratch)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="absent"):
        read_idx(tmp_path / "absent")

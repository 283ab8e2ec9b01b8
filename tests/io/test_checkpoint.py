from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from nnc_core.base.dtype import ALL_DTYPES, STORAGE, bits_of
from nnc_core.base.errors import DataError, DTypeError, FileFormatError
from nnc_core.io import MissingFileError, MissingPackageError, load_arrays, save_arrays
from nnc_core.io.mapped_arrays import map_arrays

safetensors_numpy = pytest.importorskip("safetensors.numpy")

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i4", ">f8", "bfloat16",
          *[d.name for d in STORAGE]]


def dtype_of(name: str) -> np.dtype[Any]:
    return ALL_DTYPES.get(name) or np.dtype(name)


@st.composite
def any_array(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Any dtype, shape and bits (NaN payloads included), in any memory order."""
    dtype = dtype_of(draw(st.sampled_from(DTYPES)))
    shape = draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    size = int(np.prod(shape)) * dtype.itemsize
    data = bytearray(draw(st.binary(min_size=size, max_size=size)))
    if dtype.kind == "b" or bits_of(dtype) < 8:
        most = 1 if dtype.kind == "b" else 2 ** bits_of(dtype) - 1
        data = bytearray(byte & most for byte in data)
    array = np.ndarray(shape, dtype, data)
    order = draw(st.sampled_from(["C", "transposed", "reversed", "strided"]))
    if order == "transposed":
        return array.T
    if order == "reversed" and array.ndim:
        return array[::-1]
    return array[..., ::2] if order == "strided" and array.ndim else array


def bits(array: np.ndarray[Any, Any]) -> bytes:
    little = array.dtype if array.dtype.itemsize == 1 or array.dtype.kind == "V" else array.dtype.newbyteorder("<")
    return array.astype(little).tobytes()


def assert_same(loaded: dict[str, Any], saved: dict[str, Any]) -> None:
    assert loaded.keys() == saved.keys()
    for name, array in saved.items():
        assert loaded[name].dtype.name == array.dtype.name
        assert loaded[name].dtype.isnative
        assert loaded[name].shape == array.shape
        assert bits(loaded[name]) == bits(array)


@pytest.fixture
def example(tmp_path: Path) -> tuple[Path, dict[str, Any], dict[str, str]]:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    arrays = {"w": weights, "n": np.array(7), "b": np.ones(3, ml_dtypes.bfloat16)}
    metadata = {"epoch": "3"}
    save_arrays(tmp_path / "example.safetensors", arrays, metadata)
    return tmp_path / "example.safetensors", arrays, metadata


@given(arrays=st.dictionaries(st.text(max_size=8), any_array(), max_size=4),
       metadata=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3))
def test_round_trip(arrays: dict[str, Any], metadata: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "any.safetensors"
        save_arrays(path, arrays, metadata)
        loaded, loaded_metadata = load_arrays(path)
    assert_same(loaded, arrays)
    assert loaded_metadata == metadata


@pytest.mark.parametrize("name", DTYPES)
def test_zero_dimensional_and_empty_arrays_of_every_dtype(tmp_path: Path, name: str) -> None:
    arrays = {"scalar": np.ones((), dtype_of(name)), "empty": np.ones((0, 3), dtype_of(name))}
    save_arrays(tmp_path / "some.safetensors", arrays)
    assert_same(load_arrays(tmp_path / "some.safetensors")[0], arrays)


@pytest.mark.parametrize("dtype", [d for d in STORAGE if bits_of(d) < 8], ids=str)
def test_dtypes_of_few_bits_are_packed_in_files(tmp_path: Path, dtype: Any) -> None:
    path, several = tmp_path / "few.safetensors", 8 // bits_of(dtype)
    array = (np.arange(15, dtype=np.uint8) % 2 ** bits_of(dtype)).view(dtype).reshape(3, 5)
    save_arrays(path, {"q": array, "other": np.ones(2, np.float32)}, {"note": "mine"})
    stored = safetensors_numpy.load_file(path)["q"]
    assert stored.dtype == np.uint8 and stored.shape == (-(-15 // several),)
    assert stored[0] == sum(k << (k * bits_of(dtype)) for k in range(several)), "the first in the lowest bits"
    for load in (load_arrays, map_arrays):
        found, metadata = load(path)
        assert_same(found, {"q": array, "other": np.ones(2, np.float32)})
        assert metadata == {"note": "mine"}


@pytest.mark.parametrize("mark", ["[]", "nothing", '{"q": ["int4", 9]}', '{"x": ["int4", 4]}', '{"q": ["int8", 2]}',
                                  '{"q": ["int4", -4]}', '{"q": ["int4", "a"]}', '{"q": 4}'])
def test_a_wrong_mark_of_packed_arrays_is_damage(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "few.safetensors"
    path.write_bytes(safetensors_numpy.save({"q": np.zeros(2, np.uint8)}, {"nnc.packed": mark}))
    for load in (load_arrays, map_arrays):
        with pytest.raises(FileFormatError, match="packed arrays"):
            load(path)


def test_floats_of_4_bits_by_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "theirs.safetensors"
    header = b'{"a":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]}}'
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x21\x8f")
    for load in (load_arrays, map_arrays):
        assert load(path)[0]["a"].astype(np.float32).tolist() == [[0.5, 1.0], [-6.0, -0.0]]


def test_loaded_arrays_are_writable_and_independent_of_the_file(example: Any) -> None:
    path, arrays, _ = example
    loaded, _ = load_arrays(path)
    loaded["w"][...] = -1
    assert_same(load_arrays(path)[0], arrays)


def test_files_are_read_and_written_like_the_library_does(tmp_path: Path) -> None:
    arrays = {"w": np.arange(6.0).reshape(2, 3), "flag": np.array([True, False])}
    save_arrays(tmp_path / "ours.safetensors", arrays, {"note": "ours"})
    assert_same(safetensors_numpy.load_file(tmp_path / "ours.safetensors"), arrays)
    safetensors_numpy.save_file(arrays, tmp_path / "theirs.safetensors", {"note": "theirs"})
    loaded, metadata = load_arrays(tmp_path / "theirs.safetensors")
    assert_same(loaded, arrays)
    assert metadata == {"note": "theirs"}


def test_every_truncation_is_one_clear_error(example: Any) -> None:
    path, _, _ = example
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match=r"example\.safetensors.*\n  try: restore"):
            load_arrays(path)


def test_a_flip_of_any_byte_is_an_error_or_changes_nothing(example: Any) -> None:
    path, arrays, metadata = example
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    padding = len(content[:header]) - len(content[:header].rstrip())
    for place in range(len(content)):
        for mask in (0x01, 0x20, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= mask
            path.write_bytes(damaged)
            try:
                loaded, loaded_metadata = load_arrays(path)
            except FileFormatError as error:
                assert "example.safetensors" in str(error)
            else:
                assert header - padding <= place < header, f"flip of byte {place} by {mask:#x} was not seen"
                assert_same(loaded, arrays)
                assert loaded_metadata == metadata


@settings(deadline=None)
@given(content=st.binary(max_size=64))
def test_arbitrary_bytes_are_no_checkpoint(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "noise.safetensors"
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="noise"):
            load_arrays(path)


@pytest.mark.parametrize("key", ["nnc.format", "nnc.sha256"])
def test_the_check_cannot_be_lost_with_one_mark(example: Any, key: str) -> None:
    path, _, _ = example
    path.write_bytes(path.read_bytes().replace(key.encode(), b"x" + key[1:].encode()))
    with pytest.raises(FileFormatError, match=r"nnc\.format is None|checksum does not match"):
        load_arrays(path)


def test_swapped_arrays_are_seen(example: Any) -> None:
    path, _, _ = example
    path.write_bytes(path.read_bytes().replace(b'"w":{', b'"v":{'))
    with pytest.raises(FileFormatError, match="checksum"):
        load_arrays(path)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="absent") as missing:
        load_arrays(tmp_path / "absent.safetensors")
    assert isinstance(missing.value, FileNotFoundError)
    with pytest.raises(FileFormatError, match="is a directory"):
        load_arrays(tmp_path)


def test_foreign_dtype_is_named(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}).encode()
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(3))
    with pytest.raises(FileFormatError, match="'w' has the unknown dtype F6_E2M3"):
        load_arrays(path)


@pytest.mark.parametrize("arrays, metadata, error, words", [
    ({"w": np.ones(2, complex)}, {}, DTypeError, "'w' has dtype complex128"),
    ({"w": np.array([None])}, {}, DTypeError, "'w' has dtype object"),
    ({"w": [1.0, 2.0]}, {}, DTypeError, "'w' is no NumPy array but list"),
    ({3: np.ones(2)}, {}, DTypeError, "array name must be a str, not int"),
    ({"__metadata__": np.ones(2)}, {}, DataError, "cannot be named '__metadata__'"),
    ({"\ud800": np.ones(2)}, {}, DataError, "surrogate"),
    ({}, {"epoch": 3}, DTypeError, "metadata 'epoch' must be a str, not int"),
    ({}, {"nnc.sha256": "0"}, DataError, "reserved"),
])
def test_what_cannot_be_saved_leaves_the_old_file(
    example: Any, arrays: Any, metadata: Any, error: type[Exception], words: str
) -> None:
    path, old, _ = example
    with pytest.raises(error, match=words):
        save_arrays(path, arrays, metadata)
    assert_same(load_arrays(path)[0], old)
    assert os.listdir(path.parent) == [path.name]


def test_without_safetensors_the_extra_is_named(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, _ = example
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(MissingPackageError, match=r"pip install nnc-core\[io\]") as reading:
        load_arrays(path)
    with pytest.raises(MissingPackageError, match=r"pip install nnc-core\[io\]"):
        save_arrays(path, {})
    assert isinstance(reading.value, ImportError)

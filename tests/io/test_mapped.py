"""Weights that stay in their file: what shares its memory, what is copied and why, and that nothing is written."""

from __future__ import annotations

import copy
import json
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import DTypeError, FileFormatError, ShapeError, StateError
from nnc_core.io import (
    MissingFileError,
    load_arrays,
    load_weights,
    map_arrays,
    map_weights,
    save_arrays,
    save_module,
    save_weights,
)
from nnc_core.stacks import stack_for
from tests.devices import devices

pytest.importorskip("safetensors.numpy")

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "bfloat16"]
EXAMPLE: dict[str, Any] = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(7), "b": np.ones(3, ml_dtypes.bfloat16),
    "h": np.array([[1.5, -2]], np.float16), "none": np.ones((0, 4), np.float32),
}


def shares(device: str) -> bool:
    return stack_for(device).device.adopt(np.ones(1)) is not None


@pytest.fixture
def sharing() -> Any:
    """A device that computes in the host's memory, as the default one."""
    found = [id for id in devices() if shares(id)]
    if not found:
        pytest.skip("no device here computes in the host's memory")
    with nnc.use_device(found[0]):
        yield found[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_arrays(tmp_path / "example.safetensors", EXAMPLE, {"epoch": "3"})
    return tmp_path / "example.safetensors"


def lies_in_a_file(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def memory_of(tensor: nnc.Tensor) -> Any:
    return np.asarray(tensor, copy=False)


def write(path: Path, header: Any, data: bytes) -> None:
    """A file with this header, by hand; what is not bytes already is padded, so that the data are aligned."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b"" if isinstance(header, bytes) else b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def entry(dtype: str, shape: list[Any], *offsets: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


# ---- arrays
def test_arrays_are_those_that_are_loaded_and_lie_in_the_file(path: Path) -> None:
    arrays, metadata = map_arrays(path)
    loaded, same_metadata = load_arrays(path)
    assert metadata == same_metadata == {"epoch": "3"} and list(arrays) == list(loaded)
    for name, array in arrays.items():
        assert array.dtype == loaded[name].dtype and array.shape == loaded[name].shape
        assert array.tobytes() == loaded[name].tobytes()
        assert lies_in_a_file(array) and not array.flags.writeable
        with pytest.raises(ValueError, match=r"WRITEABLE|read-only"):
            array.flags.writeable = True
            array[...] = 0


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(tmp_path: Path, device: str, name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    save_arrays(tmp_path / "f", {"a": array})
    if not _has(device, dtype):
        pytest.skip(f"{device} has no {dtype}")
    x = map_weights(tmp_path / "f")["a"]
    assert x.dtype == dtype and x.device.id == device
    np.testing.assert_array_equal(x.numpy(), array)
    assert (x == x).numpy().all()


def _has(device: str, dtype: Any) -> bool:
    try:
        nnc.asarray(np.ones(1, dtype), device=device)
    except nnc.Error:
        return False
    return True


# ---- tensors
def test_tensors_share_memory_where_the_device_computes_there(path: Path, device: str) -> None:
    weights = map_weights(path)
    assert list(weights) == sorted(EXAMPLE) and len(weights) == len(EXAMPLE) and "x" not in weights
    assert weights.metadata == {"epoch": "3"} and device in repr(weights) and "5 weights" in repr(weights)
    for name, array in EXAMPLE.items():
        x = weights[name]
        assert x.shape == array.shape and x.dtype == array.dtype and x.device.id == device
        np.testing.assert_array_equal(x.numpy(), array)
        assert weights[name]._value is x._value, "uploaded once"
        assert not x._value.borrowed
        if shares(device):
            assert weights.why_copied(name) is None and lies_in_a_file(memory_of(x))
        else:
            assert weights.why_copied(name) == f"{device} does not compute in the host's memory"
    np.testing.assert_array_equal((weights["w"] @ nnc.ones((3, 1))).numpy(), EXAMPLE["w"].sum(1, keepdims=True))
    with pytest.raises(KeyError):
        weights["x"]
    with pytest.raises(KeyError):
        weights.why_copied("x")


def test_the_device_can_be_named(path: Path) -> None:
    x = map_weights(path, device="strict:0")["w"]
    assert x.device.id == "strict:0"
    np.testing.assert_array_equal(x.numpy(), EXAMPLE["w"])


def test_nothing_is_uploaded_that_is_not_asked_for(path: Path) -> None:
    weights = map_weights(path, device="strict:0")
    assert weights._values == {}
    assert weights["w"].shape == (2, 3) and list(weights._values) == ["w"]


@pytest.mark.skipif(sys.platform != "linux", reason="files with holes")
def test_nothing_is_read_that_is_not_used(tmp_path: Path, sharing: str) -> None:
    """A file far beyond the machine's memory, most of it a hole."""
    n, path = 2**38, tmp_path / "large"
    write(path, {"w": entry("F32", [n // 4], 0, n)}, np.arange(4, dtype=np.float32).tobytes())
    os.truncate(path, path.stat().st_size - 16 + n)
    w = map_weights(path)["w"]
    path.unlink()
    assert w.shape == (n // 4,) and w[:4].tolist() == [0, 1, 2, 3] and (w[-2:] + 1).tolist() == [1, 1]


def test_views_and_bytes_of_tensors_stay_in_the_file(path: Path, sharing: str) -> None:
    weights = map_weights(path)
    assert lies_in_a_file(memory_of(weights["w"].reshape(3, 2)))
    assert np.shares_memory(np.from_dlpack(weights["w"]), memory_of(weights["w"]))


def test_nothing_is_ever_written_to_the_file(path: Path, device: str) -> None:
    before, weights = path.read_bytes(), map_weights(path)
    w = weights["w"]
    w += 1
    w[0] = 9
    np.testing.assert_array_equal(weights["w"].numpy(), EXAMPLE["w"])
    given = weights["w"]
    y = nnc.jit(lambda t: t.at[0].set(5) * 2, donate_argnums=0)(given)
    assert y[0].tolist() == [10, 10, 10]
    x = weights["w"]
    nnc.jit(lambda t: t + 1, donate_argnums=0)(x.reshape(3, 2))
    del weights
    alone = map_weights(path)["w"]
    assert nnc.jit(lambda t: t + 1, donate_argnums=0)(alone).tolist() == (EXAMPLE["w"] + 1).tolist()
    cell = nnc.Cell(map_weights(path)["w"])
    step = nnc.jit(lambda: cell.write(cell.read() + 1))
    step()
    step()
    np.testing.assert_array_equal(cell.read().numpy(), EXAMPLE["w"] + 2)
    np.testing.assert_array_equal(map_weights(path)["w"].numpy(), EXAMPLE["w"])
    assert path.read_bytes() == before


def test_copies_are_independent(path: Path, device: str) -> None:
    x = map_weights(path)["w"]
    other = copy.deepcopy(x)
    np.testing.assert_array_equal(other.numpy(), EXAMPLE["w"])
    assert not shares(device) or not lies_in_a_file(memory_of(other))
    assert x.numpy().flags.writeable and not lies_in_a_file(x.numpy())


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be deleted or replaced there")
def test_the_file_may_be_replaced_or_deleted(path: Path, device: str) -> None:
    weights = map_weights(path)
    first = weights["w"]
    save_arrays(path, {"w": -np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(first.numpy(), EXAMPLE["w"])
    assert (map_weights(path)["w"].numpy() == -1).all()
    os.remove(path)
    np.testing.assert_array_equal(first.numpy(), EXAMPLE["w"])
    np.testing.assert_array_equal(weights["h"].numpy(), EXAMPLE["h"])  # asked for only now
    del weights
    np.testing.assert_array_equal((first + 1).numpy(), EXAMPLE["w"] + 1)


@pytest.mark.parametrize("padding", range(4))
def test_what_is_not_aligned_is_copied_with_a_reason(tmp_path: Path, sharing: str, padding: int) -> None:
    values = np.array([1.5, -2, 3], np.float32)
    header = json.dumps({"__metadata__": {"nnc.format": "checkpoint-1"}, "bytes": entry("U8", [1], 0, 1),
                         "w": entry("F32", [3], 1, 13)}).encode()
    header += b" " * (-(8 + len(header)) % 4 + padding)
    write(tmp_path / "f", header, b"\7" + values.tobytes())
    weights = map_weights(tmp_path / "f")
    np.testing.assert_array_equal(weights["w"].numpy(), values)
    assert weights["bytes"].tolist() == [7] and weights.why_copied("bytes") is None
    aligned = (padding + 1) % 4 == 0
    assert lies_in_a_file(memory_of(weights["w"])) is aligned
    reason = weights.why_copied("w")
    assert reason is None if aligned else "no multiple of the 4 bytes that float32 needs" in str(reason)
    model = nn.Sequential(nn.Linear(1, 3, bias=False))
    name, parameter = next(iter(model.cells().items()))
    write(tmp_path / "g", header.replace(b'"w"', json.dumps(name).encode()).replace(
        b'"shape": [3]', b'"shape": ' + json.dumps(list(parameter.spec.shape)).encode()), b"\7" + values.tobytes())
    load_weights(model, tmp_path / "g", strict=False, mapped=True)
    np.testing.assert_array_equal(parameter.read().numpy().reshape(-1), values)


# ---- modules
def network() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm(8), nn.ReLU(), nn.Linear(8, 2))


def test_a_module_computes_in_the_file(tmp_path: Path, device: str) -> None:
    first, second = network(), network()
    save_weights(first, tmp_path / "w")
    assert load_weights(second, tmp_path / "w", mapped=True) == ((), ())
    x = nnc.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    with nnc.evaluating():
        np.testing.assert_array_equal(second(x).numpy(), first(x).numpy())
        np.testing.assert_allclose(nnc.jit(second)(x).numpy(), first(x).numpy(), rtol=1e-5, atol=1e-6)
    for name, cell in second.cells().items():
        assert cell.device.id == device
        np.testing.assert_array_equal(cell.read().numpy(), first.cells()[name].read().numpy())
        if shares(device):
            assert lies_in_a_file(memory_of(cell.read())), name


@pytest.mark.parametrize("hybridize", [False, True])
def test_training_a_mapped_module_leaves_the_file_alone(tmp_path: Path, device: str, hybridize: bool) -> None:
    path, results = tmp_path / "w", []
    save_weights(network(), path)
    before = path.read_bytes()
    x, y = nnc.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 12), nnc.asarray(np.array([0, 1, 0]))
    for mapped in (True, False):
        model = network()
        load_weights(model, path, mapped=mapped)
        minimiser = optim.SGD(model.named_parameters(), 0.1)

        def step(model: Any = model, minimiser: Any = minimiser) -> Any:
            loss, gradients = nn.value_and_grad(model, lambda: nnc.cross_entropy(model(x), y))()
            minimiser.update(gradients)
            return loss

        run = nnc.jit(step) if hybridize else step
        results.append([run().item() for _ in range(3)])
        assert (model.state_dict()["0.weight"] != load_arrays(path)[0]["0.weight"]).any()
    assert results[0] == results[1] and results[0][0] != results[0][2]
    assert path.read_bytes() == before


def test_weights_that_do_not_fit_change_nothing(tmp_path: Path, device: str) -> None:
    save_weights(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)), tmp_path / "w")
    other = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2))
    before = other.state_dict()
    with pytest.raises(StateError, match=r"missing 2.bias, 2.weight; unexpected 1.bias, 1.weight"):
        load_weights(other, tmp_path / "w", mapped=True)
    assert all(np.array_equal(a, before[name]) for name, a in other.state_dict().items())
    assert load_weights(other, tmp_path / "w", strict=False, mapped=True).missing == ("2.weight", "2.bias")
    with pytest.raises(ShapeError):
        load_weights(nn.Sequential(nn.Linear(3, 4)), tmp_path / "w", strict=False, mapped=True)
    with pytest.raises(DTypeError):
        load_weights(nn.Sequential(nn.Linear(3, 2, dtype="float64")), tmp_path / "w", strict=False, mapped=True)


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be deleted or replaced there")
def test_a_module_is_saved_to_the_file_that_it_computes_in(tmp_path: Path, device: str) -> None:
    model = network()
    save_weights(model, tmp_path / "w")
    load_weights(model, tmp_path / "w", mapped=True)
    before, weight = model.state_dict(), model.cells()["0.weight"]
    weight.write(weight.read() + 1)
    save_weights(model, tmp_path / "w")
    again = load_arrays(tmp_path / "w")[0]
    for name, array in before.items():
        np.testing.assert_array_equal(again[name], array + 1 if name == "0.weight" else array)


def test_the_weights_in_a_file_with_a_network(tmp_path: Path) -> None:
    model, other = network(), network()
    save_module(model, tmp_path / "m")
    load_weights(other, tmp_path / "m", mapped=True)
    assert set(map_weights(tmp_path / "m")) == set(model.cells())
    np.testing.assert_array_equal(other.state_dict()["0.weight"], model.state_dict()["0.weight"])


# ---- files that are damaged, or none
def test_every_truncation_is_one_clear_error(path: Path) -> None:
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match=r"example\.safetensors.*\n  at: test_mapped.*\n  try: restore"):
            map_weights(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(FileFormatError, match="bytes"):
        map_weights(path)


def test_no_flip_of_a_byte_in_the_header_is_another_kind_of_error(path: Path) -> None:
    content = path.read_bytes()
    for place in range(8 + int.from_bytes(content[:8], "little")):
        for mask in (0x01, 0x20, 0x80, 0xFF):
            path.write_bytes(content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :])
            try:
                map_arrays(path)
            except FileFormatError as error:
                assert "example.safetensors" in str(error)


W = entry("F32", [2], 0, 8)


@pytest.mark.parametrize(("header", "data", "said"), [
    ([], b"", "no JSON object"), (b"\xff\xfe", b"", "cannot be read"), (b"{", b"", "cannot be read"),
    (b"[" * 100_000, b"", "cannot be read"), (b'{"w":1,"w":2}', b"", "a name occurs twice"),
    ({"w": 1}, b"", "'w' is not understood"), ({"w": entry("F32", [2], 0)}, bytes(8), "not understood"),
    ({"w": entry("F32", [-2], 0, 8)}, bytes(8), "not understood"), ({"w": entry("F32", [True], 0, 4)}, bytes(4), "not"),
    ({"w": {"dtype": 3, "shape": [2], "data_offsets": [0, 8]}}, bytes(8), "not understood"),
    ({"w": entry("F32", [3], 0, 8)}, bytes(8), r"float32\[3\], has 8 bytes"),
    ({"w": entry("F32", [2], 8, 0)}, bytes(8), "expected from 0"), ({"w": W}, bytes(9), "take 8 bytes, 9 are there"),
    ({"w": entry("F32", [2], 4, 12)}, bytes(12), "expected from 0"), ({"w": W, "v": W}, bytes(8), "expected from 8"),
    ({"w": entry("F32", [2**62, 0], 0, 0)}, b"", "cannot have shape"),
    ({"w": entry("F32", [1] * 99, 0, 4)}, bytes(4), "cannot have shape"),
    ({"w": entry("F6_E2M3", [4], 0, 3)}, bytes(3), "unknown dtype F6_E2M3"),
    ({"__metadata__": {"a": 1}}, b"", "metadata"), ({"__metadata__": [1]}, b"", "metadata"),
    ({"__metadata__": {"nnc.format": "other"}}, b"", "nnc.format is 'other'"),
])  # fmt: skip
def test_headers_that_are_wrong(tmp_path: Path, header: Any, data: bytes, said: str) -> None:
    write(tmp_path / "f", header, data)
    for read in (map_arrays, map_weights):
        with pytest.raises(FileFormatError, match=said):
            read(tmp_path / "f")


def test_foreign_and_missing_files(tmp_path: Path) -> None:
    for content in (b"", b"hello", b"PK\3\4" + bytes(100), b"\x93NUMPY" + bytes(100)):
        (tmp_path / "f").write_bytes(content)
        with pytest.raises(FileFormatError):
            map_weights(tmp_path / "f")
    with pytest.raises(FileFormatError, match="is a directory"):
        map_weights(tmp_path)
    with pytest.raises(MissingFileError):
        map_weights(tmp_path / "nothing")


def test_files_of_the_library(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    arrays = {"w": np.arange(6.0).reshape(2, 3), "flag": np.array([True, False]), "empty": np.ones((3, 0))}
    for metadata in ({"note": "theirs"}, None):
        save_file(arrays, tmp_path / "theirs", metadata)
        mapped, texts = map_arrays(tmp_path / "theirs")
        assert texts == (metadata or {}) and mapped.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(mapped[name], array)

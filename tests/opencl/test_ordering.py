"""Sorting and scatters by kernels, those for CPUs and those for GPUs: the references' results, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DTYPES
from nnc_core.base.errors import OutOfRangeError
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.ordering import argsort
from nnc_core.operator.steps.sorting import Sorting
from nnc_opencl.device import OpenCLDevice
from tests.opencl.running import get, put

Values = np.ndarray[Any, Any]


def run(device: OpenCLDevice, name: str, attributes: tuple[Any, ...], inputs: list[Layout], arrays: list[Values],
        y: Layout, in_place: bool = False) -> Values:
    """The result of a device's own code."""
    command = Command(name, attributes, tuple(inputs), (y,))
    [backend] = device.backends(name)
    assert backend.refuse(command) is None
    result = np.zeros(y.extent // y.dtype.itemsize, y.dtype)
    buffers = [*[put(device, array) for array in arrays], put(device, result)]
    if in_place:
        assert backend.inplace(command, (0,)) == (0,)
        buffers[-1] = buffers[0]
    backend.prepare(command).bind([*buffers, device.allocate(backend.workspace(command))])()
    return get(device, buffers[-1], result)


def numbers(shape: tuple[int, ...], name: str) -> Values:
    rng = np.random.default_rng(len(shape))
    if name == "bool":
        return rng.random(shape) < 0.5
    if name == "uint64":
        return rng.integers(0, 1 << 63, shape, np.uint64) * np.uint64(2) + np.uint64(1)
    found = rng.integers(-8, 8, shape) / 4
    return (found + 1j * rng.integers(-8, 8, shape) / 4 if "complex" in name else found).astype(DTYPES[name])


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "uint64"])
def test_positions_in_order(both: OpenCLDevice, name: str) -> None:
    if name not in both.spec.dtypes:
        pytest.skip(f"no {name} here")
    for shape, axis in (((5, 100), 1), ((3000,), 0), ((70, 3, 4), 0), ((2, 1025), 1), ((2, 5000), 1)):
        x = numbers(shape, name)
        if x.dtype.kind == "f":
            x.reshape(-1)[[3, 5, 7, 8]] = np.nan, -0.0, np.inf, -np.inf
            x.reshape(-1)[20:80:7] = -np.nan
        for descending in (False, True):
            layout = Layout.packed(shape, x.dtype)
            y = run(both, "argsort", (axis, descending), [layout], [x], Layout.packed(shape, np.dtype(np.int64)))
            assert (y.reshape(shape) == argsort(x, axis, descending)).all()


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "uint64",
                                  "bool"])
def test_positions_by_digits(both: OpenCLDevice, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one tile, of whole tiles and of parts of them, in the order of every other way."""
    if name not in both.spec.dtypes:
        pytest.skip(f"no {name} here")
    monkeypatch.setattr(Sorting, "long", True)
    for shape, axis in (((5, 100), 1), ((2, 2048), 1), ((4097, 2), 0)):
        x = spread(shape, name)
        for descending in (False, True):
            layout = Layout.packed(shape, x.dtype)
            y = run(both, "argsort", (axis, descending), [layout], [x], Layout.packed(shape, np.dtype(np.int64)))
            assert (y.reshape(shape) == argsort(x, axis, descending)).all()


def spread(shape: tuple[int, ...], name: str) -> Values:
    """Numbers of every digit, some of them equal."""
    dtype = DTYPES[name]
    bits = np.random.default_rng(3).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    x = np.ascontiguousarray(bits % 2 if name == "bool" else bits).view(dtype)[..., 0].copy()
    flat = x.reshape(-1)
    flat[::7] = flat[0]
    return x


def test_long_rows_are_sorted_by_digits_where_that_moves_less() -> None:
    for key, digits, length in ((np.uint32, 4, 1 << 16), (np.uint64, 8, 1 << 18), (np.uint32, 1, 1 << 13)):
        longest = [Sorting(1, length // n, np.dtype(key), digits) for n in (1, 2)]
        assert [one.long for one in longest] == [True, False]
        assert longest[0].wide == length and len(list(longest[0].steps(True, 1))) == 2 + 6 * digits


def test_long_rows(both: OpenCLDevice) -> None:
    x = numbers((2, 70001), "float32")
    layout = Layout.packed(x.shape, x.dtype)
    y = run(both, "argsort", (1, False), [layout], [x], Layout.packed(x.shape, np.dtype(np.int64)))
    assert (y.reshape(x.shape) == argsort(x, 1, False)).all()


def test_positions_of_what_lies_apart(both: OpenCLDevice) -> None:
    x = numbers((200, 3), "float32")
    part = Layout((3, 100), x.dtype, 12, (4, 24))
    y = run(both, "argsort", (1, False), [part], [x], Layout((3, 100), np.dtype(np.int64), 16, (8, 24)))
    assert (argsort(x[1::2].T, 1, False) == y[2:].reshape(100, 3).T).all()


SCATTERS = [((7,), (20,), 0, 0), ((9, 5), (3, 4), 0, 0), ((4, 9, 3), (30,), 1, 0), ((2, 3, 9, 3), (2, 30), 2, 1),
            ((2, 9), (2, 3, 2), 1, 1), ((3, 2), (0,), 0, 0), ((5, 3000), (7,), 0, 0), ((3000,), (5000,), 0, 0)]


@pytest.mark.parametrize(("name", "mode"), [
    *[("float32", mode) for mode in ("set", "add", "multiply", "min", "max")], ("float64", "add"), ("float16", "add"),
    ("float16", "max"), ("bfloat16", "multiply"), ("int8", "add"), ("int8", "min"), ("complex64", "add"),
    ("complex64", "multiply"), ("bool", "set")])
def test_updates_by_index(both: OpenCLDevice, name: str, mode: str) -> None:
    if name not in both.spec.dtypes:
        pytest.skip(f"no {name} here")
    for shape, of_indices, axis, batch in SCATTERS:
        x, updates = numbers(shape, name), numbers((*shape[:axis], *of_indices[batch:], *shape[axis + 1 :]), name)
        indices = np.random.default_rng(0).integers(-shape[axis], shape[axis], of_indices)
        arrays = [x, indices.astype(np.int32), updates]
        layouts = [Layout.packed(z.shape, z.dtype) for z in arrays]
        reference: Any = OPERATORS["scatter"].reference
        with np.errstate(all="ignore"):
            expected = reference(*arrays, axis, mode, batch)
        for in_place in (False, True):
            y = run(both, "scatter", (axis, mode, batch), layouts, arrays, layouts[0], in_place).reshape(shape)
            np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("length", [9, 3000])
def test_updates_by_index_by_digits(both: OpenCLDevice, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices have as many digits as they need; those out of range come last."""
    monkeypatch.setattr(Sorting, "long", True)
    x, updates = numbers((3, length), "float32"), numbers((3, 5000), "float32")
    indices = np.random.default_rng(0).integers(-length, length, 5000)
    indices[::9], kept = length + 2, np.arange(5000) % 9 > 0
    arrays = [x, indices.astype(np.int32), updates]
    layouts = [Layout.packed(z.shape, z.dtype) for z in arrays]
    y = run(both, "scatter", (1, "set", 0), layouts, arrays, layouts[0]).reshape(x.shape)
    x[:, indices[kept]] = updates[:, kept]
    np.testing.assert_array_equal(y, x)


def test_an_index_out_of_range_changes_nothing(both: OpenCLDevice) -> None:
    arrays = [np.arange(5.0, dtype=np.float32), np.array([7, -6, 1, -1, 5]), np.full(5, 10, np.float32)]
    layouts = [Layout.packed(z.shape, z.dtype) for z in arrays]
    y = run(both, "scatter", (0, "add", 0), layouts, arrays, layouts[0])
    assert y.tolist() == [0, 11, 2, 3, 14]


def test_indices_are_checked_if_asked(device: OpenCLDevice) -> None:
    x = nnc.zeros((5,), device=device.spec.id)
    with nnc.config.using(check_indices=True), pytest.raises(OutOfRangeError, match="7"):
        x.at[nnc.asarray([7], device=device.spec.id)].add(1.0)

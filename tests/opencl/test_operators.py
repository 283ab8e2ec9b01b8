"""What this device might do otherwise than the kit asks of every device: rounding, order of sums, layouts, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32
from nnc_core.base.layout import Layout
from nnc_opencl.device import OpenCLDevice
from tests.opencl.cases import Case, nest_of, numbers
from tests.opencl.running import put, run


def assert_same(device: OpenCLDevice, case: Case) -> None:
    result = run(device, nest_of(case.command), case.inputs, case.expected)
    np.testing.assert_array_equal(result, case.expected)


def test_division_and_square_root_are_correctly_rounded(device: OpenCLDevice, rng: np.random.Generator) -> None:
    a, b = (np.exp(rng.uniform(-80, 80, 10_000)).astype(np.float32) for _ in "ab")
    assert_same(device, Case("divide", (a, b)))
    assert_same(device, Case("sqrt", (a,)))


@pytest.mark.parametrize("rows", [1, 3, 70])
def test_sums_keep_their_order(device: OpenCLDevice, rng: np.random.Generator, rows: int) -> None:
    """Whatever the driver would like better, so that fused and unfused kernels agree bit for bit: added in sixteen
    parts on CPUs, one by one elsewhere."""
    x = rng.standard_normal((rows, 5000), np.float32)
    case = Case("sum", (x,), ((1,), False))
    result = run(device, nest_of(case.command), case.inputs, case.expected)
    np.testing.assert_array_equal(result, in_parts(x) if "cpu" in device.spec.features else one_by_one(x))


def one_by_one(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The sums of rows."""
    return np.add.accumulate(x, axis=-1)[..., -1]  # type: ignore[no-any-return]


def in_parts(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same as sums of elements a multiple of sixteen apart, which a tree adds."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % 16)))
    parts = one_by_one(padded.reshape(len(x), -1, 16).transpose(0, 2, 1))
    while parts.shape[1] > 1:
        half = parts.shape[1] // 2
        parts = parts[:, :half] + parts[:, half:]
    return parts[:, 0]


def test_strided_inputs(device: OpenCLDevice) -> None:
    """A transposed and a sliced operand, whose layouts begin inside their storages."""
    a, b = numbers(float32, 5, 4), numbers(float32, 50)
    layouts = (Layout((4, 5), float32, 0, (4, 16)), Layout((4, 5), float32, 8, (40, 8)))
    command = Command("add", (), layouts, (Layout.packed((4, 5), float32),))
    seen = np.lib.stride_tricks.as_strided(b[2:], (4, 5), (40, 8))
    np.testing.assert_array_equal(run(device, nest_of(command), [a, b], a.T + seen), a.T + seen)


@pytest.mark.parametrize("place", [0, 1])
def test_in_place(device: OpenCLDevice, place: int) -> None:
    """One buffer as input and output."""
    case = Case("subtract", (numbers(float32, 3, 5), numbers(float32, 3, 5) * 2))
    buffers = [put(device, x) for x in case.inputs]
    device.compile(nest_of(case.command)).bind([*buffers, buffers[place]])()
    result = np.empty((3, 5), np.float32)
    device.download(buffers[place], result).wait()
    np.testing.assert_array_equal(result, case.expected)


@pytest.mark.parametrize("points", [1, 63, 64, 65, 1000, 70_001])
def test_every_point_is_computed_once(device: OpenCLDevice, points: int) -> None:
    """Whatever the sizes of work groups: nothing is left out, nothing is written behind the end."""
    case = Case("add", (np.arange(points, dtype=np.int32), np.ones(points, np.int32)))
    buffers = [*[put(device, x) for x in case.inputs], device.allocate(points * 4 + 400)]
    device.fill(buffers[2], b"\x7f")
    device.compile(nest_of(case.command)).bind(buffers)()
    result = np.empty(points + 100, np.int32)
    device.download(buffers[2], result).wait()
    np.testing.assert_array_equal(result[:points], case.expected)
    assert (result[points:] == 0x7F7F7F7F).all()

"""Products and recurrences of complex numbers by kernels, whatever the axes and the places of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import complex64, complex128, float32, real_of
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.steps.folding import FOLDED
from nnc_opencl.device import OpenCLDevice
from tests.opencl.running import get, put

CASES: list[tuple[str, tuple[int, ...], tuple[Any, ...]]] = [
    ("prod", (3, 4, 5), ((1,), False)), ("prod", (3, 4, 5), ((0, 2), True)), ("prod", (7,), ((0,), False)),
    ("prod", (3, 0), ((1,), False)), ("prod", (0, 3), ((1,), True)), ("prod", (2, 3), ((), False)),
    *[(name, shape, (axis, reverse)) for name in FOLDED[1:] for reverse in (False, True)
      for shape, axis in (((3, 4, 5), 1), ((7,), 0), ((300, 9), 1), ((2, 0), 1))],
]  # fmt: skip


def turned(x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Layout]:
    """The first axis last, behind a gap."""
    room = np.full(3 + x.size, 7, x.dtype)
    room[3:] = x.transpose().reshape(-1)
    strides = tuple(np.cumprod([x.itemsize, *x.shape[:-1]]).tolist()) if x.shape else ()
    return room, Layout(x.shape, x.dtype, 3 * x.itemsize, strides)


def run(device: OpenCLDevice, name: str, attributes: Any, inputs: list[Any], expected: Any) -> tuple[Any, Any]:
    """The memory of a result, gaps included, as computed and as expected."""
    placed = [turned(x) for x in (*inputs, np.full(expected.shape, 7, expected.dtype))]
    command = Command(name, attributes, tuple(layout for _, layout in placed[:-1]), (placed[-1][1],))
    backend = device.backends(name)[-1]
    assert backend.refuse(command) is None
    buffers = [put(device, room) for room, _ in placed]
    backend.prepare(command).bind(buffers)()
    return get(device, buffers[-1], placed[-1][0]), turned(expected)[0]


@pytest.mark.parametrize("dtype", [complex64, complex128], ids=str)
@pytest.mark.parametrize(("name", "shape", "attributes"), CASES)
def test_products_and_recurrences(both: OpenCLDevice, name: str, shape: tuple[int, ...], attributes: Any,
                                  dtype: Any) -> None:
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 6, (2, *shape))
    turns = np.exp(1j * angle[: 1 + (name == "recurrence")])
    inputs = [(rng.uniform(0.9, 1.1, shape) * turn).astype(dtype) for turn in turns]
    expected = OPERATORS[name].reference(*inputs, *attributes)
    found, wanted = run(both, name, attributes, inputs, expected)
    bound = 32 * float(np.finfo(real_of(dtype)).eps)
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", FOLDED)
@pytest.mark.parametrize("reverse", [False, True])
def test_where_numbers_end_they_are_as_numpy_has_them(both: OpenCLDevice, name: str, reverse: bool) -> None:
    inf, nan = float("inf"), float("nan")
    x = np.array([[inf, 2], [complex(0, -inf), 1j], [1, nan], [1e30, 1e30], [0, inf], [2, 3]], complex64)
    inputs, attributes = [x] * (1 + (name == "recurrence")), ((1,) if name == "prod" else 1, reverse)
    with np.errstate(all="ignore"):
        expected = OPERATORS[name].reference(*inputs, *attributes)
    found, wanted = run(both, name, attributes, inputs, expected)
    for part in ("real", "imag"):
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))


def test_real_numbers_are_left_to_loop_nests(device: OpenCLDevice) -> None:
    x, y = Layout.packed((3,), float32), Layout.packed((), float32)
    refusal = device.backends("prod")[-1].refuse(Command("prod", ((0,), False), (x,), (y,)))
    assert refusal is not None and "complex" in refusal

"""Lists with tensors in them are arrays wherever arrays are taken, and gradients and traces pass through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ConcretizationError, DetachedWarning, DeviceError, ShapeError
from tests.tensors.faults import fails
from tests.tensors.ways import in_mode

Function = Callable[[Any], Any]
TAKE_LISTS: dict[str, tuple[Function, Function]] = {
    "asarray": (lambda a: nnc.asarray([a * a, a, 1.0]), lambda a: [a * a, a, 1]),
    "nested": (lambda a: nnc.asarray([[a, 2.0], [1, a * a]]), lambda a: [[a, 2], [1, a * a]]),
    "of arrays": (lambda a: nnc.asarray([a * nnc.ones(2), np.ones(2, np.float32)]), lambda a: [[a, a], [1, 1]]),
    "tuples": (lambda a: nnc.asarray(((a,), [1.0])), lambda a: [[a], [1]]),
    "another dtype": (lambda a: nnc.asarray([a, 1], dtype="float64"), lambda a: [a, 1]),
    "sum": (lambda a: nnc.sum([a * a, a]), lambda a: a * a + a),
    "times": (lambda a: nnc.asarray([3.0, 4.0]) * [a * a, a], lambda a: [3 * a * a, 4 * a]),
    "matrix product": (lambda a: [a, 1.0] @ nnc.asarray([[1.0, 2.0], [a, 4.0]]), lambda a: [2 * a, 2 * a + 4]),
    "where": (lambda a: nnc.where([True, False], [a * a, a], 0.0), lambda a: [a * a, 0]),
    "concat": (lambda a: nnc.concat([[a * a, a], [1.0]]), lambda a: [a * a, a, 1]),
    "interp": (lambda a: nnc.interp([0.5], [0.0, 1.0], [a * a, a]), lambda a: [(a * a + a) / 2]),
    "at": (lambda a: nnc.zeros(3).at[[0, 2]].set([a * a, a]), lambda a: [a * a, 0, a]),
    "pad": (lambda a: nnc.pad(nnc.ones((1, 1)), (1, 0), value=a * a), lambda a: [[a * a, a * a], [a * a, 1]]),
    "linspace": (lambda a: nnc.linspace(a, a * a, 3), lambda a: [a, (a + a * a) / 2, a * a]),
    "linspace of arrays": (lambda a: nnc.linspace([a, 1.0], 5, 2, endpoint=False),
                           lambda a: [[a, 1], [(a + 5) / 2, 3]]),
    "logspace": (lambda a: nnc.logspace(a, 1, 2, base=2.0), lambda a: [2**a, 2]),
    "geomspace": (lambda a: nnc.geomspace(1, a, 3), lambda a: [1, a**0.5, a]),
}  # fmt: skip
each_function = pytest.mark.parametrize(("f", "wanted"), TAKE_LISTS.values(), ids=TAKE_LISTS)
A = 1.5


@each_function
@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
def test_values(f: Function, wanted: Function, mode: str, device: str) -> None:
    found = in_mode(mode, f, nnc.asarray(A))
    assert found.device.id == device
    np.testing.assert_allclose(found.numpy(), wanted(A), rtol=1e-6)


@each_function
def test_gradients(f: Function, wanted: Function, device: str) -> None:
    loss = lambda a: nnc.sum(f(a) ** 2)  # noqa: E731
    step = 1e-6
    slope = sum(s * np.sum(np.square(np.asarray(wanted(A + s * step)))) for s in (1, -1)) / (2 * step)
    for found in (nnc.grad(loss)(nnc.asarray(A)), nnc.jit(nnc.grad(loss))(nnc.asarray(A))):
        np.testing.assert_allclose(found.item(), slope, rtol=1e-4)


def test_numbers_are_weak() -> None:
    half = nnc.asarray(0.5, dtype="float16")
    assert nnc.asarray([half, 1.0, 2]).dtype == nnc.float16
    assert nnc.asarray([nnc.asarray(1, dtype="int8"), 2]).dtype == nnc.int8
    assert nnc.asarray([nnc.asarray(1, dtype="int8"), 2.5]).dtype == nnc.float32
    assert nnc.asarray([half, nnc.asarray(1.0, dtype="float64")]).dtype == nnc.float64


def test_positions_that_are_computed(device: str) -> None:
    x = nnc.asarray([10.0, 20.0, 30.0])
    assert nnc.jit(lambda x, i: x[[i, i + 1, 0]])(x, nnc.asarray(1)).tolist() == [20, 30, 10]
    assert x[[nnc.asarray(2), 0]].tolist() == [30, 10]


def test_what_does_not_fit() -> None:
    x = nnc.ones(2)
    with fails(ShapeError, "float32[2] beside float32[3]", "one shape", "test_lists.py"):
        nnc.sum([x, nnc.ones(3)])
    with fails(ShapeError, "the number 1.0 beside float32[2]", "one shape"):
        nnc.asarray([x, 1.0])
    with fails(DeviceError, "strict:0", ".to("):
        nnc.asarray([x, nnc.ones(2, device="strict:0")])


@pytest.mark.parametrize("leave", [np.asarray, lambda a: np.sum([a, a]), lambda a: np.array([a, a])])
def test_leaving_for_numpy_is_said_where_a_gradient_is_followed(leave: Function) -> None:
    def loss(a: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.asarray(leave(a * a))) + a

    with pytest.warns(DetachedWarning, match=r"float32\[\], made at test_lists.py:\d+ in loss, is handed to NumPy"):
        assert nnc.grad(loss)(nnc.asarray(A)).item() == 1.0
    with pytest.raises(ConcretizationError):
        nnc.jit(nnc.grad(loss))(nnc.asarray(A))
    leave(nnc.asarray(A))  # no gradient, no word
    nnc.grad(lambda a: a * np.asarray(a.detach()))(nnc.asarray(A))
    nnc.grad(lambda a: a * a.numpy())(nnc.asarray(A))  # it says so itself

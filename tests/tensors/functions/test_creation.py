"""Making tensors: Array API creation functions, eager and deferred, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import DTYPES
from nnc_core.stacks import stack_for
from tests.tensors.faults import fails

CASES: dict[str, tuple[Callable[[], nnc.Tensor], Any]] = {
    "zeros": (lambda: nnc.zeros((2, 3)), np.zeros((2, 3), np.float32)),
    "zeros of a number": (lambda: nnc.zeros(4, dtype="int8"), np.zeros(4, np.int8)),
    "ones of nothing": (lambda: nnc.ones((0, 2)), np.ones((0, 2), np.float32)),
    "empty": (lambda: nnc.empty((2, 2)), np.zeros((2, 2), np.float32)),
    "full": (lambda: nnc.full((2,), 7), np.array([7, 7])),
    "full of floats": (lambda: nnc.full((), 1.5), np.array(1.5, np.float32)),
    "full of truth": (lambda: nnc.full((2,), True), np.array([True, True])),
    "full_like": (lambda: nnc.full_like(nnc.ones((2, 1), dtype="int32"), 3), np.full((2, 1), 3, np.int32)),
    "zeros_like": (lambda: nnc.zeros_like(nnc.ones(2), dtype="int16"), np.zeros(2, np.int16)),
    "ones_like": (lambda: nnc.ones_like(nnc.zeros((1, 2))), np.ones((1, 2), np.float32)),
    "empty_like": (lambda: nnc.empty_like(nnc.ones(3)), np.zeros(3, np.float32)),
    "arange": (lambda: nnc.arange(5), np.arange(5)),
    "arange from": (lambda: nnc.arange(2, 9, 3), np.arange(2, 9, 3)),
    "arange down": (lambda: nnc.arange(5, 0, -2), np.arange(5, 0, -2)),
    "arange from minus zero": (lambda: nnc.arange(-0.0, 3), np.arange(-0.0, 3, dtype=np.float32)),
    "arange down from minus zero": (lambda: nnc.arange(-0.0, -3, -1.5), np.arange(-0.0, -3, -1.5, np.float32)),
    "arange of halves from minus zero": (lambda: nnc.arange(np.float64(-0.0), 3, 2, dtype="float16"),
                                         np.array([-0.0, 2], np.float16)),
    "arange of nothing": (lambda: nnc.arange(3, 3), np.arange(3, 3)),
    "arange of floats": (lambda: nnc.arange(0.0, 1.0, 0.25), np.arange(0, 1, 0.25, np.float32)),
    "linspace": (lambda: nnc.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32)),
    "linspace without its end": (lambda: nnc.linspace(0, 1, 4, endpoint=False),
                                 np.linspace(0, 1, 4, endpoint=False, dtype=np.float32)),
    "linspace of integers": (lambda: nnc.linspace(0, -5, 4, dtype="int32"), np.linspace(0, -5, 4, dtype=np.int32)),
    "linspace of one": (lambda: nnc.linspace(2, 7, 1), np.linspace(2, 7, 1, dtype=np.float32)),
    "linspace of nothing": (lambda: nnc.linspace(2, 7, 0), np.linspace(2, 7, 0, dtype=np.float32)),
    "logspace": (lambda: nnc.logspace(0, 2, 5), np.logspace(0, 2, 5, dtype=np.float32)),
    "logspace of another base": (lambda: nnc.logspace(1, 4, 3, endpoint=False, base=2),
                                 np.logspace(1, 4, 3, endpoint=False, base=2, dtype=np.float32)),
    "geomspace": (lambda: nnc.geomspace(1, 1000, 4), np.geomspace(1, 1000, 4, dtype=np.float32)),
    "geomspace below zero": (lambda: nnc.geomspace(-1, -8, 4, endpoint=False),
                             np.geomspace(-1, -8, 4, endpoint=False, dtype=np.float32)),
    "arange down in unsigned": (lambda: nnc.arange(5, 0, -2, dtype="uint8"), np.arange(5, 0, -2, np.uint8)),
    "full of a row": (lambda: nnc.full((2, 3), [1.0, 2.0, 3.0]), np.full((2, 3), [1, 2, 3], np.float32)),
    "full of another dtype": (lambda: nnc.full(2, np.array([1.5, 2]), dtype="int32"), np.array([1, 2], np.int32)),
    "identity": (lambda: nnc.identity(3, dtype="int8"), np.identity(3, np.int8)),
    "eye": (lambda: nnc.eye(3), np.eye(3, dtype=np.float32)),
    "eye of nothing": (lambda: nnc.eye(0, 3), np.eye(0, 3, dtype=np.float32)),
    "eye far above": (lambda: nnc.eye(2, 3, k=5), np.eye(2, 3, 5, np.float32)),
    "eye far below": (lambda: nnc.eye(2, 3, k=-5), np.eye(2, 3, -5, np.float32)),
    "eye above": (lambda: nnc.eye(3, 4, k=1), np.eye(3, 4, 1, np.float32)),
    "eye below": (lambda: nnc.eye(4, 2, k=-2, dtype="int8"), np.eye(4, 2, -2, np.int8)),
    "a list": (lambda: nnc.asarray([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
    "a list of floats": (lambda: nnc.asarray([1.5, 2]), np.array([1.5, 2], np.float32)),
    "a number": (lambda: nnc.asarray(3), np.array(3)),
    "tensors in a list": (lambda: nnc.asarray([nnc.asarray(1.0), nnc.asarray(2.0)]), np.array([1, 2], np.float32)),
    "a NumPy array": (lambda: nnc.asarray(np.arange(6, dtype=np.int16)[::2]), np.array([0, 2, 4], np.int16)),
    "another dtype": (lambda: nnc.asarray([1.7, -1.7], dtype="int32"), np.array([1, -1], np.int32)),
    "one_hot": (lambda: nnc.one_hot([0, 2], 3), np.eye(3, dtype=np.float32)[[0, 2]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(device: str, name: str) -> None:
    make, wanted = CASES[name]
    with nnc.deferred():
        lazy = make()
    for found in (make(), lazy, nnc.jit(make)()):
        assert found.device.id == device and (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(found.numpy(), wanted)
        np.testing.assert_array_equal(np.signbit(found.numpy().real), np.signbit(wanted.real))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(device: str, dtype: str) -> None:
    if dtype not in stack_for(device).device.spec.dtypes:
        with fails(TypeError, dtype, device, line=False):
            nnc.ones(2, dtype=dtype)
        return
    for x in (nnc.ones(2, dtype=dtype), nnc.asarray([1, 1], dtype=dtype), nnc.full((2,), 1, dtype=DTYPES[dtype])):
        assert x.dtype == DTYPES[dtype] and x.numpy().astype(np.complex128).tolist() == [1.0, 1.0]


def test_on_another_device(device: str) -> None:
    for make in (lambda: nnc.ones(2, device="strict:0"), lambda: nnc.asarray([1.0, 1.0], device="strict:0"),
                 lambda: nnc.full((2,), 1.0, device="strict"), lambda: nnc.ones_like(nnc.ones(2, device="strict:0")),
                 lambda: nnc.asarray(nnc.ones(2), device="strict:0"), lambda: nnc.eye(2, device="strict:0")[0] * 0 + 1):
        x = make()
        assert x.device.id == "strict:0" and x.tolist() == [1.0, 1.0]


def test_the_default_device_is_changed_for_a_while(device: str) -> None:
    with nnc.use_device("strict:0"):
        inside = nnc.ones(1)
        with nnc.use_device(device):
            assert nnc.ones(1).device.id == device
    assert inside.device.id == "strict:0" and nnc.ones(1).device.id == device


def test_a_cast_may_go_elsewhere(device: str) -> None:
    x = nnc.asarray([1.5, 2.5])
    assert x.device.id == device and x.astype("int32", device="strict:0").device.id == "strict:0"
    assert nnc.astype(x, nnc.int32, device="strict:0").tolist() == [1, 2]


def test_device_specs_name_devices(device: str) -> None:
    spec = next(s for s in nnc.devices(all=True) if s.id == device)
    assert nnc.ones(2, device=spec).device == spec and nnc.ones(2).to_device(spec).device == spec


@pytest.mark.parametrize(("make", "kind", "said"), [
    (lambda: nnc.zeros((2, -1)), ValueError, "negative"),
    (lambda: nnc.arange(0, 5, 0), ValueError, "step 0"),
    (lambda: nnc.arange(250, 260, dtype="uint8"), ValueError, "259 does not fit into uint8"),
    (lambda: nnc.linspace(0, 1, -1), ValueError, "num -1 is no integer from 0 on"),
    (lambda: nnc.linspace(0, 1, 2.5), ValueError, "num 2.5 is no integer from 0 on"),
    (lambda: nnc.geomspace(0, 1, 3), ValueError, "no multiples of one number lead from 0 to 1"),
    (lambda: nnc.eye(-1), ValueError, "negative dimension"),
    (lambda: nnc.full((2, 2), [1.0, 2.0, 3.0]), ValueError, "(2, 2)"),
    (lambda: nnc.asarray("text"), TypeError, "<U4"),
    (lambda: nnc.asarray(np.array([1 + 2j], np.clongdouble)), TypeError, "complex256"),
    (lambda: nnc.asarray([[1], [1, 2]]), ValueError, "list is no array"),
    (lambda: nnc.asarray(np.array(["a"])), TypeError, "<U1"),
    (lambda: nnc.asarray(None), TypeError, "object"),
    (lambda: nnc.asarray([300, 1], dtype="uint8"), ValueError, "300"),
    (lambda: nnc.asarray([2**70]), TypeError, "object"),
    (lambda: nnc.ones(2, dtype="float12"), TypeError, "float12"),
    (lambda: nnc.ones(2, dtype="datetime64[s]"), TypeError, "datetime64[s]"),
    (lambda: nnc.asarray([1.0, 2.0], copy=False), ValueError, "shared"),
    (lambda: nnc.ones(2, device="nowhere:3"), ValueError, "nowhere:3"),
    (lambda: nnc.full((2,), "x"), TypeError, "str"),
], ids=["negative", "step 0", "too far", "fewer than none", "no whole number", "from 0", "negative eye", "no row",
        "text", "wide complex", "ragged", "strings", "None", "too large", "enormous", "no dtype", "dates", "no copy",
        "no device", "full of text"])  # fmt: skip
def test_what_cannot_be_made(device: str, make: Callable[[], Any], kind: type[BaseException], said: str) -> None:
    with fails(kind, said, line=False):
        make()


def test_items_leave_as_python_numbers(device: str) -> None:
    assert isinstance(nnc.asarray(2.5).item(), float) and isinstance(nnc.asarray([3]).item(), int)
    assert nnc.asarray(True).item() is True and int(nnc.asarray(3.7)) == 3 and float(nnc.asarray(2)) == 2.0
    assert [10, 20, 30][nnc.asarray(np.array(1))] == 20 and bool(nnc.asarray(0.0)) is False
    with fails(ValueError, "float32[2]", line=False):
        nnc.ones(2).item()
    with fails(TypeError, "no integer", line=False):
        _ = [1, 2][nnc.asarray(1.0)]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_rows_of_every_dtype(dtype: str) -> None:
    """On the default device; halves are rounded once."""
    wanted = np.arange(1, 9, 2).astype(DTYPES[dtype])
    for row in (nnc.arange(1, 9, 2, dtype=dtype), nnc.linspace(1, 7, 4, dtype=dtype),
                nnc.full((4,), nnc.asarray([1, 3, 5, 7]), dtype=dtype)):
        assert row.dtype == wanted.dtype
        np.testing.assert_array_equal(row.numpy(), wanted)
    if DTYPES[dtype].kind not in "iu":
        tenths = nnc.linspace(0, 1, 11, dtype=dtype).numpy()
        np.testing.assert_array_equal(tenths, np.linspace(0, 1, 11).astype(DTYPES[dtype]))
    np.testing.assert_array_equal(nnc.eye(2, 3, k=1, dtype=dtype).numpy(), np.eye(2, 3, 1).astype(DTYPES[dtype]))


def test_complex_rows() -> None:
    for dtype in ("complex64", "complex128"):
        found = nnc.linspace(0, 1 + 1j, 3, dtype=dtype)
        np.testing.assert_array_equal(found.numpy(), np.linspace(0, 1 + 1j, 3).astype(dtype))
    assert nnc.linspace(0, 1j, 2).dtype == nnc.complex64

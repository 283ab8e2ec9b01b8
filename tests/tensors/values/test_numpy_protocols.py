"""Tensors given to NumPy, and memory shared by DLPack."""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.values.value import Value
from tests.tensors.faults import fails
from tests.tensors.values.sharing import HOST, LAYOUTS, shares_memory


# ---- __array__
def test_numpy_gets_a_copy_unless_it_refuses_one(device: str) -> None:
    x = nnc.asarray(HOST)
    for given in (np.asarray(x), np.array(x), np.array(x, copy=True), np.asarray(x, np.float64)):
        assert given.flags.writeable
        given[...] = -1
    np.testing.assert_array_equal(x.numpy(), HOST)
    assert np.asarray(x, np.int32).dtype == np.int32
    if not shares_memory(device):
        with pytest.raises(ValueError, match="without a copy"):
            np.asarray(x, copy=False)
        return
    view = np.asarray(x, copy=False)
    assert not view.flags.writeable and np.shares_memory(view, np.asarray(x, copy=False))
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, np.float64, copy=False)
    x += 1
    np.testing.assert_array_equal(view, HOST)


@pytest.mark.parametrize("shape", [(2, 3), (4, 1, 3), (5,), (), (0, 3)])
def test_fortran_order_in_and_out(device: str, shape: tuple[int, ...]) -> None:
    a = np.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), order="F")
    for x in (nnc.asarray(a), nnc.from_dlpack(a), nnc.from_dlpack(Foreign(a)), nnc.asarray(a) + 0):
        np.testing.assert_array_equal((x * 2).numpy(), a * 2)
        for c, fortran in ((x.numpy(), x.numpy(order="F")), (np.asarray(x, order="C"), np.asarray(x, order="F"))):
            assert c.flags.c_contiguous and fortran.flags.f_contiguous and c.dtype == fortran.dtype == a.dtype
            assert c.shape == fortran.shape == shape
            fortran[...] = fortran + 0  # it can be written, and is nobody else's
            np.testing.assert_array_equal(fortran, a)
            np.testing.assert_array_equal(c, a)
            fortran[...] = -1
        np.testing.assert_array_equal(x.numpy(), a)


def test_shared_memory_in_fortran_order_is_handed_on_as_it_is(sharing: str) -> None:
    a = np.asfortranarray(HOST)
    x = nnc.asarray(a, copy=False)
    for view in (np.from_dlpack(x), np.asarray(x, copy=False)):
        assert np.shares_memory(view, a) and view.strides == a.strides
        np.testing.assert_array_equal(view, HOST)


def test_an_order_that_is_none(x: nnc.Tensor) -> None:
    with fails(ValueError, "order='K'", '"C" or "F"', line=False):
        x.numpy(order="K")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "lt", "eq", "ge"])
def test_operators_between_arrays_and_tensors_give_tensors(x: nnc.Tensor, name: str) -> None:
    f = getattr(operator, name)
    a, y, b = HOST + 1, x + 1, HOST + 1
    for ours, wanted in ((f(a, y), f(a, b)), (f(y, a), f(b, a)), (f(a[0, 1], y), f(a[0, 1], b)),
                         (f(y, a[0, 1]), f(b, a[0, 1]))):
        assert isinstance(ours, nnc.Tensor) and ours.device.id == x.device.id
        np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-5)
    assert isinstance(a.T @ x, nnc.Tensor) and isinstance(np.float64(2) * x, nnc.Tensor)


def test_the_namespace(x: nnc.Tensor) -> None:
    assert x.__array_namespace__() is nnc and x.__array_namespace__(api_version="2024.12") is nnc
    with fails(ValueError, "1999.12", line=False):
        x.__array_namespace__(api_version="1999.12")


# ---- DLPack
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint32", "bool"])
def test_numpy_takes_tensors_by_dlpack(device: str, dtype: str) -> None:
    x = nnc.asarray(HOST.astype(dtype))
    y = np.from_dlpack(x)
    assert y.dtype == x.dtype and x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(y, HOST.astype(dtype))
    assert y.flags.writeable is not shares_memory(device), "a tensor's own memory is not to be written"
    if shares_memory(device):
        assert np.shares_memory(y, np.asarray(x, copy=False))


def test_a_copy_by_dlpack_can_be_written(x: nnc.Tensor) -> None:
    y = np.from_dlpack(x, copy=True)
    y[...] = -1
    np.testing.assert_array_equal(x.numpy(), HOST)


class Old:
    """A consumer before DLPack 1.0, which cannot be told that memory is read-only."""

    def __init__(self, x: nnc.Tensor) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_an_old_consumer_gets_a_copy(x: nnc.Tensor, device: str) -> None:
    y = np.from_dlpack(Old(x))
    np.testing.assert_array_equal(y, HOST)
    if shares_memory(device):
        assert not np.shares_memory(y, np.asarray(x, copy=False))


def test_requests_that_dlpack_cannot_meet(x: nnc.Tensor, device: str) -> None:
    with fails(BufferError, "stream 3", line=False):
        x.__dlpack__(stream=3)
    with fails(BufferError, "(2, 0)", line=False):
        x.__dlpack__(dl_device=(2, 0))
    with fails(BufferError, "without a copy", line=False):
        x.__dlpack__(copy=False)
    with fails(BufferError, "bfloat16", "astype", line=False):
        x.astype("bfloat16").__dlpack__(max_version=(1, 0))
    with fails(TypeError, "symbol", line=False):
        nnc.var_arr("s", (2,)).__dlpack__()


def test_deferred_tensors_are_computed_for_dlpack(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
    np.testing.assert_array_equal(np.from_dlpack(y), HOST * 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("writeable", [True, False])
def test_from_dlpack_takes_numpy_as_it_is(device: str, layout: str, writeable: bool) -> None:
    a = LAYOUTS[layout](HOST.copy())
    a.flags.writeable = writeable and a.flags.writeable
    x = nnc.from_dlpack(a)
    np.testing.assert_array_equal(x.numpy(), a)
    np.testing.assert_array_equal((x * 2).numpy(), a * 2)
    assert x._value.borrowed is shares_memory(device)
    y = nnc.from_dlpack(a, copy=True)
    assert not y._value.borrowed
    np.testing.assert_array_equal(y.numpy(), a)


class Foreign:
    """An array of another library."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, *, dl_device: Any = None, **options: Any) -> Any:
        if self.device != (1, 0) and dl_device != (1, 0):
            raise BufferError("this memory is not the host's")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_from_dlpack_takes_other_libraries(device: str) -> None:
    a = HOST.copy()
    x = nnc.from_dlpack(Foreign(a[:, ::-1]))
    np.testing.assert_array_equal(x.numpy(), HOST[:, ::-1])
    a[...] = -1
    assert (x.numpy() == (-1 if shares_memory(device) else HOST[:, ::-1])).all()
    np.testing.assert_array_equal(nnc.from_dlpack(Foreign(HOST, (2, 0)), device=device).numpy(), HOST)
    assert nnc.asarray(Foreign(HOST)).tolist() == HOST.tolist(), "asarray copies"


def test_from_dlpack_of_a_tensor_is_its_value(x: nnc.Tensor, device: str) -> None:
    assert nnc.from_dlpack(x)._value is x._value and nnc.from_dlpack(x, device="strict:0").device.id == "strict:0"


def test_from_dlpack_says_what_it_cannot_take(device: str) -> None:
    with fails(TypeError, "__dlpack__", "nnc.asarray", line=False):
        nnc.from_dlpack([1, 2])
    with fails(BufferError, "Foreign", line=False):
        nnc.from_dlpack(Foreign(np.ones(2, ml_dtypes.bfloat16)))
    with fails(AttributeError, "no __dlpack__", line=False):
        nnc.from_dlpack(2)
    with fails(TypeError, "complex256", line=False):
        nnc.from_dlpack(np.ones(2, np.clongdouble))
    if not shares_memory(device):
        with fails(ValueError, device, line=False):
            nnc.from_dlpack(HOST, copy=False)


def test_values_know_whether_they_are_borrowed(sharing: str) -> None:
    assert nnc.asarray(HOST, copy=False)._value.borrowed and not nnc.asarray(HOST)._value.borrowed
    assert type((nnc.asarray(HOST, copy=False) + 1)._value) is Value


def test_numbers_are_formatted_as_pythons(device: str) -> None:
    x = nnc.asarray([1.0, 2.5])
    assert f"{x[1]:.3f} {x.sum():>6.1f} {nnc.asarray(3):04d}" == "2.500    3.5 0003"
    assert f"{x}" == str(x) and f"{x[0]}" == str(x[0])
    with pytest.raises(TypeError):
        f"{x:.3f}"
    with pytest.raises(TypeError):
        nnc.jit(lambda y: (f"{y.sum():.1f}", y)[1])(x)

"""Arrays that go to other libraries and come from them without a copy.  NumPy reads the memory of the driver of these
tests, so that it is one of them; streams that nobody waits for show what was not ordered."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ExchangeError
from nnc_core.stacks import Stack, make_stack
from nnc_cuda import dlpack
from nnc_cuda.device import CudaDevice
from tests.cuda.host_driver import LEGACY, HostDriver

HOST = np.arange(12, dtype=np.float32).reshape(3, 4)
DTYPES = ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.fixture
def stack(device: CudaDevice) -> Iterator[Stack]:
    made = make_stack(device)
    with nnc.use_device(made):
        yield made


_callbacks: list[Any] = []
"""Functions that C calls, maybe later than anybody remembers them."""


class Lent:
    """An array of NumPy's in the memory of the device, as other libraries hand it out."""

    def __init__(self, array: Any, driver: HostDriver, versioned: bool = True) -> None:
        self.array, self.driver, self.versioned = array, driver, versioned
        self.stream: int | None = None
        self.given_back = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.driver.exchange

    def __dlpack__(self, stream: int, **options: Any) -> Any:
        if options and not self.versioned:
            raise TypeError("unknown options")
        self.stream = stream
        found = self.array.__dlpack__(max_version=(1, 0) if self.versioned else None)
        name = dlpack.VERSIONED if self.versioned else dlpack.PLAIN
        address = dlpack._GetPointer(id(found), name)
        managed: Any = dlpack.STRUCTURES[name].from_address(address)
        managed.dl_tensor.device = dlpack.DLDevice(*self.driver.exchange)
        kept = dlpack.Deleter(ctypes.cast(managed.deleter, ctypes.c_void_p).value)  # the field itself is replaced

        @dlpack.Deleter
        def end(address: int) -> None:
            self.given_back += 1
            kept(address)

        managed.deleter = end
        _callbacks.append((end, kept))
        return found


class Interface:
    """The same by `__cuda_array_interface__`."""

    def __init__(self, address: int, array: Any, stream: int | None = None) -> None:
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (address, False), "version": 3, "stream": stream}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_others_are_read_where_they_lie(stack: Stack, driver: HostDriver, name: str, versioned: bool) -> None:
    dtype = nnc.asarray([0], dtype=name).dtype
    if name == "bfloat16":
        pytest.skip("NumPy hands none out")
    host = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    other = Lent(host, driver, versioned)
    x = nnc.from_dlpack(other)
    assert x.dtype == dtype and (x.numpy() == host).all() and other.stream == stack.device.default_stream.handle
    host[...] = 1
    assert (x.numpy() == 1).all(), "it was copied"
    y = nnc.asarray(other)
    host[...] = 0
    assert (y.numpy() == 1).all(), "it was not copied"


@pytest.mark.parametrize("of", [lambda a: a.T, lambda a: a[::-1, ::-2], lambda a: a[1:1], lambda a: a[1, 2, ...],
                                lambda a: np.broadcast_to(a[0], (2, 4))])  # fmt: skip
def test_arrays_that_lie_otherwise(stack: Stack, driver: HostDriver, of: Any) -> None:
    x = nnc.from_dlpack(Lent(of(HOST.copy()), driver, versioned=True))
    np.testing.assert_array_equal((x + 0).numpy(), of(HOST))


def test_memory_goes_back_when_work_on_it_is_done(stack: Stack, driver: HostDriver) -> None:
    host = HOST.copy()
    other = Lent(host, driver)
    x = nnc.from_dlpack(other)
    y = x + 1
    del x
    gc.collect()
    stack.device.default_stream._settle()
    assert not other.given_back, "the sum has not begun"
    np.testing.assert_array_equal(y.numpy(), HOST + 1)
    stack.device.default_stream.synchronize()
    assert other.given_back == 1


def test_interfaces_of_cuda_arrays(stack: Stack, driver: HostDriver) -> None:
    address, theirs = driver.allocate(HOST.nbytes), driver.new_stream()
    driver.copy(address, HOST.ctypes.data, HOST.nbytes, theirs)
    x = nnc.asarray(Interface(address, HOST, theirs), copy=False)
    np.testing.assert_array_equal(x.numpy(), HOST)
    ctypes.memset(address, 0, HOST.nbytes)
    assert not x.numpy().any(), "it was copied"
    with pytest.raises(nnc.errors.Error):
        nnc.asarray(Interface(1 << 40, HOST), copy=False)
    del x
    gc.collect()
    stack.device.default_stream.synchronize()
    driver.free(address)


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bfloat16"])
def test_tensors_are_lent_read_only(stack: Stack, driver: HostDriver, name: str) -> None:
    t = nnc.asarray([[0, 1], [2, 3]], dtype=name)
    assert t.__dlpack_device__() == driver.exchange
    view = np.from_dlpack(t)
    driver.synchronize(LEGACY)
    assert not view.flags.writeable and view.dtype == t.dtype
    np.testing.assert_array_equal(view, np.array([[0, 1], [2, 3]]).astype(t.dtype))
    assert view.ctypes.data == t.__cuda_array_interface__["data"][0]


def test_bfloat16_has_a_name_in_dlpack_alone(stack: Stack) -> None:
    t = nnc.asarray([1, 2], dtype="bfloat16")
    memory, owner = dlpack.taken(t.__dlpack__(max_version=(1, 0)))
    assert memory.dtype == t.dtype and memory.shape == (2,) and owner is not None
    assert not hasattr(t, "__cuda_array_interface__")


def test_who_knows_nothing_of_read_only_memory_gets_a_copy(stack: Stack, driver: HostDriver) -> None:
    t = nnc.asarray(HOST)
    memory, owner = dlpack.taken(t.__dlpack__())
    assert memory.address != t.__cuda_array_interface__["data"][0]
    driver.synchronize(LEGACY)
    assert ctypes.string_at(memory.address, HOST.nbytes) == HOST.tobytes()
    with pytest.raises(ExchangeError, match="without a copy"):
        t.__dlpack__(copy=False)
    del owner


def test_the_other_s_stream_waits_and_is_waited_for(stack: Stack, driver: HostDriver) -> None:
    device = stack.device
    t = nnc.asarray(HOST) * 2
    theirs, seen = driver.new_stream(), np.zeros_like(HOST)
    memory, owner = dlpack.taken(t.__dlpack__(stream=theirs, max_version=(1, 0)))
    driver.copy(seen.ctypes.data, memory.address, HOST.nbytes, theirs)
    del t, owner
    gc.collect()
    for _ in range(4):  # whatever comes into that memory now
        later = nnc.zeros((3, 4)) + 7
        assert (later.numpy() == 7).all()
    driver.synchronize(theirs)
    np.testing.assert_array_equal(seen, HOST * 2)
    assert device.pool.used < 1 << 20


def test_capsules_that_nobody_takes_give_memory_back(stack: Stack) -> None:
    t = nnc.asarray(HOST)
    before = len(dlpack._lent)
    for versioned in (True, False):
        capsule = t.__dlpack__(max_version=(1, 0) if versioned else None)
        assert len(dlpack._lent) == before + 1
        del capsule
        gc.collect()
        assert len(dlpack._lent) == before


def test_what_is_no_tensor_for_this_device(stack: Stack) -> None:
    t = nnc.asarray(HOST)
    with pytest.raises(ExchangeError, match="stream 0"):
        t.__dlpack__(stream=0, max_version=(1, 0))
    capsule = t.__dlpack__(max_version=(1, 0))
    dlpack.taken(capsule)
    with pytest.raises(ExchangeError, match="taken before"):
        dlpack.taken(capsule)


def test_host_memory_where_it_is_asked_for(stack: Stack) -> None:
    t = nnc.asarray(HOST)
    np.testing.assert_array_equal(np.from_dlpack(t, device="cpu"), HOST)
    with pytest.raises(ExchangeError):
        t.__dlpack__(dl_device=(7, 0))

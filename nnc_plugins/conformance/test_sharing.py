"""Host memory that a device takes as it is, and memory that it shows to the host: only read, and only if offered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack
from nnc_core.values.value import Borrowed
from nnc_plugins.conformance.case import Array
from nnc_plugins.conformance.running import applied, downloaded

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "packed": lambda a: a, "backwards": lambda a: a[::-1, ::-1], "transposed": lambda a: a.T,
    "spread": lambda a: a[1:, ::2], "broadcast": lambda a: np.broadcast_to(a[0], (3, 5)),
    "scalar": lambda a: a[1, 1, ...], "nothing": lambda a: a[:0],
}  # fmt: skip


def _host(name: str) -> Array:
    return LAYOUTS[name](np.arange(20, dtype=np.float32).reshape(4, 5))


def _adopted(stack: Stack, host: Array) -> Array:
    array: Array | None = stack.device.adopt(host)
    if array is None:
        pytest.skip("the device does not compute in the host's memory, and says so")
    return array


@pytest.mark.parametrize("name", LAYOUTS)
def test_adopted_arrays_are_read_where_they_lie(stack: Stack, name: str) -> None:
    host = _host(name)
    array = _adopted(stack, host)
    assert tuple(array.shape) == host.shape and array.dtype == host.dtype
    assert (stack.engine.executor.download(array) == host).all()
    doubled = applied(stack, OPERATORS["add"], [Borrowed(array, stack)] * 2, ())
    assert (downloaded(stack, doubled) == host + host).all()
    if host.size and name != "broadcast":
        host[...] = -3
        assert (stack.engine.executor.download(array) == -3).all(), "it was copied"


def test_adopted_memory_is_not_written(stack: Stack) -> None:
    host = _host("packed")
    host.flags.writeable = False
    array = _adopted(stack, host)
    assert (stack.engine.executor.download(array) == host).all(), "read-only arrays are taken as well"
    copy = stack.engine.executor.duplicate(array)
    stack.device.fill(stack.device.buffer_of(copy), b"\0").wait()
    assert (host == _host("packed")).all(), "a copy has memory of its own"


@pytest.mark.parametrize("host", [np.arange(3, dtype=">f4"), np.zeros(9, np.uint8)[1:].view(np.float32)],
                         ids=["byte order", "unaligned"])  # fmt: skip
def test_what_kernels_cannot_read_is_not_adopted(stack: Stack, host: Array) -> None:
    assert stack.device.adopt(host) is None


def test_exposed_memory_is_read_only(stack: Stack) -> None:
    host = _host("packed")
    array = stack.engine.executor.upload(host)
    seen = stack.device.expose(array)
    if seen is None:
        pytest.skip("the host cannot see this device's memory, and the device says so")
    stack.device.default_stream.synchronize()
    assert not seen.flags.writeable and seen.shape == host.shape and seen.dtype == host.dtype
    assert (seen == host).all()
    stack.device.fill(stack.device.buffer_of(array), b"\0").wait()
    assert not seen.any(), "it was copied"


def test_a_device_that_adopts_exposes(stack: Stack) -> None:
    """The host must be able to tell whether a result lies in memory that was adopted."""
    host = _host("packed")
    array = _adopted(stack, host)
    seen = stack.device.expose(array)
    assert seen is not None and np.shares_memory(seen, host)

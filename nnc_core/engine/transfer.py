"""Arrays from one device to another: the host waits for neither where their streams let it."""

from __future__ import annotations

import numpy as np

from nnc_core.base.layout import Layout
from nnc_core.device import Array, Device, DirectCopy, HostArray
from nnc_core.engine.execute import Executor, for_the_users_line


@for_the_users_line
def transfer(array: Array, source: Executor, target: Executor, direct: DirectCopy | None) -> Array:
    """A packed copy on the target's device: by `direct` if there is one and it can, else by way of the host's memory.

    Whatever comes later on the default streams of the two devices comes after it; errors of the source's work are
    raised where the host waits for the copy.
    """
    moved = None if direct is None else _moved_directly(array, source, target.device, direct)
    if moved is not None:
        return moved
    seen = source.device.expose(array)
    if seen is not None:
        source.device.default_stream.synchronize()
        return _uploaded(np.array(seen, order="C"), target.device)
    return _by_the_host(source.pack(array), source.device, target.device)


def _moved_directly(array: Array, source: Executor, target: Device, direct: DirectCopy) -> Array | None:
    packed = source.pack(array)
    layout = source.device.layout_of(packed)
    buffer = target.allocate(max(layout.nbytes, 1))
    target.default_stream.wait(source.device.default_stream.record())
    event = direct(source.device.buffer_of(packed), buffer, layout.nbytes)
    if event is NotImplemented:
        return None
    source.device.default_stream.wait(event)  # nothing overwrites what is still read
    return target.array(buffer, Layout.packed(layout.shape, layout.dtype))


def _by_the_host(packed: Array, source: Device, target: Device) -> Array:
    layout = source.layout_of(packed)
    host = np.empty(layout.shape, layout.dtype)
    target.default_stream.wait(source.download(source.buffer_of(packed), host))
    return _uploaded(host, target)


def _uploaded(host: HostArray, target: Device) -> Array:
    """An array of host memory that nobody else knows, so that its upload need not be waited for."""
    buffer = target.allocate(max(host.nbytes, 1))
    target.upload(host, buffer)
    return target.array(buffer, Layout.packed(host.shape, host.dtype))

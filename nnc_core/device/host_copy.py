"""Host arrays on their way to a device and back: for devices that copy bytes."""

from __future__ import annotations

from nnc_core.base.errors import DeviceError, OutOfRangeError
from nnc_core.device.buffer import Buffer
from nnc_core.device.device import HostArray


def check_host_copy(array: HostArray, buffer: Buffer, device: str) -> None:
    """Raise DeviceError for a host array that is not in C order, OutOfRangeError for one larger than the buffer."""
    if not array.flags.c_contiguous:
        raise DeviceError(f"a host array with strides {array.strides}, expected C order", device=device,
                          hint="numpy.ascontiguousarray")
    if array.nbytes > buffer.nbytes:
        raise OutOfRangeError(f"a host array of {array.nbytes} bytes beside a buffer of {buffer.nbytes}", device=device)

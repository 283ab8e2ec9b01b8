"""Errors of CUDA as errors of nnc."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnc_core.base.errors import DeviceFailureError, DeviceLostError, DeviceMemoryError, Error
from nnc_cuda.driver import CudaError

OUT_OF_MEMORY = 2
LOST = frozenset({46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 911, 999})
"""Statuses after which a process gets nothing else from CUDA, a device that is opened again included: a device that is
not available, uncorrectable memory or links, an address or an instruction that is none, a kernel that ran too long, and
what CUDA calls sticky beside."""


def failure(action: str, error: CudaError, device: str) -> Error:
    """The meaning of `error`, raised while doing `action`."""
    text = f"{action} failed: {error.text}"
    if error.code == OUT_OF_MEMORY:
        return DeviceMemoryError(text, device=device, hint="free buffers, or use smaller batches")
    if error.code in LOST:
        return DeviceLostError(text, device=device, hint="start the program again, from a checkpoint if there is one: "
                               "CUDA does nothing more in this process")
    return DeviceFailureError(text, device=device, hint="`nnc devices` examines the driver")


@contextmanager
def explained(action: str, device: str) -> Iterator[None]:
    """Raise what CUDA says meanwhile as an error of the device."""
    try:
        yield
    except CudaError as error:
        raise failure(action, error, device) from error

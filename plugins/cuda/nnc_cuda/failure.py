"""Errors of CUDA as errors of nnc."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnc_core.base.errors import DeviceFailureError, DeviceLostError, DeviceMemoryError, Error
from nnc_cuda.driver import CudaError

OUT_OF_MEMORY = 2
LOST = frozenset({46, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999})
"""Statuses after which a context does nothing any more: a device that is not available, uncorrectable memory, an
address or an instruction that is none, a kernel that ran too long, and what CUDA calls sticky beside."""


def failure(action: str, error: CudaError, device: str) -> Error:
    """The meaning of `error`, raised while doing `action`."""
    text = f"{action} failed: {error.text}"
    if error.code == OUT_OF_MEMORY:
        return DeviceMemoryError(text, device=device, hint="free buffers, or use smaller batches")
    if error.code in LOST:
        return DeviceLostError(text, device=device, hint=f"nnc.reopen({device!r}); what lay in its memory is lost")
    return DeviceFailureError(text, device=device, hint="`nnc devices` examines the driver")


@contextmanager
def explained(action: str, device: str) -> Iterator[None]:
    """Raise what CUDA says meanwhile as an error of the device."""
    try:
        yield
    except CudaError as error:
        raise failure(action, error, device) from error

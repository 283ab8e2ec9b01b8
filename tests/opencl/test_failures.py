"""Meanings of the driver's statuses."""

from __future__ import annotations

import pytest

cl = pytest.importorskip("pyopencl")

from nnc_core.base.errors import DeviceFailureError, DeviceLostError, DeviceMemoryError  # noqa: E402
from nnc_opencl.failure import failure_of_code  # noqa: E402


@pytest.mark.parametrize(("name", "meaning"), [
    ("DEVICE_NOT_AVAILABLE", DeviceLostError), ("INVALID_CONTEXT", DeviceLostError),
    ("OUT_OF_HOST_MEMORY", DeviceMemoryError), ("INVALID_VALUE", DeviceFailureError),
])
def test_a_status_has_its_class(name: str, meaning: type[Exception]) -> None:
    error = failure_of_code("launching", getattr(cl.status_code, name), "opencl:3")
    assert type(error) is meaning and error.device == "opencl:3" and name in error.message

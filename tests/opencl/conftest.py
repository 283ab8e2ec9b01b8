"""The first OpenCL device that works; without one these tests are skipped, and pytest says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from nnc_core.base.errors import Error

if TYPE_CHECKING:
    from nnc_opencl.device import OpenCLDevice


def _first_working() -> tuple[OpenCLDevice | None, str]:
    try:
        import nnc_opencl

        offers = list(nnc_opencl.nnc_devices())
    except (ImportError, Error) as error:
        return None, f"{type(error).__name__}: {error}"
    faults = ["no OpenCL platform has a device; `nnc devices` says what to install"]
    for offer in offers:
        try:
            return offer.open(), ""  # type: ignore[return-value]
        except Error as error:
            faults.append(str(error))
    return None, faults[-1]


@pytest.fixture(scope="session")
def _opened() -> Iterator[tuple[OpenCLDevice | None, str]]:
    device, fault = _first_working()
    yield device, fault
    if device is not None:
        device.close()


@pytest.fixture
def device(_opened: tuple[OpenCLDevice | None, str]) -> OpenCLDevice:
    device, fault = _opened
    if device is None:
        pytest.skip(f"no OpenCL device works here: {fault}")
    return device


@pytest.fixture(scope="module", params=["own", "groups"])
def both(_opened: tuple[OpenCLDevice | None, str], request: pytest.FixtureRequest) -> Iterator[OpenCLDevice]:
    """The device with kernels for its type, and with those of GPUs."""
    device, fault = _opened
    if device is None:
        pytest.skip(f"no OpenCL device works here: {fault}")
    if request.param == "own":
        yield device
        return
    from tests.opencl.grouped import grouped  # which needs the driver's package

    made = grouped(device)
    yield made
    made.close()

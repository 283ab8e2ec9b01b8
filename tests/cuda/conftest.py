"""The CUDA plugin's device on the processor; without a C compiler its tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nnc_cuda.cublaslt import CublasLt
from nnc_cuda.device import CudaDevice
from nnc_cuda.vendor import VendorLibraries
from tests.cuda.host_compiler import HostCompiler, compiler
from tests.cuda.host_cublaslt import FakeCublasLt
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_plugin import ID


@pytest.fixture
def driver() -> HostDriver:
    return HostDriver()


@pytest.fixture
def device(driver: HostDriver) -> Iterator[CudaDevice]:
    if compiler() is None:
        pytest.skip("there is no C compiler")
    device = CudaDevice(driver, HostCompiler(), ID)
    yield device
    if driver.sick is None:
        device.close()


@pytest.fixture(scope="module")
def gpu() -> Iterator[CudaDevice]:
    """One for all tests of a file, which share code."""
    if compiler() is None:
        pytest.skip("there is no C compiler")
    device = CudaDevice(HostDriver(), HostCompiler(), ID)
    yield device
    device.close()


@pytest.fixture
def fake(driver: HostDriver) -> FakeCublasLt:
    return FakeCublasLt(driver)


@pytest.fixture
def with_library(driver: HostDriver, fake: FakeCublasLt) -> CudaDevice:
    """A device that has the vendor's library of products."""
    if compiler() is None:
        pytest.skip("there is no C compiler")
    return CudaDevice(driver, HostCompiler(), ID, VendorLibraries(lambda driver: CublasLt(driver, fake)))

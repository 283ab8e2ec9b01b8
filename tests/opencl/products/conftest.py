"""Compilers of products for the device of these tests: for CPUs, and for devices that run groups of work items."""

from __future__ import annotations

import pytest

from nnc_opencl.device import OpenCLDevice
from nnc_opencl.products.kernel import TiledCompiler
from nnc_opencl.programs import ProgramBuilder


@pytest.fixture(scope="session")
def _compilers(_opened: tuple[OpenCLDevice | None, str]) -> dict[str, TiledCompiler]:
    device, _ = _opened
    if device is None:
        return {}
    builder = ProgramBuilder(device.default_stream.context, device.spec, grouped=False)
    return {way: TiledCompiler(builder, device.default_stream, way == "groups") for way in ("tiles", "groups")}


@pytest.fixture(params=["tiles", "groups"])
def compiler(request: pytest.FixtureRequest, device: OpenCLDevice,
             _compilers: dict[str, TiledCompiler]) -> TiledCompiler:
    """Kernels for GPUs run on CPUs too, so that their values are looked at."""
    return _compilers[request.param]

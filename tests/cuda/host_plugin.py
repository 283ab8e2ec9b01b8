"""The CUDA plugin's device on the processor, as a plugin: `cudahost:0`."""

from __future__ import annotations

from collections.abc import Iterable

from nnc_cuda.device import CudaDevice
from nnc_plugins import API, DeviceOffer, PluginInfo, hookimpl
from tests.cuda.host_compiler import HostCompiler
from tests.cuda.host_driver import HostDriver

ID = "cudahost:0"


@hookimpl
def nnc_plugin_info() -> PluginInfo:
    return {"name": "cudahost", "api": API, "kinds": ("cudahost",)}


@hookimpl
def nnc_devices() -> Iterable[DeviceOffer]:
    return [DeviceOffer(ID, lambda: CudaDevice(HostDriver(), HostCompiler(), ID), "CUDA C on the processor", ID)]

"""The CUDA plugin's device on the processor, as a plugin: `cudahost:0`, with stand-ins for NVIDIA's libraries."""

from __future__ import annotations

from collections.abc import Iterable

from nnc_cuda.cublaslt import CublasLt
from nnc_cuda.device import CudaDevice
from nnc_cuda.dnn.cudnn import Cudnn
from nnc_cuda.fourier.cufft import Cufft
from nnc_cuda.matrices.cusolver import Cusolver
from nnc_cuda.vendor import VendorLibraries
from nnc_plugins import API, DeviceOffer, PluginInfo, hookimpl
from tests.cuda.host_compiler import HostCompiler
from tests.cuda.host_cublas import FakeCublas
from tests.cuda.host_cublaslt import FakeCublasLt
from tests.cuda.host_cudnn import FakeCudnn
from tests.cuda.host_cufft import FakeCufft
from tests.cuda.host_cusolver import FakeCusolver
from tests.cuda.host_driver import HostDriver

ID = "cudahost:0"


@hookimpl
def nnc_plugin_info() -> PluginInfo:
    return {"name": "cudahost", "api": API, "kinds": ("cudahost",)}


@hookimpl
def nnc_devices() -> Iterable[DeviceOffer]:
    return [DeviceOffer(ID, opened, "CUDA C on the processor", ID)]


def opened() -> CudaDevice:
    driver = HostDriver()
    libraries = VendorLibraries(
        lambda _: CublasLt(driver, FakeCublasLt(driver)),
        lambda _: Cusolver(driver, FakeCusolver(driver), FakeCublas(driver)),
        lambda _: Cufft(driver, FakeCufft(driver)),
        lambda _: Cudnn(driver, FakeCudnn(driver)))
    return CudaDevice(driver, HostCompiler(), ID, libraries)

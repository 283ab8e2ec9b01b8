"""NVIDIA's GPUs as devices of nnc, through CuPy and NVRTC; see `nnc_cuda.device` for the device itself.

The hooks below are all that nnc calls.  CuPy is imported when devices are listed, not before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import partial
from importlib import metadata, util
from typing import TYPE_CHECKING

from nnc_plugins import DeviceOffer, PluginInfo, hookimpl

if TYPE_CHECKING:
    from nnc_core.device import Device, DirectCopy

__all__ = ["nnc_devices", "nnc_diagnose", "nnc_plugin_info", "nnc_transfer"]


@hookimpl
def nnc_plugin_info() -> PluginInfo:
    return {"name": "cuda", "api": (1, 0), "version": _version(), "kinds": ("cuda",)}


@hookimpl
def nnc_devices() -> Iterable[DeviceOffer]:
    """All devices of the driver; none without CuPy or a driver."""
    if util.find_spec("cupy_backends") is None:
        return []
    from nnc_cuda.cupy_driver import CuPyDriver, device_count

    offers = []
    for number in range(device_count()):
        facts = CuPyDriver(number).facts()
        text = "{} (compute capability {}.{}, driver {})".format(facts.name, *facts.capability, facts.version)
        uid = "cuda:" + "/".join(map(_plain, (facts.name, facts.bus)))
        offers.append(DeviceOffer(f"cuda:{number}", partial(_open, number, f"cuda:{number}"), text, uid))
    return offers


@hookimpl
def nnc_transfer(source: Device, target: Device) -> DirectCopy | None:
    """From one GPU to another."""
    opened = sys.modules.get("nnc_cuda.device")
    if opened is None or not all([isinstance(device, opened.CudaDevice) for device in (source, target)]):
        return None
    return target.copy_from(source)  # type: ignore[attr-defined, no-any-return]


@hookimpl
def nnc_diagnose() -> Iterable[str]:
    from nnc_cuda.diagnosis import diagnosis

    return diagnosis()


def _open(number: int, id: str) -> Device:
    from nnc_cuda.cublaslt import open_blas
    from nnc_cuda.cupy_driver import CuPyDriver
    from nnc_cuda.device import CudaDevice
    from nnc_cuda.dnn.cudnn import open_dnn
    from nnc_cuda.fourier.cufft import open_fourier
    from nnc_cuda.matrices.cusolver import open_lapack
    from nnc_cuda.nvrtc import NVRTC
    from nnc_cuda.vendor import VendorLibraries

    driver = CuPyDriver(number)
    libraries = VendorLibraries(open_blas, open_lapack, open_fourier, open_dnn)
    return CudaDevice(driver, NVRTC(driver.facts().capability), id, libraries)


def _plain(text: str) -> str:
    """Words of letters and digits."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _version() -> str:
    try:
        return metadata.version("nnc-cuda")
    except metadata.PackageNotFoundError:  # a source tree on the path
        return "unknown"

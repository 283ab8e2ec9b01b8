"""OpenCL devices of nnc through PyOpenCL; see `nnc_opencl.device` for the device itself.

The hooks below are all that nnc calls.  PyOpenCL is imported when devices are listed, not before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

from nnc_plugins import DeviceOffer, PluginInfo, hookimpl

if TYPE_CHECKING:
    import pyopencl as cl

    from nnc_core.device import Device

__all__ = ["nnc_devices", "nnc_diagnose", "nnc_plugin_info"]


@hookimpl
def nnc_plugin_info() -> PluginInfo:
    return {"name": "opencl", "api": (1, 0), "version": _version(), "kinds": ("opencl",)}


@hookimpl
def nnc_devices() -> Iterable[DeviceOffer]:
    """All devices of all platforms; nothing is built before one is opened."""
    from nnc_opencl.drivers import describe, list_devices, require_installed_runtime, stable_names

    devices = list_devices()
    if not devices:
        require_installed_runtime()
    ids = [f"opencl:{place}" for place in range(len(devices))]
    return [DeviceOffer(i, partial(_open, d, i), describe(d), uid)
            for i, d, uid in zip(ids, devices, stable_names(devices), strict=True)]


@hookimpl
def nnc_diagnose() -> Iterable[str]:
    from nnc_opencl.drivers import diagnosis

    return diagnosis()


def _open(device: cl.Device, id: str) -> Device:
    from nnc_opencl.device import open_device

    return open_device(device, id)


def _version() -> str:
    try:
        return metadata.version("nnc-opencl")
    except metadata.PackageNotFoundError:  # a source tree on the path
        return "unknown"

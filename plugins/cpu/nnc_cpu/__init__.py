"""The CPU device of nnc.  Importing it loads no kernel: those come when the device is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nnc_plugins import API, DeviceOffer, PluginInfo, hookimpl

if TYPE_CHECKING:
    from nnc_core.device import Device

__version__ = "0.1.0"
__all__ = ["nnc_devices", "nnc_diagnose", "nnc_plugin_info", "open_device"]


def open_device() -> Device:
    """The device cpu:0."""
    from nnc_cpu.device import CpuDevice

    return CpuDevice()


@hookimpl
def nnc_plugin_info() -> PluginInfo:
    return {"name": "cpu", "api": API, "version": __version__, "kinds": ("cpu",)}


@hookimpl
def nnc_devices(options: Mapping[str, Any]) -> Iterable[DeviceOffer]:
    from nnc_cpu.host import processor_name

    return [DeviceOffer("cpu:0", open_device, processor_name())]


@hookimpl
def nnc_diagnose(options: Mapping[str, Any]) -> Iterable[str]:
    from nnc_cpu.host import diagnosis

    return diagnosis()

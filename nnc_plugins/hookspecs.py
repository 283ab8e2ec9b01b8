"""What a plugin may implement: seven hooks, all optional, each called with keyword arguments.

A plugin is a module (or any object) named by an entry point in the group `nnc.plugins.v1`; it marks its
functions with `hookimpl`.  An implementation takes any subset of a hook's arguments.  Within one API major,
hooks and arguments are only ever added.  Hooks are called while nnc finds out what there is, never once per
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import pluggy

if TYPE_CHECKING:
    from nnc_core.device import Device

PROJECT = "nnc"
API = (1, 0)
"""(major, minor) of the plugin API that this version offers."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class DeviceOffer:
    """A device that a plugin can open.

    `id` is kind and number, such as "cpu:0"; `open` makes the device, so that merely listing devices takes
    none of their memory; `describe` is what a person reads, such as the name that the driver gives.
    """

    id: str
    open: Callable[[], Device]
    describe: str = ""


class PluginInfo(TypedDict):
    """Who a plugin is."""

    name: str
    api: tuple[int, int]
    """The lowest (major, minor) of the plugin API that the plugin needs."""
    version: NotRequired[str]
    url: NotRequired[str]


@hookspec
def nnc_plugin_info() -> PluginInfo:
    """Return a mapping with `name` and `api` (the lowest plugin API needed, such as `(1, 0)`), and, if you
    like, `version` and `url`.  Called once, after import: touch no driver."""
    raise NotImplementedError


@hookspec
def nnc_devices(options: Mapping[str, Any]) -> Iterable[DeviceOffer]:
    """Return (or yield) one DeviceOffer for each device that is present, the best first; maybe none.

    `options` are the settings of core, read-only.  The driver may be asked what there is; contexts, memory
    and compilers belong in `DeviceOffer.open`.  Raise if the driver is there and broken: the message becomes
    the plugin's line in `nnc devices`.
    """
    raise NotImplementedError


@hookspec
def nnc_register(registry: Any) -> None:
    """Add operators and kernels to `registry`; return nothing.  Called once for each registry."""
    raise NotImplementedError


@hookspec
def nnc_passes(pipeline: Any) -> None:
    """Add rewrites to the optimiser's `pipeline`; return nothing.  Called once for each pipeline."""
    raise NotImplementedError


@hookspec(firstresult=True)
def nnc_transfer(src: Device, dst: Device) -> Callable[..., Any] | None:
    """Return a function `copy(src_buffer, dst_buffer, stream=None)` that copies a buffer of device `src` into
    one of device `dst` without passing through the host and returns an Event of `dst`; None if you know no
    such way.

    The first answer that is not None is used, for all copies between the two devices.
    """
    raise NotImplementedError


@hookspec
def nnc_diagnose(options: Mapping[str, Any]) -> Iterable[str]:
    """Return lines of text for a person: versions of drivers and libraries, and, if there is no device or
    something fails, why, and what to install.

    Called by `nnc devices` in a process of its own, also after `nnc_devices` has failed.
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def nnc_communicator(transport: str, devices: Sequence[Device]) -> Any | None:
    """Return a communicator over `devices` that speaks `transport` (such as "mpi"); None if you have none.

    The first answer that is not None is used.
    """
    raise NotImplementedError

"""The hooks that a plugin may implement: six, all optional, each called with keyword arguments.

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
    from nnc_core.device import Device, DirectCopy
    from nnc_core.extensions import BackendRegistry, Pipeline

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
    uid: str = ""
    """A name that stays when other drivers and devices come and go, as numbers do not: kind, vendor, driver and name,
    such as "opencl:intel-corporation/intel-opencl/xeon".  Users may say a word of it: "opencl:intel"."""
    testing: bool = False
    """For tests alone: used when it is named, listed on request only."""


class PluginInfo(TypedDict):
    """The identity of a plugin."""

    name: str
    api: tuple[int, int]
    """The lowest (major, minor) of the plugin API that the plugin needs."""
    version: NotRequired[str]
    url: NotRequired[str]
    kinds: NotRequired[Sequence[str]]
    """The kinds of all devices that it offers, such as ("opencl",): it is asked for them, and loads its driver, only
    when one of these or everything that there is is looked for."""


@hookspec
def nnc_plugin_info() -> PluginInfo:
    """Return a mapping with `name` and `api` (the lowest plugin API needed, such as `(1, 0)`), and, if you
    like, `version` and `url`.  Called once, after import: touch no driver."""
    raise NotImplementedError


@hookspec
def nnc_devices(options: Mapping[str, Any]) -> Iterable[DeviceOffer]:
    """Return (or yield) one DeviceOffer for each device that is present, the best first; maybe none.

    `options` are the settings of core, read-only, as they are when plugins are first needed: `arena_limit`,
    `autotune`, `cache_folder`, `cache_limit`, `check_indices`, `check_nan`, `compile_at_once`, `default_device`,
    `default_float`, `deterministic`, `eager`, `fallback`, `fusion`, `implicit_compute`, `matmul_precision`,
    `memory_steps`, `threads` and `trace_limit` (see `nnc.config`).  The driver may be asked what there is; contexts,
    memory and compilers belong in `DeviceOffer.open`.
    Raise if the driver is there and broken: the message becomes the plugin's line in `nnc devices`.
    """
    raise NotImplementedError


@hookspec
def nnc_register(registry: BackendRegistry) -> None:
    """Add library code for operators, of the plugin's own devices or of others; return nothing.

    `registry.add_backend(kind, operator, make)`: for every device of that kind, `make(device)` gives a
    `CommandBackend`, which is asked before the device's own.  It may take what is around its operator (`fuses`), and
    want inputs in another order (`wants`).  Called once; if it raises, nothing of what it added counts, and the plugin
    is used no further.
    """
    raise NotImplementedError


@hookspec
def nnc_passes(pipeline: Pipeline) -> None:
    """Add rewrites of graphs, which apply on every device; return nothing.

    `pipeline.rewrite(name, *operators, tag="simplify", exact=True, once="")` decorates a rule(F, node).
    Called once; if it raises, none of its rewrites counts.
    """
    raise NotImplementedError


@hookspec
def nnc_transfer(source: Device, target: Device) -> DirectCopy | None:
    """Return a function that copies bytes between these two devices without the host's memory; None for others.

    `copy(source_buffer, target_buffer, nbytes)` enqueues on `target.default_stream`, which waits for the source by
    then, and returns an event behind the copy, or NotImplemented for what it cannot do, which then goes by way of the
    host.  Called once for two devices, at their first transfer.
    """
    raise NotImplementedError


@hookspec
def nnc_diagnose(options: Mapping[str, Any]) -> Iterable[str]:
    """Return lines of text for a person: versions of drivers and libraries, and, if there is no device or
    something fails, why, and what to install.

    Called by `nnc devices` in a process of its own, also after `nnc_devices` has failed.
    """
    raise NotImplementedError

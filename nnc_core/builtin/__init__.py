"""Floor 20: the devices that need no plugin, `strict` and `null`, offered the way a plugin offers its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from nnc_core.builtin.flavours import FLAVOURS
from nnc_core.builtin.null import NullDevice
from nnc_core.builtin.strict import StrictDevice
from nnc_plugins import API, DeviceOffer, PluginInfo, hookimpl

__all__ = ["FLAVOURS", "NullDevice", "StrictDevice"]


@hookimpl
def nnc_plugin_info() -> PluginInfo:
    return {"name": "builtin", "api": API, "kinds": (*(flavour.id.partition(":")[0] for flavour in FLAVOURS), "null")}


@hookimpl
def nnc_devices() -> Iterator[DeviceOffer]:
    """`strict:0`, its flavours, then `null:0`."""
    for flavour in FLAVOURS:
        yield DeviceOffer(flavour.id, partial(StrictDevice, flavour), flavour.description, testing=True)
    yield DeviceOffer("null:0", NullDevice, "plans and counts, computes nothing", testing=True)


@hookimpl
def nnc_diagnose() -> Iterator[str]:
    yield f"strict: interprets loop nests on NumPy {np.__version__}; slow, needs no plugin"

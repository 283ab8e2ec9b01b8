"""Plugins of nnc: the hooks that they implement and the manager that finds them.

Imports nothing of nnc_core, so that either package may be imported first.
"""

from nnc_plugins.hookspecs import API, DeviceOffer, PluginInfo, hookimpl, hookspec
from nnc_plugins.manager import DeviceTable, Manager
from nnc_plugins.marks import Marks
from nnc_plugins.records import PluginRecord, PluginWarning
from nnc_plugins.trials import Trials

__all__ = [
    "API",
    "DeviceOffer",
    "DeviceTable",
    "Manager",
    "Marks",
    "PluginInfo",
    "PluginRecord",
    "PluginWarning",
    "Trials",
    "hookimpl",
    "hookspec",
]

"""Devices that plugins offer: looked at before they are believed, and opened under the plugin's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnc_plugins.hookspecs import DeviceOffer
from nnc_plugins.records import PluginRecord

if TYPE_CHECKING:
    from nnc_core.device import Device

DEVICE_ID = re.compile(r"[a-z][a-z0-9_-]*:\d+")


def checked(offer: Any) -> DeviceOffer:
    """An element of a plugin's `nnc_devices`, if it is an offer; raises TypeError or ValueError otherwise."""
    if not isinstance(offer, DeviceOffer):
        raise TypeError(f"gave {type(offer).__name__} {offer!r:.80}, expected nnc_plugins.DeviceOffer")
    if not isinstance(offer.id, str) or not DEVICE_ID.fullmatch(offer.id):
        raise ValueError(f"gave the device id {offer.id!r}, expected kind and number, such as 'cpu:0'")
    if not callable(offer.open):
        raise TypeError(f"device {offer.id!r}: `open` is {type(offer.open).__name__}, expected a function")
    if not isinstance(offer.uid, str):
        raise TypeError(f"device {offer.id!r}: `uid` is {type(offer.uid).__name__}, expected a text")
    return offer


def words_for(offer: DeviceOffer) -> list[str]:
    """The parts of a device's stable name, and its description: what a user may call it by besides its id."""
    return [part for part in (*str(offer.uid).split("/"), str(offer.describe)) if part]


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens a device; an error says which plugin it comes from."""

    offer: DeviceOffer
    record: PluginRecord

    def __call__(self) -> Device:
        try:
            device = self.offer.open()
            _check_device(device, self.offer.id)
            return device
        except BaseException as error:  # plugins exit, too
            error.add_note(f"{self.offer.id} is offered by plugin {self.record.name} ({self.record.source})")
            raise


def _check_device(device: Any, id: str) -> None:
    """Raise unless what was opened is the device that was offered: another id would take another device's place."""
    found = getattr(getattr(device, "spec", None), "id", None)
    if found is None:
        raise TypeError(f"opening gave {type(device).__name__}, expected a nnc_core.device.Device")
    if found != id:
        raise ValueError(f"the device calls itself {found}")

"""The operators whose library code does more than run them: joins others, or wants inputs in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nnc_core.device import CommandBackend, Device
from nnc_core.operator import OPERATORS


class Abilities(NamedTuple):
    """Names of operators; both empty on most devices, so that nobody has to look at graphs for them."""

    fusing: frozenset[str]
    wanting: frozenset[str]

    @staticmethod
    def of(device: Device) -> Abilities:
        """The abilities of all library code of a device."""
        return Abilities(_names(device, lambda backend: backend.fuses), _names(device, _wants))


def _names(device: Device, able: Callable[[CommandBackend], bool]) -> frozenset[str]:
    return frozenset([name for name in OPERATORS if any(map(able, device.all_backends(name)))])


def _wants(backend: CommandBackend) -> bool:
    return type(backend).wants is not CommandBackend.wants

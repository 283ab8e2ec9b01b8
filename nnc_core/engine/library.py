"""The operators whose library code does more than run them: joins others, wants inputs in another order, or other
operators in place of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nnc_core.device import CommandBackend, Device
from nnc_core.operator import OPERATORS


class Abilities(NamedTuple):
    """Names of operators; all empty on most devices, so that nobody has to look at graphs for them."""

    fusing: frozenset[str]
    wanting: frozenset[str]
    replacing: frozenset[str]

    @staticmethod
    def of(device: Device) -> Abilities:
        """The abilities of all library code of a device."""
        able = (lambda backend: backend.fuses), _wants, _replaces
        return Abilities(*[_names(device, ability) for ability in able])


def _names(device: Device, able: Callable[[CommandBackend], bool]) -> frozenset[str]:
    return frozenset([name for name in OPERATORS if any(map(able, device.all_backends(name)))])


def _wants(backend: CommandBackend) -> bool:
    return type(backend).wants is not CommandBackend.wants


def _replaces(backend: CommandBackend) -> bool:
    return type(backend).instead is not CommandBackend.instead

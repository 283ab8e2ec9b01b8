"""Seconds that the code for a command took on a device, kept on disk from one process to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from nnc_core.base.cache import LRU
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.disk_cache import disk_cache, key_of
from nnc_core.device import DeviceSpec
from nnc_core.engine.pinned_backends import command_key

FORMAT = b"1"
"""Changes with what an entry means, and with how times are measured."""
KEPT = 1 << 13
"""Commands whose times are kept in memory; the oldest go first."""
NO_TIMES: Mapping[str, float] = MappingProxyType({})


def tunes() -> bool:
    """Tell whether measured times decide: never where the same code is to run each time."""
    return bool(config.autotune) and not config.deterministic


class MeasuredTimes:
    """For commands of one device: seconds by the name of the code."""

    def __init__(self, spec: DeviceSpec) -> None:
        self._device = "\n".join([spec.kind, spec.name, spec.vendor, spec.driver]).encode()
        self._known: LRU[Command, Mapping[str, float]] = LRU(KEPT)

    def of(self, command: Command) -> Mapping[str, float]:
        """Times that were measured here or by an earlier process; none if nobody did."""
        known: Mapping[str, float] | None = self._known.get(command)
        if known is None:
            known = self._read(command)
            self._known.put(command, known)
        return known

    def put(self, command: Command, seconds: Mapping[str, float]) -> None:
        """Keep times beside those that are known."""
        found = {**self.of(command), **seconds}
        self._known.put(command, found)
        kept = disk_cache("times")
        if kept is not None:
            kept.write(self._key(command), json.dumps(found).encode())

    def _read(self, command: Command) -> Mapping[str, float]:
        kept = disk_cache("times")
        content = None if kept is None else kept.read(self._key(command))
        return NO_TIMES if content is None else json.loads(content)

    def _key(self, command: Command) -> str:
        return key_of(FORMAT, self._device, command_key(command).encode())

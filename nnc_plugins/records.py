"""Records of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from nnc_plugins.hookspecs import DeviceOffer

State: TypeAlias = Literal[
    "found", "loaded", "ok", "no device", "import failed", "probe failed", "incompatible", "blocked"
]


class PluginWarning(RuntimeWarning):
    """A plugin that is skipped, or something of it that is ignored."""


@dataclass(eq=False, slots=True)
class PluginRecord:
    """One plugin and how far it got.

    `source` is distribution and version; `detail` is one line on the state; `notes` are things of the plugin
    that were ignored although it works; `offers` are the devices it provides.
    """

    name: str
    source: str
    state: State = "found"
    detail: str = ""
    error: BaseException | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    offers: list[DeviceOffer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    place: str = ""
    """The file of its module, or the folder of its package, with a separator at the end; of an object ""."""

    @property
    def usable(self) -> bool:
        """Imported, and no hook needed to set it up has failed."""
        return self.state in ("loaded", "ok", "no device")

    def may_offer(self, kind: str) -> bool:
        """True if there may be devices of a kind among those of the plugin."""
        return kind in self.info.get("kinds", (kind,))

    def is_asked_for(self, kind: str | None) -> bool:
        """True if it names a kind (None: any), or is named like it and names none."""
        return kind is None or kind in self.info.get("kinds", (self.name,))

    @property
    def remarks(self) -> str:
        """Detail and notes in one line."""
        return "; ".join(filter(None, (self.detail, *self.notes)))

    def __str__(self) -> str:
        return f"{self.name} ({self.source}): {self.state}" + (f", {self.remarks}" if self.remarks else "")


def one_line(error: BaseException) -> str:
    """An exception in one line of at most 300 characters."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # an exception of a broken plugin may not even print
        message = "(its message cannot be shown)"
    return f"{type(error).__name__}: {message}"[:300] if message else type(error).__name__

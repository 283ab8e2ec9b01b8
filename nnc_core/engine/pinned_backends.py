"""Backends pinned to commands: a resumed run takes the code that the first one chose, whatever is installed since."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from hashlib import sha256

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError, ResumeWarning
from nnc_core.base.layout import Layout
from nnc_core.base.line import users_frame

NEST, HOST = "loop nest", "host"
"""Names that serve as a backend where there is no library code."""
EXPANDED = "expanded"
"""Instead of a backend: a composite that none takes whole."""


LONGEST = 200
"""Letters of attributes that are written out."""


class PinnedBackends:
    """The backend wanted for each command, by its key; `warned`: a warning has been given already."""

    def __init__(self, device: str, wanted: Mapping[str, str] | None = None, strict: bool = False,
                 warned: bool = False) -> None:
        self.device, self.wanted, self.strict = device, dict(wanted or {}), strict
        self._warned = warned

    def of(self, command: Command) -> str | None:
        """The backend wanted for a command; None where the choice is free."""
        return self.wanted.get(command_key(command)) if self.wanted else None

    def broken(self, command: Command, why: str) -> None:
        """The backend does not take the command: an error in strict use, else one warning for all of them."""
        key = command_key(command)
        text = f"{command} ran by {self.wanted[key]!r} when the run was saved, and cannot now: {why}"
        if self.strict:
            raise NotSupportedError(text, operator=command.name, device=self.device,
                                    hint="install what the run was saved with, or load it with exact=False")
        if not self._warned:
            self._warned = True
            warnings.warn(f"{self.device}: {text}; the run goes on by other code, not bit for bit", ResumeWarning,
                          stacklevel=users_frame())


def command_key(command: Command) -> str:
    """A command as text, the same in every process."""
    sides = [" ".join(map(_layout_key, side)) for side in (command.inputs, command.outputs)]
    attributes = ", ".join(map(repr, command.attributes))
    if len(attributes) > LONGEST:  # a program; the file would be full of them
        attributes = "#" + sha256(attributes.encode()).hexdigest()
    return f"{command.name}({attributes}) {sides[0]} -> {sides[1]}"


def _layout_key(layout: Layout) -> str:
    place = "" if layout.contiguous and not layout.offset else f"@{layout.offset}/{list(layout.strides)}"
    return f"{layout.dtype}{list(layout.shape)}{place}"

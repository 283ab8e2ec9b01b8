"""State in cells: saved, taken over and moved by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from nnc_core.base.errors import NotSupportedError
from nnc_core.values.cell import Cell
from nnc_core.values.state import HostArray, load_state, save_state


class Stateful:
    """Something with `cells`."""

    def cells(self) -> dict[str, Cell]:
        """The state by name."""
        raise NotSupportedError(f"{type(self).__name__} has no cells", hint="define cells(self)")

    def state_dict(self) -> dict[str, HostArray]:
        """The state as host arrays; settings and parameters are not part of it."""
        return save_state(self.cells())

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Take over the state; nothing changes unless all names, shapes and dtypes fit."""
        load_state(self.cells(), arrays, f"the state of {type(self).__name__}")

    def to(self, device: Any) -> Self:
        """Move the state to a device, as the parameters are moved by their module."""
        for cell in self.cells().values():
            cell.move(device)
        return self

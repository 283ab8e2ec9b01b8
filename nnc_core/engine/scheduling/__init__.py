"""The order of commands: several are tried, and the one is taken in which fewest bytes live at once."""

from __future__ import annotations

from nnc_core.engine.scheduling.choose import Arranged, arrange

__all__ = ["Arranged", "arrange"]

"""Tests that a run leaves out are let go as soon as they are made: there are more than ten thousand of them."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest

from tests.sampling import is_left_out

MANY = 1000
"""Tests let go after which the collector looks for them: each is part of a circle."""
_NAME = "nnc_left_out"


class Selection:
    """What a run without slow tests leaves out, and how many."""

    def __init__(self, config: pytest.Config, seed: int) -> None:
        self._seed = seed
        # A test that is asked for by its name is one that pytest must find; what it is told of `-m` it does itself.
        self._early = config.option.markexpr == "not slow" and not any("::" in name for name in config.args)
        self.left_out = 0

    def of(self, made: Sequence[pytest.Item]) -> list[pytest.Item]:
        """Those of a function's tests that run here; what the seed does not draw is marked as slow."""
        for item in made:
            if is_left_out(self._seed, item.nodeid):
                item.add_marker(pytest.mark.slow)
        if not self._early:
            return [*made]
        kept = [item for item in made if item.get_closest_marker("slow") is None]
        self._let_go(len(made) - len(kept))
        return kept

    def _let_go(self, number: int) -> None:
        before, self.left_out = self.left_out, self.left_out + number
        if before // MANY < self.left_out // MANY:
            gc.collect(0)

    def tell(self, config: pytest.Config) -> None:
        """Say how many in a process that xdist started."""
        if hasattr(config, "workeroutput"):
            config.workeroutput[_NAME] = self.left_out

    def hear(self, node: Any) -> None:
        """Take over what such a process said: all leave out the same."""
        self.left_out = max(self.left_out, getattr(node, "workeroutput", {}).get(_NAME, 0))

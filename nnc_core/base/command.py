"""One operator on concrete layouts: all that a backend may look at when it says whether it can run it."""

from __future__ import annotations

from typing import Any, NamedTuple

from nnc_core.base.layout import Layout


class Command(NamedTuple):
    """`attributes` are in the order of the operator's declaration.  Layout offsets are relative to each storage, so a
    prepared command serves any buffers; no arena address is in it."""

    name: str
    attributes: tuple[Any, ...]
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]

    @property
    def output(self) -> Layout:
        """The only output."""
        (layout,) = self.outputs
        return layout

    def __str__(self) -> str:
        sides = [", ".join(f"{x.dtype}{list(x.shape)}" for x in side) for side in (self.inputs, self.outputs)]
        return f"{self.name}({sides[0]}) -> {sides[1]}"

"""The layout of images, sequences and volumes."""

from __future__ import annotations

from typing import Any, ClassVar

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.window_options import padding_for
from nnc_core.nn.layers.checks import check_length, check_rank, one_of, per_axis
from nnc_core.nn.module import Module

LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
"""Layouts by the number of spatial dimensions; the first of each is the default."""


class Windowed(Module):
    """A layer of arrays with a batch, channels and `rank` spatial dimensions, in the order of `layout`."""

    rank: ClassVar[int]
    layout: str

    def _set_layout(self, layout: str | None) -> None:
        self.layout = LAYOUTS[self.rank][0] if layout is None else layout
        one_of(type(self).__name__, "layout", self.layout, LAYOUTS[self.rank])

    def _per_axis(self, name: str, value: Any, least: int = 1) -> tuple[int, ...]:
        return per_axis(type(self).__name__, name, value, self.rank, least)

    def _checked_padding(self, padding: Any) -> Any:
        """As it is given, if it can be understood."""
        ones = (1,) * self.rank
        try:
            padding_for(padding, ones, ones, ones, ones)
        except (AttributeValueError, TypeError):
            raise AttributeValueError(f"padding is {padding!r}, expected 'SAME', 'VALID', a number, or a number or a "
                                      f"pair for each of {self.rank} spatial dimensions",
                                      operator=type(self).__name__) from None
        return padding

    @property
    def channels_last(self) -> bool:
        """Tell whether the channels are the last axis, not the second one."""
        return self.layout.endswith("C")

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return self.layout.index("C")

    def _check(self, x: Any, channels: int | None = None) -> None:
        check_rank(self, x, self.layout)
        if channels is not None:
            check_length(self, x, self.channel_axis, channels, "channels")

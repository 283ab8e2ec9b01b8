"""Strict devices of each flavour, opened anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Stage
from nnc_core.builtin import FLAVOURS, StrictDevice
from nnc_core.builtin.flavours import Flavour

BY_NAME = {flavour.suffix or "plain": flavour for flavour in FLAVOURS}


def opened(name: str) -> StrictDevice:
    return StrictDevice(BY_NAME[name])


def called(id: str, kind: type[StrictDevice] = StrictDevice) -> Callable[[], StrictDevice]:
    """Opens a strict device that goes by another id."""
    flavour: Any = type("Named", (Flavour,), {"__slots__": (), "id": id})()
    return lambda: kind(flavour)


def stray_store(element: int) -> LoopNest:
    """Stores a number to an element that may lie outside."""
    body = (
        Instruction("constant", dt.float32, literal=1.0),
        Instruction("store", dt.float32, (0,), access=Access(0, element, ())),
    )
    return LoopNest("stray", (Argument(dt.float32, True),), (), (Stage((), body),))

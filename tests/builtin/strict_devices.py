"""Strict devices of each flavour, opened anew."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Stage
from nnc_core.builtin import FLAVOURS, StrictDevice

BY_NAME = {flavour.suffix or "plain": flavour for flavour in FLAVOURS}


def opened(name: str) -> StrictDevice:
    return StrictDevice(BY_NAME[name])


def stray_store(element: int) -> LoopNest:
    """Stores a number to an element that may lie outside."""
    body = (
        Instruction("constant", dt.float32, literal=1.0),
        Instruction("store", dt.float32, (0,), access=Access(0, element, ())),
    )
    return LoopNest("stray", (Argument(dt.float32, True),), (), (Stage((), body),))

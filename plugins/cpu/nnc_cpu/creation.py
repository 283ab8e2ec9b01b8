"""Leaves that are computed: one number everywhere, and progressions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of

_CHUNK = 1 << 16


def filled(command: Command) -> Routine:
    value = attributes_of(command)[1].value
    return Routine(lambda out: partial(out.fill, value))


def progression(command: Command) -> Routine:
    start, step, _, _ = attributes_of(command)
    return Routine(lambda out: partial(_progress, out, start.value, step.value))


def _progress(out: Array, start: Any, step: Any) -> None:
    """start + k * step in the accumulating dtype, some elements at a time."""
    wide = accumulator(out.dtype)
    for first in range(0, len(out), _CHUNK):
        k = np.arange(first, min(first + _CHUNK, len(out)), dtype=np.int64).astype(wide)
        np.copyto(out[first : first + _CHUNK], start + k * step, casting="unsafe")


MAKERS: dict[str, Make] = {"filled": filled, "progression": progression}

"""Operators without a kernel of their own here: core's reference, copied into the outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, prepared


def by_reference(reference: Callable[..., Any]) -> Make:
    """Right on the day that an operator is declared; allocates its result at each call."""

    def make(command: Command) -> Routine:
        count = len(command.inputs)

        def bind(*arrays: Array) -> Launch:
            return partial(_run, reference, arrays[:count], command.attributes, arrays[count:])

        return Routine(bind)

    return prepared(make)


def _run(reference: Callable[..., Any], inputs: tuple[Array, ...], attributes: tuple[Any, ...],
         outs: tuple[Array, ...]) -> None:
    result = reference(*inputs, *attributes)
    for out, array in zip(outs, result if isinstance(result, tuple) else (result,), strict=True):
        np.copyto(out, array, casting="unsafe")

"""Operators without a kernel of their own here: core's reference, copied into the outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, prepared


def by_reference(reference: Callable[..., Any]) -> Make:
    """Right on the day that an operator is declared; allocates its result at each call."""

    def make(command: Command) -> Routine:
        count = len(command.inputs)

        def bind(*arrays: Array) -> Launch:
            return partial(_run, reference, arrays[:count], command.attributes, arrays[count:])

        return Routine(bind, fresh=partial(_fresh, reference, command.attributes, command.outputs))

    return prepared(make)


def _fresh(reference: Callable[..., Any], attributes: tuple[Any, ...], outs: tuple[Layout, ...],
           *inputs: Array) -> Any:
    """The reference's own results, where they lie as outputs do, and copies of others."""
    result = reference(*inputs, *attributes)
    if result.__class__ is not tuple:
        return _as_output(result, outs[0])
    return tuple([_as_output(array, out) for array, out in zip(result, outs, strict=True)])


def _as_output(array: Any, out: Layout) -> Array:
    if array.__class__ is np.ndarray and array.dtype == out.dtype and array.shape == out.shape:
        flags = array.flags
        if flags.owndata and flags.c_contiguous:
            return array
    made = np.empty(out.shape, out.dtype)
    np.copyto(made, array, casting="unsafe")
    return made


def _run(reference: Callable[..., Any], inputs: tuple[Array, ...], attributes: tuple[Any, ...],
         outs: tuple[Array, ...]) -> None:
    result = reference(*inputs, *attributes)
    for out, array in zip(outs, result if isinstance(result, tuple) else (result,), strict=True):
        np.copyto(out, array, casting="unsafe")

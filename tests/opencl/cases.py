"""One call of an operator as a command, its loop nest and what its reference gives."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest
from nnc_core.type import TensorSpec

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An operator, its inputs and its attributes."""

    name: str
    inputs: tuple[Values, ...]
    attributes: tuple[Hashable, ...] = ()

    @property
    def output(self) -> TensorSpec:
        specs = [TensorSpec(x.shape, x.dtype) for x in self.inputs]
        return OPERATORS[self.name].infer(*specs, *self.attributes)

    @property
    def command(self) -> Command:
        inputs = tuple(Layout.packed(x.shape, x.dtype) for x in self.inputs)
        output = Layout.packed(self.output.shape, self.output.dtype)
        return Command(self.name, self.attributes, inputs, (output,))

    @property
    def expected(self) -> Values:
        reference = OPERATORS[self.name].reference
        with np.errstate(all="ignore"):
            return np.asarray(reference(*self.inputs, *self.attributes), self.output.dtype)

def nest_of(command: Command) -> LoopNest:
    op = OPERATORS[command.name]
    return op.nest(command) if op.nest else elementwise_nest(op.scalar, command)


def numbers(dtype: DType, *shape: int, low: float = -4, high: float = 4) -> Values:
    """Reproducible, in steps that every float dtype holds; unsigned ones are not negative."""
    steps = np.random.default_rng(len(shape)).integers(8 * low, 8 * high, shape)
    scaled = np.abs(steps) // 8 if dtype.kind == "u" else steps // 8 if dtype.kind == "i" else steps / 8
    return scaled.astype(dtype)

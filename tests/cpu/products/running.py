"""Products compiled for hosts of several widths, run between guard bytes, and by core's interpreter."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import boolean
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.products.problem import MatrixProduct
from nnc_core.operator.program import Program
from nnc_cpu.llvm.compiler import TargetHost
from nnc_cpu.products.amx import ROWS
from nnc_cpu.products.dots import dots_of
from nnc_cpu.products.kernel import ProductCompiler
from nnc_cpu.products.plan import Tile
from tests.cpu.machine_code.running import HOSTS, run

Values = np.ndarray[Any, Any]

SMALL_TILE = Tile(3, 2)


def without(host: TargetHost, *features: str) -> TargetHost:
    """A host that cannot do some things."""
    left = [x.replace("+", "-") if x[1:] in features else x for x in host.features.split(",")]
    return host._replace(features=",".join(left))


def small_tile(host: TargetHost, problem: MatrixProduct, exact: bool = True) -> Tile:
    """A tile that leaves rests of a few rows and columns."""
    dots = dots_of(problem, host, exact)
    if dots is not None and dots.is_amx:
        return Tile(ROWS, 3)
    return SMALL_TILE._replace(rows=min(SMALL_TILE.rows, problem.rows))


@cache
def compiler(host: str) -> ProductCompiler:
    return ProductCompiler(HOSTS[host])


def interpreted(command: Command, arrays: list[Values]) -> None:
    """Run the nest of a command, each sum in order, functions by their expansions."""
    op = FUSED if command.name == FUSED.name else OPERATORS[command.name]
    assert op.nest is not None
    nest: LoopNest = expand(op.nest(command), EXPANSIONS)
    interpret(nest, [array.reshape(-1).view(np.uint8) for array in arrays])


def by_itself(command: Command) -> Command:
    """The command without the library code that it was made for: its nest then has the operators' own formulas."""
    if command.name != FUSED.name:
        return command
    program: Program = command.attributes[0]
    return command._replace(attributes=(program._replace(library=None),))


def whole(layout: Layout) -> int:
    """Elements of the storage that a layout lies in."""
    return max(layout.extent // layout.dtype.itemsize, 1)


def values(layout: Layout, seed: int) -> Values:
    """The storage of an array, filled with numbers."""
    numbers = np.random.default_rng(seed).standard_normal(whole(layout)) * 2
    return numbers > 0 if layout.dtype == boolean else numbers.astype(layout.dtype)


def same_bits(a: Values, b: Values) -> bool:
    """Equal in every bit; any NaN is as good as another."""
    if a.dtype.kind not in "fV" and a.dtype.name != "bfloat16":
        return bool((a == b).all())
    x, y = (z.astype(np.float64) for z in (a, b))
    return bool(np.where(np.isnan(x), np.isnan(y), (x == y) & (np.signbit(x) == np.signbit(y))).all())


__all__ = ["HOSTS", "SMALL_TILE", "by_itself", "compiler", "interpreted", "run", "same_bits", "small_tile", "values",
           "whole", "without"]

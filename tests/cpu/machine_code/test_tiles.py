"""Arrays whose neighbours lie across the lanes are read in tiles, and tasks may be run in any pieces."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import bfloat16, boolean, float16, float32, float64, int8, int64
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import general, interpret
from nnc_cpu.llvm.kernel import NestKernel
from nnc_cpu.llvm.strategy import choose, tile_axis
from tests.codegen.nests import Writer, as_bytes, at
from tests.cpu.machine_code.running import HOSTS, compiler, kernels, run

Values = np.ndarray[Any, Any]
SIZES = (8, 9, 16, 17, 31, 40)


def packed(axes: Sequence[int], order: Sequence[int]) -> list[Any]:
    """Subscripts of a packed array whose dimensions are the axes in this order."""
    subscripts, stride = [], 1
    for axis in reversed(order):
        subscripts.append(at({axis: 1}, stride))
        stride *= axes[axis]
    return subscripts


def rearranged(axes: Sequence[int], dtype: Any, *orders: Sequence[int]) -> LoopNest:
    """Arrays in several orders of dimensions, folded by `maximum` into one."""
    n = Writer(f"orders {orders} of {axes}", axes, [(dtype, False)] * len(orders) + [(dtype, True)])
    x = n.load(0, *packed(axes, orders[0]))
    for place, order in enumerate(orders[1:], 1):
        x = n.op("maximum", dtype, x, n.load(place, *packed(axes, order)))
    n.store(len(orders), x, *packed(axes, range(len(axes))))
    return n.build()


def has_tiles(nest: LoopNest, lanes: int) -> bool:
    made, _ = general(nest)
    axis = choose(made.nest, lanes)
    return axis is not None and tile_axis(made.nest, axis) is not None


def filled(nest: LoopNest, size: int, rng: np.random.Generator) -> list[Values]:
    return [rng.integers(0, 100, size).astype(a.dtype) for a in nest.arguments]


def check(nests: Sequence[LoopNest], host: str, rng: np.random.Generator) -> None:
    for nest, kernel in zip(nests, kernels(nests, host), strict=True):
        arrays = filled(nest, nest.points, rng)
        expected = [array.copy() for array in arrays]
        interpret(nest, [as_bytes(array) for array in expected])
        run(kernel, arrays)
        for ours, theirs in zip(arrays, expected, strict=True):
            assert ours.tobytes() == theirs.tobytes(), nest.name


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16, int8, int64, boolean], ids=str)
def test_transposed(dtype: Any, host: str, rng: np.random.Generator) -> None:
    sizes = [*product(SIZES, SIZES)] if dtype == float32 else [(8, 33), (40, 16), (17, 17)]
    nests = [rearranged(size, dtype, (1, 0), (0, 1)) for size in sizes]
    assert all(has_tiles(nest, HOSTS[host].lanes) for nest in nests)
    check(nests, host, rng)


@pytest.mark.parametrize("host", HOSTS)
def test_orders_of_three_and_four_dimensions(host: str, rng: np.random.Generator) -> None:
    orders = [((2, 0, 1),), ((1, 2, 0),), ((2, 1, 0), (0, 1, 2)), ((0, 2, 1), (0, 2, 1)), ((2, 1, 0), (1, 2, 0))]
    nests = [rearranged(axes, float32, *order) for order in orders for axes in ((3, 20, 18), (17, 2, 9), (9, 33, 16))]
    nests += [rearranged((2, 9, 3, 20), float32, (0, 2, 3, 1)), rearranged((2, 3, 20, 9), float32, (0, 3, 1, 2))]
    check(nests, host, rng)


def test_narrow_and_gathered_arrays_have_none() -> None:
    assert not has_tiles(rearranged((7, 50), float32, (1, 0)), 16)
    assert has_tiles(rearranged((8, 50), float32, (1, 0)), 16)
    assert not has_tiles(rearranged((50, 50), float32, (0, 1)), 16)
    n = Writer("padded", (20, 30), [(float32, False), (float32, True)])
    x = n.load(0, at({1: 1}, 18, extent=29, checked=True, offset=-1), at({0: 1}, 1, extent=18, checked=True), fill=0)
    n.store(1, x, at({0: 1}, 30), at({1: 1}, 1))
    assert not has_tiles(n.build(), 16)


@pytest.mark.parametrize("axes", [(3, 5, 7), (1, 40, 5), (6, 1, 1), (2, 3, 9000), (20, 18, 4)])
def test_tasks_may_be_run_in_any_pieces(axes: tuple[int, ...], rng: np.random.Generator) -> None:
    nest = rearranged(axes, float32, (2, 1, 0), (0, 1, 2))
    arrays = filled(nest, nest.points, rng)
    expected = [array.copy() for array in arrays]
    interpret(nest, [as_bytes(array) for array in expected])
    [kernel] = compiler("here").kernels([nest])
    assert isinstance(kernel, NestKernel)
    table = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    count = kernel.tasks.total
    cuts = sorted({0, count, *rng.integers(0, count + 1, 5).tolist()})
    for begin, end in rng.permutation([*pairwise(cuts)]).tolist():
        kernel.code.function(table, kernel.numbers, begin, end)
    assert arrays[-1].tobytes() == expected[-1].tobytes()

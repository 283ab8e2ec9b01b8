"""What neighbouring points have in common is computed once for several vectors, and changes no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import int64, uint32, uint64
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import interpret
from nnc_core.operator import OPERATORS
from nnc_core.operator.philox import philox_words
from nnc_cpu.llvm.blocks import Blocks, blocks_of
from nnc_cpu.llvm.strategy import choose
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Writer, as_bytes, at
from tests.cpu.machine_code.running import HOSTS, kernels, run

Values = np.ndarray[Any, Any]


def mixed(rows: int, columns: int, step: int = 1, shift: int = 2, offset: int = 0, *, inner: bool = False,
          keys: bool = False, rounds: int = 30) -> LoopNest:
    """What a long function gives of the block of each point and of a key, plus the place within the block."""
    axes = (rows,) if inner else (rows, columns)
    n = Writer("mixed", axes, [(uint64, False), (uint64, True)])
    n.stage(columns) if inner else None
    row, column = n.op("axis", int64, axis=0), n.op("axis", int64, axis=1)
    key = n.load(0, at({0: 1}, 1)) if keys else n.load(0)
    flat = n.op("add", int64, n.op("multiply", int64, row, n.constant(columns, int64)), column)
    place = n.op("multiply", int64, flat, n.constant(step, int64))
    position = n.op("cast", uint64, n.op("add", int64, place, n.constant(offset, int64)))
    value = n.op("shift_right", uint64, position, n.constant(shift, uint64))
    for k in range(rounds):
        by = n.op("add", uint64, key, n.constant(2 * k + 1, uint64))
        value = n.op("multiply", uint64, n.op("bitwise_xor", uint64, value, by), n.constant(0x9E3779B97F4A7C15, uint64))
    within = n.op("bitwise_and", uint64, position, n.constant((1 << shift) - 1, uint64))
    n.store(1, n.op("add", uint64, value, within), at({0: columns}, 1), at({1: 1}, 1))
    return n.build()


def found(nest: LoopNest, axis: int | None = 1) -> Blocks | None:
    *before, stage = nest.stages
    return blocks_of(nest, stage, sum([other.values for other in before]), axis)


def test_neighbours_have_a_block_in_common() -> None:
    blocks = found(mixed(5, 40))
    assert blocks is not None and blocks.points == 4 and len(blocks.results) == 1 and len(blocks.members) == 61
    blocks = found(mixed(5, 40, step=2, shift=3))
    assert blocks is not None and blocks.points == 4
    assert found(mixed(5, 40, inner=True)) is not None


def test_others_have_not() -> None:
    assert found(mixed(5, 40), axis=0) is None, "points of a column lie apart"
    assert found(mixed(5, 40), axis=None) is None
    assert found(mixed(5, 40, step=3)) is None
    assert found(mixed(5, 40, step=4)) is None, "each point has a block of its own"
    assert found(mixed(5, 40, rounds=5)) is None, "it is not worth it"
    assert found(mixed(5, 40, keys=True)) is None, "rows have keys of their own"


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("inner", [False, True], ids=["outer", "inner"])
def test_the_bits_stay(host: str, inner: bool, rng: np.random.Generator) -> None:
    nests = [mixed(rows, columns, step, shift, offset, inner=inner, keys=keys)
             for rows, columns, step, shift, offset, keys in (
                 (3, 300, 1, 2, 0, False), (7, 13, 1, 2, 3, False), (1, 9000, 1, 1, 0, False), (5, 67, 2, 2, 1, False),
                 (5, 130, 2, 4, 5, False), (33, 16, 1, 4, 0, False), (4, 50, 1, 2, 0, True), (3, 70, 3, 2, 0, False))]
    for nest, kernel in zip(nests, kernels(nests, host), strict=True):
        rows, columns = nest.axes[0], (*nest.axes, *nest.stages[-1].axes)[1]
        arrays = [rng.integers(0, 1 << 63, rows, np.uint64), np.zeros(rows * columns, np.uint64)]
        expected = [array.copy() for array in arrays]
        interpret(nest, [as_bytes(a) for a in expected], in_parts=in_parts)
        run(kernel, arrays)
        assert (arrays[1] == expected[1]).all(), (rows, columns)
        run(kernel, arrays)
        assert (arrays[1] == expected[1]).all(), (rows, columns)


def halves(rows: int, columns: int) -> LoopNest:
    """What upper and lower halves of products give, by numbers that are the same everywhere and by each other, between
    operations that no products are."""
    n = Writer("halves", (rows, columns), [(uint64, False), (uint32, True)])
    column = n.op("cast", uint64, n.op("axis", int64, axis=1))
    key = n.op("cast", uint32, n.load(0))
    value = n.op("cast", uint32, n.op("shift_right", uint64, column, n.constant(2, uint64)))
    for k in range(12):
        factor = n.constant(0x9E3779B9 + 2 * k, uint32) if k % 3 else key
        high, low = (n.op(name, uint32, value, factor) for name in ("multiply_high", "multiply"))
        value = n.op("bitwise_xor", uint32, n.op("bitwise_xor", uint32, high, low), key)
        value = n.op("add", uint32, value, high) if k == 5 else value
        value = n.op("multiply_high" if k == 6 else "multiply", uint32, value, low) if k in (6, 7) else value
    n.store(1, n.op("bitwise_xor", uint32, value, n.op("cast", uint32, column)), at({0: columns}, 1), at({1: 1}, 1))
    return n.build()


@pytest.mark.parametrize("host", HOSTS)
def test_halves_of_products_stay_apart(host: str, rng: np.random.Generator) -> None:
    nests = [halves(1, 1000), halves(3, 77), halves(2, 3)]
    assert all(found(nest) is not None for nest in nests)
    for nest, kernel in zip(nests, kernels(nests, host), strict=True):
        arrays = [rng.integers(0, 1 << 63, 1, np.uint64), np.zeros(nest.points, np.uint32)]
        expected = [array.copy() for array in arrays]
        interpret(nest, [as_bytes(a) for a in expected], in_parts=in_parts)
        run(kernel, arrays)
        assert (arrays[1] == expected[1]).all(), nest.axes


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [uint32, uint64], ids=str)
def test_random_bits_are_the_words_of_a_stream(dtype: Any, host: str) -> None:
    key = np.array([(3 << 40) + 5, 7], np.uint64)
    for shape in ((1000,), (9001,), (3, 5, 7), (1,), (20_000,)):
        command = Command("random_bits", (shape, dtype), (Layout.packed((2,), uint64),), (Layout.packed(shape, dtype),))
        nest = OPERATORS["random_bits"].nest(command)  # type: ignore[misc]
        assert isinstance(nest, LoopNest)
        assert nest.points < 16 or blocks_of(nest, nest.stages[0], 0, choose(nest, 16)) is not None
        [kernel] = kernels([nest], host)
        out = np.zeros(shape, dtype)
        run(kernel, [key, out])
        words = philox_words(key, out.size * dtype.itemsize // 4).astype(np.uint64)
        expected = words if dtype == uint32 else words[0::2] << np.uint64(32) | words[1::2]
        assert (out.reshape(-1) == expected).all(), shape

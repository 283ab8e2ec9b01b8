"""Values that two stages of a row compute are computed once, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import float16, float32, float64
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.repeated import NOTHING_REPEATED, RepeatedValues, repeated_values
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Writer, as_bytes, at
from tests.cpu.machine_code.running import HOSTS, kernels, run


def softmax(rows: int, length: int, dtype: Any, *, columns: bool = False, again: str = "exp") -> LoopNest:
    """Of rows, or of columns; `again`: the function that the last stage takes."""
    n = Writer(f"softmax of {length}", (rows,), [(dtype, False), (dtype, True)])
    place = (at({0: 1}, 1), at({1: 1}, rows)) if columns else (at({0: 1}, length), at({1: 1}, 1))
    n.stage(length)
    largest = n.reduce("maximum", n.load(0, *place), dtype)
    n.stage(length)
    total = n.reduce("sum", n.op("exp", dtype, n.op("subtract", dtype, n.load(0, *place), largest)), dtype)
    n.stage(length)
    power = n.op(again, dtype, n.op("subtract", dtype, n.load(0, *place), largest))
    n.store(1, n.op("divide", dtype, power, total), *place)
    return n.build()


def repeated(nest: LoopNest, lanes: int = 1) -> RepeatedValues:
    return repeated_values(expand(nest, frozenset(EXPANSIONS)), lanes)


def test_what_is_worth_it_is_kept() -> None:
    found = repeated(softmax(9, 100, float32))
    assert len(found.sources) == 1 and len(found.needless) > 20
    assert repeated(softmax(9, 100, float32), 16) == found
    assert repeated(softmax(9, 100, float32, again="sqrt")).sources == {}
    assert repeated(softmax(9, 10_000, float32)) == RepeatedValues({}, frozenset()), "there is no room for it"
    assert repeated(softmax(9, 1000, float32), 16).sources == {}


def test_what_is_written_is_read_again() -> None:
    n = Writer("written between", (9,), [(float32, True), (float32, True)])
    place = at({0: 40}, 1), at({1: 1}, 1)
    for argument in (0, 1):
        n.stage(40)
        n.store(argument, n.op("exp", float32, n.load(0, *place)), *place)
    assert repeated(n.build()).sources == {}


def test_one_stage_repeats_nothing() -> None:
    n = Writer("one", (9,), [(float32, True)])
    n.stage(40)
    n.reduce("sum", n.op("exp", float32, n.load(0, at({0: 40}, 1), at({1: 1}, 1))), float32)
    assert repeated(n.build()) is NOTHING_REPEATED


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype", [float32, float64, float16], ids=str)
def test_the_bits_stay(dtype: Any, columns: bool, host: str, rng: np.random.Generator) -> None:
    nests = [softmax(rows, length, dtype, columns=columns) for rows, length in ((3, 2), (5, 17), (40, 33), (2, 300))]
    for nest, kernel in zip(nests, kernels(nests, host), strict=True):
        count = nest.points * nest.stages[1].axes[0]
        arrays = [(rng.standard_normal(count) * 3).astype(dtype), np.zeros(count, dtype)]
        expected = [array.copy() for array in arrays]
        interpret(expand(nest, frozenset(EXPANSIONS)), [as_bytes(a) for a in expected], in_parts=in_parts)
        run(kernel, arrays)
        assert arrays[1].tobytes() == expected[1].tobytes(), nest.name
        run(kernel, [arrays[0], arrays[1]])
        assert arrays[1].tobytes() == expected[1].tobytes(), nest.name

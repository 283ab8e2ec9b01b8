"""Every case of the loop nests' tests as machine code, for several widths of vectors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nnc_core.base.dtype import DType, float32, float64, int8
from nnc_core.codegen import interpret
from nnc_core.device import Kernel
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Case, Writer, agree, as_bytes, at
from tests.codegen.test_nests import CASES
from tests.cpu.machine_code.running import HOSTS, kernels, run

BY_NAME = {case.name: case for case in CASES}


@cache
def compiled(name: str, host: str) -> Kernel:
    return kernels([BY_NAME[name].nest], host)[0]


def splits(case: Case) -> bool:
    """True if sums are folded in parts."""
    return any(in_parts(r, stage, case.nest) for stage in case.nest.stages for r in stage.reductions)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_machine_code(case: Case, host: str) -> None:
    arrays = case.copies()
    run(compiled(case.name, host), arrays)
    if not splits(case):
        case.check(arrays)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("case", [c for c in CASES if not c.ulp], ids=[c.name for c in CASES if not c.ulp])
def test_the_interpreter_agrees_in_every_bit(case: Case, host: str) -> None:
    """Sums in parts too: whatever the width, the same order."""
    ours, theirs = case.copies(), case.copies()
    run(compiled(case.name, host), ours)
    interpret(case.nest, [as_bytes(array) for array in theirs], in_parts=in_parts)
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert agree(a, b).all(), case.labels.get(place, place)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("count", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("dtype", [int8, float32, float64], ids=str)
def test_every_other_element(dtype: DType, count: int, host: str) -> None:
    """As where complex numbers lie; what is between and behind stays as it is."""
    n = Writer("twice", (count,), [(dtype, False), (dtype, True)])
    x = n.load(0, at({0: 1}, 2))
    n.store(1, n.op("add", dtype, x, x), at({0: 1}, 2))
    [kernel] = kernels([n.build()], host)
    x, y = np.arange(2 * count - 1).astype(dtype), np.full(2 * count - 1, 7, dtype)
    run(kernel, [x, y])
    np.testing.assert_array_equal(y[::2], 2 * x[::2])
    assert (y[1::2] == 7).all()

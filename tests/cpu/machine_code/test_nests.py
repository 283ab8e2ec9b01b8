"""Every case of the loop nests' tests as machine code, for several widths of vectors."""

from __future__ import annotations

from functools import cache

import pytest

from nnc_core.codegen import interpret
from nnc_core.device import Kernel
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Case, agree, as_bytes
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

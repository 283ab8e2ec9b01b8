"""Each case through the interpreter and through compiled C."""

from __future__ import annotations

import pytest

from nnc_core.codegen import interpret
from tests.codegen.cases import structure_cases
from tests.codegen.compiled import Runner
from tests.codegen.nests import Case, agree, as_bytes
from tests.codegen.operations import operation_cases

CASES = [*structure_cases(), *operation_cases()]
NAMES = [case.name for case in CASES]


def test_names_differ() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_interpreter(case: Case) -> None:
    arrays = case.copies()
    interpret(case.nest, [as_bytes(array) for array in arrays])
    case.check(arrays)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_c99(case: Case, c99: Runner) -> None:
    arrays = case.copies()
    c99(case.name, arrays)
    case.check(arrays)


@pytest.mark.parametrize("case", [c for c in CASES if not c.ulp], ids=[c.name for c in CASES if not c.ulp])
def test_interpreter_and_c99_agree_in_every_bit(case: Case, c99: Runner) -> None:
    interpreted, compiled = case.copies(), case.copies()
    interpret(case.nest, [as_bytes(array) for array in interpreted])
    c99(case.name, compiled)
    for place, (ours, theirs) in enumerate(zip(interpreted, compiled, strict=True)):
        assert agree(ours, theirs).all(), case.labels.get(place, place)

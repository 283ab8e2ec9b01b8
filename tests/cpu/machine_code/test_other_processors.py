"""Machine code for processors that this machine is not: compiled, and not run."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import pytest

from nnc_core.base.dtype import float32
from nnc_core.base.loopnest import LoopNest
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.render import render
from tests.codegen.nests import Case, Writer, at
from tests.codegen.test_nests import CASES

ARM = "aarch64-unknown-linux-gnu"


@pytest.fixture(scope="module")
def arm() -> Any:
    """Any 64-bit ARM processor: all of them have NEON, four floats wide."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(ARM).create_target_machine(cpu="generic", features="+neon", opt=2)


def module_of(nest: LoopNest) -> Any:
    declared: dict[str, None] = {}
    text, _ = render("kernel", nest, 4, False, declared)
    defined = definitions(declared)  # which are then not declared
    module = llvm.parse_assembly("\n".join([f'target triple = "{ARM}"', *declared, *defined, text,
                                            "attributes #0 = { nounwind }\n"]))
    module.verify()
    return module


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_code_for_neon_is_made(case: Case, arm: Any) -> None:
    assert arm.emit_object(module_of(case.nest)).startswith(b"\x7fELF")


def test_its_vectors_are_those_of_neon(arm: Any) -> None:
    n = Writer("twice", (1000,), [(float32, False), (float32, True)])
    x = n.load(0, at({0: 1}, 1))
    n.store(1, n.op("add", float32, x, x), at({0: 1}, 1))
    assert "fadd\tv" in (text := arm.emit_assembly(module_of(n.build()))) and ".4s" in text

"""Functions written out in instructions give the bits of the interpreter, also where one instruction of the processor
takes the place of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import DTYPES, float32, float64
from nnc_core.codegen import expand
from nnc_core.codegen.expansions import EXPANSIONS, is_expanded
from nnc_core.codegen.numpy_expansions import evaluate
from nnc_cpu.llvm.kernel import host
from nnc_cpu.llvm.objects import text_of
from tests.codegen.functions import FUNCTIONS, instruction_of, points
from tests.codegen.nests import Writer, agree, at, elementwise
from tests.cpu.machine_code.running import HOSTS, compiler, kernels, run

FEW = 97
"""Points of those that accuracy is measured at: one in so many."""


def some(name: str, dtype: Any) -> list[np.ndarray[Any, Any]]:
    return [np.ascontiguousarray(x[:: 1 if name.startswith("exp") else FEW]) for x in points(name, DTYPES[str(dtype)])]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_machine_code_gives_the_bits_of_the_interpreter(dtype: Any, host: str) -> None:
    given = {name: some(name, dtype) for name in FUNCTIONS if is_expanded(instruction_of(name), dtype)}
    nests = [elementwise(name, instruction_of(name), dtype, xs, dtype) for name, xs in given.items()]
    for (name, xs), kernel in zip(given.items(), kernels(nests, host), strict=True):
        got = np.zeros_like(xs[0])
        run(kernel, [*xs, got])
        assert agree(got, evaluate(instruction_of(name), *xs)).all(), name


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_scalars_too(dtype: Any, host: str) -> None:
    """What is the same in all lanes is one element."""
    n = Writer("the same", (40,), [(dtype, False), (dtype, False), (dtype, True)])
    n.store(2, n.op("add", dtype, n.op("exp", dtype, n.load(0, at({}, 0))), n.load(1, at({0: 1}, 1))), at({0: 1}, 1))
    [kernel] = kernels([n.build()], host)
    for power in (-np.inf, -103.2, -90.0, 0.5, 88.7, 100.0, np.nan):
        x, y, got = np.array([power], dtype), np.arange(40).astype(dtype), np.zeros(40, dtype)
        run(kernel, [x, y, got])
        assert agree(got, evaluate("exp", x) + y).all(), power


@pytest.mark.skipif(not host().scales, reason="this processor has no such instruction")
def test_powers_of_two_are_multiplied_by_in_one_instruction() -> None:
    xs = [np.zeros(100, np.float32)]
    nest = elementwise("one", "exp", float32, xs, float32)
    assert "mask.scalef.ps.512" in text_of("k", nest, compiler("here").machine)[0]
    assert any(i.operation == "scale" for i in expand(nest, EXPANSIONS, ("scale",)).stages[0].body)
    assert not any(i.operation == "scale" for i in expand(nest, EXPANSIONS).stages[0].body)

"""Work that only some lanes need is left out where none does, and changes no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import DType, float32, float64
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_cpu.llvm.branches import Branches, branches
from nnc_cpu.llvm.kernel import host
from nnc_cpu.llvm.objects import text_of
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Writer, agree, as_bytes, at, elementwise
from tests.cpu.machine_code.running import HOSTS, compiler, kernels, run
from tests.cpu.machine_code.test_repeated import softmax

Values = np.ndarray[Any, Any]
FUNCTIONS = ("sin", "cos", "tan", "lgamma", "digamma", "erf")
NEAR = {"lgamma": 2.5, "digamma": 2.5}
RARE = {"lgamma": -2.5, "digamma": -2.5, "erf": 0.25}


def of(function: str, dtype: DType, size: int) -> LoopNest:
    x = np.zeros(size, dtype)
    return elementwise(function, function, dtype, [x], dtype)


def branches_of(function: str, dtype: DType) -> Branches:
    nest = expand(of(function, dtype, 100), set(EXPANSIONS))
    return branches(nest, nest.stages[0], 0)


def test_large_angles_are_apart() -> None:
    """The angle, its rest and the quadrant are of one branch."""
    [branch] = branches_of("sin", float32).found
    assert len(branch.results) == 3 and len(branch.members) > 60
    assert branches_of("tan", float64).found


@pytest.mark.parametrize("function", ["exp", "log", "tanh", "erf", "sigmoid"])
def test_what_is_little_or_common_is_not(function: str) -> None:
    """Infinity and NaN are not what the function is written for."""
    assert not branches_of(function, float32).found


def test_branches_lie_within_branches() -> None:
    found = branches_of("lgamma", float64)
    inner, outer = found.found[0], found.found[-1]
    assert any(one.members < outer.members for one in found.found)
    assert found.home(min(inner.members)) is inner
    assert inner in found.before(inner.before) and found.home(inner.before) is not inner


def test_a_value_that_is_read_elsewhere_is_in_no_branch() -> None:
    nest = expand(of("sin", float32, 100), set(EXPANSIONS))
    [branch] = branches(nest, nest.stages[0], 0).found
    assert not branches(nest, nest.stages[0], 0, apart=[min(branch.members)]).found
    n = Writer("both", (100,), [(float32, False), (float32, True)])
    x = n.load(0, at({0: 1}, 1))
    far = n.op("add", float32, x, x)
    for _ in range(60):
        far = n.op("multiply", float32, far, x)
    near = n.op("negative", float32, x)
    chosen = n.op("select", float32, n.op("less", float32, x, near), near, far)
    n.store(1, n.op("add", float32, chosen, far), at({0: 1}, 1))
    both = n.build()
    assert not branches(both, both.stages[0], 0).found


def arrays(function: str, dtype: DType, size: int) -> list[Values]:
    """No lane, some and all in need of what is rare; then a single one, the last, and what is no number."""
    near, rare = NEAR.get(function, 0.5), RARE.get(function, 1e7)
    some = np.where(np.arange(size) % 3 == 1, rare, near)
    last = np.full(size, near)
    last[-1] = rare
    ends = np.resize([np.nan, near, np.inf, -np.inf, -0.0, rare, 1e-42, near], size)
    steps = 1 + np.arange(size) / (8 * size)
    with np.errstate(invalid="ignore"):
        return [(x * steps).astype(dtype) for x in (np.full(size, near), some, np.full(size, rare), last, ends)]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_bits_are_the_same_whichever_lanes_need_it(function: str, dtype: DType, host: str) -> None:
    sizes = (1, 7, 16, 53)
    for size, kernel in zip(sizes, kernels([of(function, dtype, size) for size in sizes], host), strict=True):
        nest = expand(of(function, dtype, size), set(EXPANSIONS))
        for x in arrays(function, dtype, size):
            got, wanted = np.zeros_like(x), np.zeros_like(x)
            run(kernel, [x, got])
            interpret(nest, [as_bytes(x), as_bytes(wanted)])
            assert agree(got, wanted).all()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("columns", [False, True])
def test_in_stages_that_repeat_what_is_computed(columns: bool, host: str, rng: np.random.Generator) -> None:
    nest = softmax(5, 40, float32, columns=columns, again="sin")
    [kernel] = kernels([nest], host)
    x = (rng.standard_normal(200) * 10.0 ** rng.integers(0, 9, 200)).astype(np.float32)
    got, wanted = np.zeros_like(x), np.zeros_like(x)
    run(kernel, [x, got])
    interpret(expand(nest, set(EXPANSIONS)), [as_bytes(x), as_bytes(wanted)], in_parts=in_parts)
    assert agree(got, wanted).all()


def test_the_text_asks_all_lanes_at_once() -> None:
    text, _ = text_of("sine", of("sin", float32, 100), compiler("here").machine)  # type: ignore[arg-type]
    assert f"llvm.vector.reduce.or.v{host().lanes}i1" in text

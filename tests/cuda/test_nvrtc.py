"""What NVRTC makes of the kernels of all operators; it needs no GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nnc_core.base.errors import PluginError
from nnc_core.codegen import AnyNest, expand, general, program_of, writers_for_groups
from nnc_cuda import nvrtc
from nnc_cuda.dialect import CUDA
from nnc_cuda.driver import CompileError
from nnc_cuda.modules import TOGETHER
from tests.cuda.operator_nests import operator_nests

SAMPLE = 24
CAPABILITIES = [(8, 0), (9, 0)]


@pytest.fixture(scope="module", autouse=True)
def _needs_nvrtc() -> None:
    try:
        nvrtc.library()
    except PluginError as error:
        pytest.skip(f"{error.message}: {error.hint}")


def compile_all(nests: Sequence[AnyNest], capability: tuple[int, int]) -> None:
    compiler = nvrtc.NVRTC(capability)
    for begin in range(0, len(nests), TOGETHER):
        some = {f"kernel_{n}_{k}": (expand(nest), writer) for n, nest in enumerate(nests[begin : begin + TOGETHER])
                for k, writer in enumerate(writers_for_groups(nest))}
        assert compiler.compile(program_of(some, CUDA))[:4] == b"\x7fELF"


def test_a_sample_of_the_operators(rng: np.random.Generator) -> None:
    nests = operator_nests()
    chosen = [nests[n] for n in rng.choice(len(nests), SAMPLE, replace=False)]
    compile_all(chosen[: SAMPLE // 2], CAPABILITIES[0])
    compile_all([general(nest)[0] for nest in chosen[SAMPLE // 2 :]], CAPABILITIES[1])


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_all_operators(capability: tuple[int, int]) -> None:
    compile_all(operator_nests(), capability)


def test_a_program_that_is_none() -> None:
    with pytest.raises(CompileError, match=r"nnc\.cu\(1\): error"):
        nvrtc.NVRTC((8, 0)).compile("int x = ;")


def test_newer_devices_get_what_their_driver_translates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "capabilities", lambda: [(8, 0), (9, 0)])
    assert [nvrtc.target(one) for one in ((8, 0), (8, 9), (12, 0))] == ["sm_80", "compute_80", "compute_90"]
    with pytest.raises(PluginError, match="no code for compute capability"):
        nvrtc.target((3, 0))


def test_what_is_for_a_driver_to_translate_is_text() -> None:
    compiler = nvrtc.NVRTC((8, 0))
    compiler.target, compiler.options = "compute_80", ("--gpu-architecture=compute_80", *nvrtc.OPTIONS)
    assert b".target sm_80" in compiler.compile('extern "C" __global__ void f(float *a) { *a = 1; }')

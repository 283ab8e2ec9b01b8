"""What NVRTC makes of the kernels of all operators; it needs no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import (
    bfloat16,
    boolean,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    uint32,
    uint64,
)
from nnc_core.base.errors import PluginError
from nnc_core.base.layout import Layout
from nnc_core.codegen import AnyNest, expand, general, program_of
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.operator.steps import ProgramSource
from nnc_core.operator.steps.argsort import ArgsortSource
from nnc_core.operator.steps.fourier_text import FourierSource
from nnc_core.operator.steps.scatter import ScatterSource
from nnc_cuda import nvrtc
from nnc_cuda.dialect import CUDA
from nnc_cuda.dnn.attention import placed_attention
from nnc_cuda.driver import CompileError
from nnc_cuda.kernel import NestStep
from nnc_cuda.matrices.plan import PLANS
from nnc_cuda.modules import TOGETHER
from nnc_cuda.vectors import writers_of
from tests.cuda.operator_nests import operator_nests
from tests.cuda.test_matrices import command_of
from tests.opencl.test_runs import nest_of

SOURCES = (
    FourierSource("fft", complex64, (1, 2), (2, 3, 8, 17)), FourierSource("irfft", complex128, (1, 1), (5,)),
    *[ArgsortSource(dtype, dtype == float16, (2, 1), long)
      for dtype in (float16, float64, int8) for long in (False, True)],
    *[ScatterSource(*of, (1, 2, 1, 1), long) for long in (False, True) for of in (
        (bfloat16, uint64, "add", uint32), (complex64, int8, "multiply", uint64))])

MATRICES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("cholesky", "lu", "inv", "det", "slogdet", "eigh", "svdvals", "eig", "eigvals"), (1,)),
    "qr": (1, "reduced"), "svd": (1, False), "solve": (2,), "solve_triangular": (2, True, False)}
"""Operators, the count of their inputs, and their attributes."""
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
                for k, writer in enumerate(writers_of(nest))}
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


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_folds_by_shuffles_of_every_dtype(capability: tuple[int, int]) -> None:
    """Short integers and booleans are shuffled as the numbers that they become."""
    nests = [nest_of(name, Layout.packed((40, columns), dtype), attribute, False)[0]
             for columns in (40, 700) for dtype in (float16, float64, int8, uint64, boolean)
             for name, attribute in ([("any", (1,))] if dtype == boolean else [("argmax", 1), ("max", (1,))])]
    compile_all(nests, capability)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
def test_programs_of_several_kernels(source: ProgramSource, capability: tuple[int, int]) -> None:
    assert nvrtc.NVRTC(capability).compile(source.text(CUDA, grouped=True))[:4] == b"\x7fELF"


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_nests_around_libraries(capability: tuple[int, int]) -> None:
    """Of matrices alone and in stacks, and of masks of attention."""
    shapes, dtypes = ((40, 40), (30, 6, 6)), (float64, complex64)
    plans = [PLANS[name](command_of(name, attributes, [Layout.packed(shape, dtype)] * inputs), lambda routine: 0)
             for name, (inputs, *attributes) in MATRICES.items() for shape in shapes for dtype in dtypes]
    steps = [step for plan in plans for step in plan.steps]
    x, row = Layout.packed((2, 4, 40, 16), bfloat16), Layout.packed((2, 4, 40), float32)
    for mask in (Layout.packed((40, 40), boolean), Layout.packed((2, 1, 1, 40), float16)):
        command = Command("scaled_dot_product_attention", (0.25, True, 3), (x, x, x, mask), (x, row))
        placed = placed_attention(command)
        steps += [*placed.before, *placed.behind]
    compile_all(list({general(step.nest)[0]: None for step in steps if isinstance(step, NestStep)}), capability)


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


@pytest.mark.parametrize("capability", [(7, 5), (9, 0)], ids=str)
def test_halves_are_converted_by_instructions_where_there_are_some(capability: tuple[int, int]) -> None:
    helpers = Helpers(CUDA)
    for dtype in (float16, bfloat16):
        helpers.rounding(dtype)
    compiler = nvrtc.NVRTC(capability)
    target = "compute_{}{}".format(*capability)
    compiler.target, compiler.options = target, (f"--gpu-architecture={target}", *nvrtc.OPTIONS)
    body = "a[0] = nnc_round_float16(a[0]); a[1] = nnc_round_bfloat16(a[1]);"
    source = "\n".join([*helpers.definitions.values(), f'extern "C" __global__ void f(float *a) {{ {body} }}'])
    made = compiler.compile(source)
    assert b"cvt.rn.f16.f32" in made and b"cvt.f32.f16" in made
    assert (b"cvt.rn.bf16.f32" in made) == (capability >= (8, 0))

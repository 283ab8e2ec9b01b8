"""Products of bfloat16 by the processor's instruction for pairs: near exact sums, never where bits are promised."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import bfloat16, float16, float32
from nnc_core.operator import OPERATORS
from nnc_core.operator.products.matmul import weight_tiling
from nnc_cpu.llvm.compiler import HostCompiler, TargetHost
from nnc_cpu.products import PRODUCTS
from nnc_cpu.products.backend import problem_of
from nnc_cpu.products.dots import dots_of, has_bfloat16
from nnc_cpu.products.kernel import ProductCompiler
from tests.cpu.products.running import HOSTS, interpreted, run, same_bits, small_tile, values, without
from tests.cpu.products.test_convolution import CASES, OPERATIONS
from tests.cpu.products.test_convolution import command as convolution
from tests.cpu.products.test_matmul import TURNED, matrices
from tests.cpu.products.test_panels import reading_panels

Values = np.ndarray[Any, Any]

EVERY = {**HOSTS, "here, by words": without(HOSTS["here"], "amx-tile")}
ABLE = [name for name, host in EVERY.items() if has_bfloat16(host)]
_COMPILERS = {name: ProductCompiler(EVERY[name]) for name in ABLE}
where_able = pytest.mark.skipif(not ABLE, reason="the processor has no AVX512-BF16")
COOPER_LAKE = TargetHost("cooperlake", "+avx512bf16,+avx512vl,+avx512vnni,+f16c", 16, True)
SAPPHIRE_RAPIDS = TargetHost("sapphirerapids", "+amx-tile,+amx-bf16,+amx-int8,+avx512bf16,+avx512vl,+f16c", 16, True)


def exact(command: Command, arrays: list[Values]) -> Values:
    op = OPERATORS[command.name]
    assert op.reference is not None
    wide = [x.astype(np.float64).reshape(y.shape) for x, y in zip(arrays, command.inputs, strict=True)]
    found: Values = op.reference(*wide, *command.attributes)
    return found


def check(command: Command, host: str, small: bool = False) -> None:
    """As near as sums in float32 are, rounded once."""
    given = [values(x, seed) for seed, x in enumerate(command.inputs)]
    ours = values(command.output, 99)
    problem = problem_of(command)
    assert dots_of(problem, EVERY[host], exact=False) is not None
    tile = small_tile(EVERY[host], problem, exact=False) if small else None
    run(_COMPILERS[host].kernel(problem, tile, exact=False), [*given, ours])
    wanted, sizes = exact(command, given), exact(command, [abs(x) for x in given])
    bound = abs(wanted) * 2.0**-8 + sizes * 2.0**-20
    assert (abs(ours.astype(np.float64).reshape(wanted.shape) - wanted) <= bound).all()


@where_able
@pytest.mark.parametrize("host", ABLE)
@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_all_remainders(host: str, ta: bool, tb: bool) -> None:
    width = _COMPILERS[host].vector // 2
    for size in ((3, width, 32), (4, width + 1, 33), (5, 2 * width - 1, 1), (7, 3, 31), (8, 1, 2), (17, 50, 65)):
        check(matrices(*size, bfloat16, ta, tb), host, small=True)


@where_able
@pytest.mark.parametrize("host", ABLE)
@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_blocks_of_rows_and_steps(host: str, ta: bool, tb: bool) -> None:
    check(matrices(143, 170, 531, bfloat16, ta, tb), host)
    check(matrices(530, 530, 70, bfloat16, ta, tb), host)


@where_able
@pytest.mark.parametrize("host", ABLE)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_convolutions_and_their_gradients(host: str, operator: str) -> None:
    for name, windows in CASES.items():
        if "depthwise" not in name:
            made = convolution(operator, windows, bfloat16)
            check(made, host, small=True)


@where_able
@pytest.mark.parametrize("host", ABLE)
def test_numbers_that_are_not_finite(host: str) -> None:
    """Each stays in its row and column, also where a word has a step less."""
    command = matrices(7, 21, 5, bfloat16)
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    a[7], a[11], b[30], b[50] = np.nan, np.inf, -np.inf, np.nan
    ours, theirs = (values(command.output, 99) for _ in range(2))
    problem = problem_of(command)
    run(_COMPILERS[host].kernel(problem, small_tile(EVERY[host], problem, exact=False), exact=False), [a, b, ours])
    interpreted(command, [a, b, theirs])
    wild = ~np.isfinite(theirs.astype(np.float64))
    assert 0 < wild.sum() < wild.size
    assert same_bits(ours[wild], theirs[wild])
    assert np.isfinite(ours.astype(np.float64))[~wild].all()


@where_able
@pytest.mark.parametrize("host", [name for name in ABLE if name.startswith("here")])
def test_weights_that_were_packed_before(host: str) -> None:
    for tb in (False, True):
        made = matrices(7, 70, 331, bfloat16, tb=tb)
        a, b = (values(x, seed) for seed, x in enumerate(made.inputs))
        tiling = weight_tiling(tb, 2 * HOSTS["here"].lanes, 2)
        ours, theirs = (values(made.output, 99) for _ in range(2))
        packed = tiling.pack(b.reshape(made.inputs[1].shape)).reshape(-1)
        run(_COMPILERS[host].kernel(problem_of(reading_panels(made, tiling)), exact=False), [a, packed, ours])
        run(_COMPILERS[host].kernel(problem_of(made), exact=False), [a, b, theirs])
        assert same_bits(ours, theirs)
        [(_, wanted)] = PRODUCTS["matmul"][1].wants(matrices(7, 700, 331, bfloat16, tb=tb)).items()
        assert wanted.blocks[1 if tb else 0] == 2


@pytest.mark.parametrize(("host", "instruction"), [(COOPER_LAKE, ".dpbf16ps"), (SAPPHIRE_RAPIDS, ".tdpbf16ps")])
def test_code_for_processors_that_have_the_instruction(host: TargetHost, instruction: str) -> None:
    """Compiled, not run: any machine can."""
    target = ProductCompiler(host)
    plan = target.plan(problem_of(matrices(64, 64, 64, bfloat16)), exact=False)
    assert plan.kind.dots is not None
    assert instruction in target.text(plan.kind)
    assert HostCompiler(host).compile(target.text(plan.kind))


def test_other_processors_and_dtypes_refuse_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, pairs = PRODUCTS["matmul"]
    for dtype in (float32, float16):
        assert packed.refuse(matrices(64, 64, 64, dtype)) is None
        assert f"not {dtype}" in (pairs.refuse(matrices(64, 64, 64, dtype)) or "")
    made = matrices(64, 64, 64, bfloat16)
    monkeypatch.setattr("nnc_cpu.products.backend.has_bfloat16", lambda target: False)
    assert packed.refuse(made) is None
    assert pairs.refuse(made) == "the processor has no AVX512-BF16"
    monkeypatch.setattr("nnc_cpu.products.backend.has_bfloat16", lambda target: True)
    assert "quicker" in (packed.refuse(made) or "")
    assert pairs.refuse(made) is None
    with config.using(deterministic=True):
        assert packed.refuse(made) is None
        assert "config.deterministic" in (pairs.refuse(made) or "")


@where_able
def test_bits_are_those_of_sums_in_order_where_they_are_promised() -> None:
    made = matrices(40, 48, 65, bfloat16)
    a, b = (values(x, seed) for seed, x in enumerate(made.inputs))
    wanted = values(made.output, 99)
    interpreted(made, [a, b, wanted])
    x, y = nnc.asarray(a.reshape(40, 65)), nnc.asarray(b.reshape(65, 48))
    for _ in range(2):
        quick = nnc.jit(nnc.matmul)
        assert "[bfloat16 pairs" in quick.explain(x, y)
        quick(x, y)
        with config.using(deterministic=True):
            for f in (nnc.matmul, nnc.jit(nnc.matmul)):
                assert same_bits(np.asarray(f(x, y)).reshape(prod(made.output.shape)), wanted)


def test_large_eager_halves_run_the_same_code() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("bfloat16", "float16"):
        a, b = (nnc.asarray(rng.standard_normal(s).astype(np.float32)).astype(dtype) for s in ((40, 264), (264, 48)))
        np.testing.assert_array_equal(np.asarray(nnc.matmul(a, b)), np.asarray(nnc.jit(nnc.matmul)(a, b)))
        x, w = (nnc.asarray(rng.standard_normal(s).astype(np.float32)).astype(dtype)
                for s in ((2, 19, 19, 16), (3, 3, 16, 24)))
        np.testing.assert_array_equal(np.asarray(nnc.conv2d(x, w)), np.asarray(nnc.jit(nnc.conv2d)(x, w)))

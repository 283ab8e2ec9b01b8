"""Products of 8-bit integers, several steps by one instruction: exact on every width and every instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, int8, int32, uint8
from nnc_core.base.layout import Layout
from nnc_core.base.tiling import Tiling
from nnc_core.operator import OPERATORS
from nnc_core.operator.products.convolution import kernel_tiling
from nnc_core.operator.products.matmul import weight_tiling
from nnc_core.type import TensorSpec
from nnc_cpu.products.backend import PackedProducts, problem_of
from nnc_cpu.products.dots import dots_of, has_amx, has_words
from nnc_cpu.products.kernel import ProductCompiler
from tests.cpu.products.running import HOSTS, interpreted, run, small_tile, without
from tests.cpu.products.test_convolution import CASES, Windows
from tests.cpu.products.test_matmul import TURNED
from tests.cpu.products.test_panels import reading_panels

Values = np.ndarray[Any, Any]

PAIRS = [(a, b) for a in (int8, uint8) for b in (int8, uint8)]
WORDS = ("avx512vnni", "avxvnni")


EVERY = {**HOSTS, "here, by words": without(HOSTS["here"], "amx-tile"),
         **{f"{name}, without words": without(HOSTS[name], "amx-tile", *WORDS) for name in ("here", "eight lanes")},
         "plain instructions": HOSTS["any of its kind"]._replace(x86=False)}
_COMPILERS = {name: ProductCompiler(host) for name, host in EVERY.items()}


def integers(layout: Layout, seed: int) -> Values:
    """The whole range, with many of its ends."""
    ends = np.iinfo(layout.dtype)
    rng = np.random.default_rng(seed)
    found = rng.integers(ends.min, ends.max, max(layout.extent // layout.dtype.itemsize, 1), endpoint=True)
    found[rng.random(found.shape) < 0.2] = ends.min
    found[rng.random(found.shape) < 0.2] = ends.max
    return found.astype(layout.dtype)


def check(command: Command, host: str = "here", small: bool = False, given: Sequence[Values] = ()) -> None:
    arrays = list(given) or [integers(x, seed) for seed, x in enumerate(command.inputs)]
    ours, theirs = (np.full(max(command.output.extent // 4, 1), 77, np.int32) for _ in range(2))
    problem = problem_of(command)
    tile = small_tile(EVERY[host], problem) if small else None
    run(_COMPILERS[host].kernel(problem, tile), [*arrays, ours])
    interpreted(command, [*arrays, theirs])
    np.testing.assert_array_equal(ours, theirs)


def command_of(a: Layout, b: Layout, ta: bool = False, tb: bool = False, out: Layout | None = None) -> Command:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-1 if ta else -2], b.shape[-2 if tb else -1])
    return Command("matmul_integer", (ta, tb), (a, b), (out or Layout.packed(shape, int32),))


def matrices(m: int, n: int, k: int, pair: tuple[DType, DType], ta: bool = False, tb: bool = False) -> Command:
    a, b = pair
    return command_of(Layout.packed((k, m) if ta else (m, k), a), Layout.packed((n, k) if tb else (k, n), b), ta, tb)


@pytest.mark.parametrize("host", EVERY)
def test_all_remainders(host: str) -> None:
    """Rows, columns and steps around those of tiles, panels, vectors and words."""
    lanes = _COMPILERS[host].vector // 4
    width = 2 * lanes
    sizes = ((3, width, 4 * lanes), (4, width + 1, 4 * lanes + 1), (5, 2 * width - 1, 1), (7, 3, 31), (8, 1, 2),
             (6, 5, 3), (17, width + 17, 65), (33, 5, 131))
    for (ta, tb), pair in zip(TURNED, PAIRS, strict=True):
        for size in sizes:
            check(matrices(*size, pair, ta, tb), host, small=True)


@pytest.mark.parametrize("host", ["here", "here, by words"])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_blocks_of_rows_and_steps(pair: tuple[DType, DType], ta: bool, tb: bool, host: str) -> None:
    """More rows than a task has, more steps than are packed at once, tiles that are chosen."""
    check(matrices(143, 170, 1030, pair, ta, tb), host)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_rows_that_are_copied_once_for_several_panels(ta: bool, tb: bool) -> None:
    check(matrices(290, 530, 30, PAIRS[0], ta, tb))


@pytest.mark.parametrize(("a", "b"), [
    ((4, 5, 7), (4, 7, 33)), ((4, 5, 70), (4, 70, 33)), ((5, 7), (4, 7, 33)), ((2, 3, 1, 4, 1, 7), (3, 1, 4, 7, 5)),
])  # fmt: skip
def test_batches(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for host in ("here", "here, by words"):
        check(command_of(Layout.packed(a, int8), Layout.packed(b, int8)), host, small=True)


@pytest.mark.parametrize("steps", [9, 70])
def test_arrays_that_lie_apart(steps: int) -> None:
    for ta, tb in TURNED:
        a, b = (Layout((2, 3, rows, width), int8, offset, (rows * 3 * 85, 85, 255, 1)) for rows, width, offset in (
            (*((steps, 5) if ta else (5, steps)), 3), (*((21, steps) if tb else (steps, 21)), 1)))
        for host in ("here", "here, by words"):
            check(command_of(a, b, ta, tb), host, small=True)


def test_sums_wrap_around() -> None:
    """As no network's do: 34,000 times 255 times 255 is beyond int32."""
    command = matrices(2, 20, 34_000, (uint8, uint8))
    check(command, given=[np.full(x.size, 255, np.uint8) for x in command.inputs])


def convolution(windows: Windows, pair: tuple[DType, DType]) -> Command:
    x, kernel = map(Layout.packed, (windows.image, windows.kernel), pair)
    spec = OPERATORS["conv_integer"].infer(*[TensorSpec(y.shape, y.dtype) for y in (x, kernel)], *windows.attributes)
    return Command("conv_integer", windows.attributes, (x, kernel), (spec.layout(),))


@pytest.mark.parametrize("host", EVERY)
def test_convolutions(host: str) -> None:
    for n, (name, windows) in enumerate(CASES.items()):
        if "depthwise" not in name:
            made = convolution(windows, PAIRS[n % 4])
            check(made, host, small=True)


@pytest.mark.parametrize("windows", [
    Windows((2, 12, 13, 300), (2, 2, 300, 20), (1, 1), ((1, 0), (0, 1)), (1, 1)),
    Windows((1, 18, 17, 60), (3, 3, 60, 40), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Windows((1, 9, 8, 700), (3, 3, 700, 30), (2, 2), ((1, 1), (1, 1)), (1, 1)),
], ids=["many channels", "many rows", "more channels than a block"])  # fmt: skip
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_blocks_of_convolutions(windows: Windows, pair: tuple[DType, DType]) -> None:
    check(convolution(windows, pair))


def check_packed(command: Command, tiling: Tiling, host: str) -> None:
    """The same with weights that were packed before."""
    a, b = (integers(x, seed) for seed, x in enumerate(command.inputs))
    ours, theirs = (np.full(command.output.size, 77, np.int32) for _ in range(2))
    packed = tiling.pack(b.reshape(command.inputs[1].shape)).reshape(-1)
    run(_COMPILERS[host].kernel(problem_of(reading_panels(command, tiling))), [a, packed, ours])
    interpreted(command, [a, b, theirs])
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("host", [name for name, host in EVERY.items() if has_words(host)])
def test_bits_do_not_depend_on_packing(host: str) -> None:
    width = _COMPILERS[host].vector // 2
    for a in (int8, uint8):
        for tb, columns, steps in ((False, width // 2, 19), (True, width + 3, 520), (False, 3 * width + 1, 37)):
            check_packed(matrices(7, columns, steps, (a, int8), tb=tb), weight_tiling(tb, width, 4), host)
    for name in ("3x3", "strides", "pointwise", "one dimension"):
        made = convolution(CASES[name], (int8, int8))
        check_packed(made, kernel_tiling(len(made.inputs[1].shape), width // 2, 4), host)


def test_wanted_are_words_of_weights() -> None:
    products, convolutions = (PackedProducts(name) for name in ("matmul_integer", "conv_integer"))
    kernels = [(3, 3, 64, 64), (3, 3, 63, 64), (5, 5, 6, 500)]
    made = [convolution(Windows((1, 8, 8, kernel[2]), kernel, (1, 1), ((0, 0), (0, 0)), (1, 1)), (uint8, int8))
            for kernel in kernels]
    if has_words(HOSTS["here"]):
        [(_, tiling)] = products.wants(matrices(5, 300, 400, (int8, int8), tb=True)).items()
        assert tiling.blocks[1] == 4
        assert products.refuse(reading_panels(matrices(5, 300, 400, (int8, int8), tb=True), tiling)) is None
        [(_, tiling)] = convolutions.wants(made[0]).items()
        assert convolutions.refuse(reading_panels(made[0], tiling)) is None
        assert [bool(convolutions.wants(x)) for x in made] == [True, True, False]
        pairs = weight_tiling(False, 32, 2)
        assert "other code" in (products.refuse(reading_panels(matrices(5, 300, 400, (int8, int8)), pairs)) or "")
    assert bool(products.wants(matrices(5, 300, 400, (int8, uint8)))) == has_amx(HOSTS["here"])


def test_constant_weights_are_packed_when_a_graph_is_compiled() -> None:
    layouts = Layout.packed((9, 400), int8), Layout.packed((400, 300), int8)
    q, w = (nnc.asarray(integers(x, seed).reshape(x.shape)) for seed, x in enumerate(layouts))
    with nnc.deferred():
        y = nnc.matmul_integer(q, w)
    frozen = nnc.export({"q": q}, {"y": y}, capture="constant").compile()
    assert ("unpack" in frozen.explain()) == has_words(HOSTS["here"])
    np.testing.assert_array_equal(np.asarray(frozen(q=q)["y"]), np.asarray(nnc.matmul_integer(q, w)))


def test_what_hosts_do() -> None:
    found = {host: dots_of(problem_of(matrices(8, 8, 8, pair)), _COMPILERS[host].target)
             for host, pair in (("any of its kind", PAIRS[0]), ("plain instructions", PAIRS[0]))}
    assert {host: dots and dots.instruction for host, dots in found.items()} == {
        "any of its kind": "llvm.x86.sse2.pmadd.wd" if HOSTS["here"].x86 else "", "plain instructions": ""}

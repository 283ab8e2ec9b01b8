"""Convolutions as products: the interpreter's bits, for windows of every kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.type import TensorSpec
from nnc_cpu.device import CpuDevice
from nnc_cpu.products import right
from nnc_cpu.products.backend import PackedProducts, problem_of
from nnc_cpu.products.numbers import names_of
from nnc_cpu.products.plan import Tile, plan_of
from nnc_cpu.products.taps import taps_of
from tests.cpu.products.running import HOSTS, compiler, interpreted, run, same_bits, values

SMALL_TILE = Tile(3, 2)


class Windows(NamedTuple):
    """A convolution: images, kernel, and how windows slide."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def attributes(self) -> tuple[Any, ...]:
        order = {3: "NWC", 4: "NHWC", 5: "NDHWC"}[len(self.image)]
        return self.strides, self.padding, self.dilation, self.groups, order


CASES = {
    "3x3": Windows((2, 6, 7, 5), (3, 3, 5, 9), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "strides": Windows((2, 9, 8, 4), (3, 2, 4, 6), (2, 3), ((1, 0), (0, 1)), (1, 1)),
    "dilation": Windows((1, 9, 9, 3), (3, 3, 3, 4), (1, 1), ((2, 2), (1, 3)), (2, 3)),
    "strides and dilation": Windows((1, 11, 9, 3), (3, 3, 3, 4), (2, 2), ((2, 1), (1, 2)), (3, 2)),
    "groups": Windows((2, 5, 5, 8), (3, 3, 4, 6), (1, 1), ((1, 1), (1, 1)), (1, 1), 2),
    "pointwise": Windows((2, 4, 5, 7), (1, 1, 7, 33), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    "pointwise with strides": Windows((2, 5, 6, 7), (1, 1, 7, 5), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    "one dimension": Windows((3, 20, 4), (5, 4, 6), (2,), ((2, 1),), (1,)),
    "three dimensions": Windows((2, 4, 3, 5, 3), (2, 3, 2, 3, 4), (1, 2, 1), ((1, 0), (1, 1), (0, 1)), (1, 1, 2)),
    "more padding than image": Windows((1, 2, 2, 3), (3, 3, 3, 4), (1, 1), ((4, 4), (3, 5)), (1, 1)),
    "depthwise": Windows((2, 6, 7, 70), (3, 3, 1, 70), (1, 1), ((1, 1), (1, 1)), (1, 1), 70),
    "depthwise with strides": Windows((2, 9, 8, 5), (3, 3, 1, 5), (2, 2), ((0, 1), (1, 1)), (1, 1), 5),
    "depthwise of one image": Windows((1, 9, 8, 37), (2, 5, 1, 37), (1, 2), ((2, 1), (1, 1)), (3, 1), 37),
    "depthwise along one axis": Windows((3, 40, 20), (5, 1, 20), (2,), ((2, 1),), (2,), 20),
    "depthwise along three axes": Windows((2, 4, 3, 5, 6), (2, 3, 2, 1, 6), (1, 2, 1), ((1, 0), (1, 1), (0, 1)),
                                             (1, 1, 2), 6),
    "two filters for each channel": Windows((1, 6, 7, 5), (3, 3, 1, 10), (1, 1), ((1, 1), (1, 1)), (1, 1), 5),
    "runs of elements and channels": Windows((2, 7, 9, 3), (5, 3, 3, 6), (1, 2), ((2, 2), (0, 0)), (2, 1)),
    "runs that end inside": Windows((2, 7, 9, 1), (2, 4, 1, 5), (1, 2), ((1, 0), (0, 1)), (1, 1)),
    "one channel": Windows((2, 7, 7, 1), (5, 5, 1, 6), (1, 1), ((2, 2), (2, 2)), (1, 1)),
    "windows within images": Windows((2, 7, 29, 3), (3, 3, 3, 20), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "depthwise within images": Windows((2, 7, 29, 37), (3, 3, 1, 37), (1, 1), ((1, 1), (1, 1)), (1, 1), 37),
    "few places on each axis": Windows((5, 3, 2, 3, 2), (2, 1, 2, 2, 3), (1, 1, 1), ((0, 0), (0, 0), (0, 0)),
                                       (1, 1, 1)),
}  # fmt: skip


def command(operator: str, windows: Windows, dtype: DType) -> Command:
    """One of the three operators; the two that are not the result are its inputs."""
    x, kernel = (Layout.packed(shape, dtype) for shape in (windows.image, windows.kernel))
    spec = OPERATORS["conv"].infer(*[TensorSpec(y.shape, dtype) for y in (x, kernel)], *windows.attributes)
    y = spec.layout()
    last = len(windows.image) - 1
    if operator == "conv":
        return Command(operator, windows.attributes, (x, kernel), (y,))
    if operator == "conv_input_gradient":
        return Command(operator, (windows.image[1:last], *windows.attributes), (y, kernel), (x,))
    return Command(operator, (windows.kernel[:-2], *windows.attributes), (x, y), (kernel,))


def check(command: Command, host: str = "here", tile: Tile | None = None) -> None:
    given = [values(x, seed) for seed, x in enumerate(command.inputs)]
    ours, theirs = (values(command.output, 99) for _ in range(2))
    run(compiler(host).kernel(problem_of(command), tile), [*given, ours])
    interpreted(command, [*given, theirs])
    assert same_bits(ours, theirs)


OPERATIONS = ("conv", "conv_input_gradient", "conv_kernel_gradient")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_bits_are_the_interpreters(operator: str, host: str) -> None:
    for name, windows in CASES.items():
        made = command(operator, windows, float32)
        check(made, host, Tile(min(SMALL_TILE.rows, problem_of(made).rows), 2)), name


STRIPS = {
    "several segments in a block": Windows((2, 6, 7, 5), (3, 3, 5, 200), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "segments in blocks": Windows((1, 4, 4, 300), (2, 2, 300, 150), (1, 1), ((1, 0), (0, 1)), (1, 1)),
    "strides, dilation and groups": Windows((2, 9, 9, 8), (3, 2, 4, 260), (2, 1), ((1, 1), (0, 1)), (1, 2), 2),
    "rows in blocks": Windows((2, 15, 16, 40), (3, 3, 40, 97), (1, 1), ((1, 1), (1, 1)), (1, 1)),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", STRIPS)
def test_strips_of_panels(name: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All panels of a task have one table of what windows see; a large kernel is read where it lies."""
    monkeypatch.setattr(right, "LARGE_BESIDE_WINDOWS", 0)
    made = command("conv", STRIPS[name], float32)
    with config.using(threads=1):
        assert compiler(host).plan(problem_of(made), SMALL_TILE).kind.strips
        check(made, host, SMALL_TILE)
        check(made, host)


@pytest.mark.parametrize("name", ["depthwise along one axis", "strides and dilation"])
def test_pixels_that_no_element_of_a_window_sees_are_zero(name: str) -> None:
    made = command("conv_input_gradient", CASES[name], float32)
    check(made, "here", Tile(3, 2))
    given = [values(x, seed) for seed, x in enumerate(made.inputs)]
    found = values(made.output, 99)
    run(compiler("here").kernel(problem_of(made)), [*given, found])
    assert (found.reshape(made.output.shape)[:, 1::2] == 0).all() or name == "strides and dilation"


FIRST_LAYERS = {
    "one channel": Windows((3, 12, 13, 1), (5, 5, 1, 21), (1, 1), ((2, 2), (0, 0)), (1, 1)),
    "many runs": Windows((2, 30, 31, 1), (3, 3, 1, 40), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "strides and dilation": Windows((2, 23, 29, 1), (3, 2, 1, 6), (2, 3), ((2, 1), (1, 2)), (3, 2)),
    "three channels": Windows((2, 17, 18, 3), (3, 3, 3, 16), (2, 2), ((0, 1), (0, 0)), (1, 1)),
    "groups": Windows((2, 9, 9, 4), (2, 2, 2, 34), (1, 1), ((1, 0), (0, 1)), (1, 1), 2),
    "one dimension": Windows((3, 300, 2), (4, 2, 6), (1,), ((2, 1),), (1,)),
    "three dimensions": Windows((2, 4, 5, 6, 1), (2, 2, 3, 1, 4), (1, 2, 1), ((1, 0), (1, 1), (0, 0)), (1, 1, 1)),
}  # fmt: skip
"""Convolutions of few channels and few elements."""


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FIRST_LAYERS)
def test_elements_of_windows_among_the_rows(name: str, host: str, dtype: DType) -> None:
    made = command("conv_kernel_gradient", FIRST_LAYERS[name], dtype)
    problem = problem_of(made)
    taps = problem.batch[-1]
    assert taps > 1
    assert taps_of(problem, wide=True) == taps
    check(made, host, Tile(taps * problem.rows, 1))


@pytest.mark.parametrize(("threads", "taps"), [(1, 5), (2, 5), (5, 1)])
def test_elements_are_among_the_rows_where_so_many_threads_are_done_sooner(threads: int, taps: int) -> None:
    windows = Windows((100, 28, 28, 1), (5, 5, 1, 32), (1, 1), ((2, 2), (0, 0)), (1, 1))
    problem = problem_of(command("conv_kernel_gradient", windows, float32))
    assert plan_of(problem, 64, threads=threads).kind.taps == taps


@pytest.mark.parametrize(("windows", "dtype"), [
    (Windows((2, 12, 12, 3), (7, 7, 3, 8), (1, 1), ((3, 3), (0, 0)), (1, 1)), float32),
    (FIRST_LAYERS["one channel"], bfloat16),
    (CASES["3x3"], float32),
], ids=["more rows than registers", "converted", "many channels"])  # fmt: skip
def test_elements_that_cannot_be_among_the_rows(windows: Windows, dtype: DType) -> None:
    assert taps_of(problem_of(command("conv_kernel_gradient", windows, dtype)), wide=True) == 1


@pytest.mark.parametrize("operator", OPERATIONS)
def test_other_dtypes_and_tiles_that_are_chosen(operator: str) -> None:
    check(command(operator, CASES["strides"], bfloat16))
    check(command(operator, CASES["groups"], float16))
    check(command(operator, CASES["3x3"], float64))
    check(command(operator, CASES["groups"], float32))


@pytest.mark.parametrize("operator", OPERATIONS)
@pytest.mark.parametrize("windows", [
    Windows((2, 12, 13, 300), (2, 2, 300, 20), (1, 1), ((1, 0), (0, 1)), (1, 1)),
    Windows((1, 18, 17, 60), (3, 3, 60, 40), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Windows((1, 9, 8, 4), (7, 7, 4, 300), (2, 2), ((3, 3), (3, 3)), (1, 1)),
], ids=["many channels", "many rows", "many outputs"])  # fmt: skip
def test_blocks_of_rows_and_steps(operator: str, windows: Windows) -> None:
    check(command(operator, windows, float32))


LARGE = {
    "depthwise": Windows((1, 60, 61, 150), (3, 3, 1, 150), (1, 1), ((1, 1), (1, 1)), (1, 1), 150),
    "depthwise with strides": Windows((2, 41, 60, 113), (3, 3, 1, 113), (2, 2), ((0, 1), (1, 1)), (1, 1), 113),
    "pointwise": Windows((1, 60, 61, 150), (1, 1, 150, 24), (1, 1), ((0, 0), (0, 0)), (1, 1)),
}  # fmt: skip
"""Images of which tiles send for what comes next."""


@pytest.mark.parametrize("name", LARGE)
def test_tiles_of_large_images_send_for_all_that_the_next_block_reads(name: str) -> None:
    made = command("conv", LARGE[name], float32)
    check(made)
    problem = problem_of(made)
    kind, numbers, _ = compiler("here").plan(problem)
    given = dict(zip(names_of(kind), numbers, strict=True))
    tiles = given["panels"] * -(-given["block_rows"] // kind.rows)
    assert given["stream_share"] * tiles >= given["block_rows"] * given["stream_row"] > 0
    image = problem.rows * given["stream_row"]
    assert abs(image / np.prod(LARGE[name].image) - 1) < 0.05, "every pixel once"
    small = command("conv", LARGE[name]._replace(image=(1, 20, 20, LARGE[name].image[-1])), float32)
    kind, numbers, _ = compiler("here").plan(problem_of(small))
    assert dict(zip(names_of(kind), numbers, strict=True))["stream_share"] == 0, "it stays in the cache"


@pytest.mark.parametrize("host", HOSTS)
def test_tables_serve_all_panels_of_their_rows(host: str) -> None:
    """More rows than a block has, so that tables are written, moved on, and written anew."""
    for windows in (Windows((1, 20, 24, 70), (3, 3, 1, 70), (1, 1), ((1, 1), (1, 1)), (1, 1), 70),
                    Windows((1, 20, 24, 3), (3, 3, 3, 40), (1, 1), ((1, 1), (1, 1)), (1, 1)),
                    Windows((1, 20, 24, 4), (3, 3, 2, 80), (1, 1), ((1, 1), (1, 1)), (1, 1), 2)):
        made = command("conv", windows, float32)
        kind, numbers, _ = compiler(host).plan(problem_of(made), SMALL_TILE)
        given = dict(zip(names_of(kind), numbers, strict=True))
        assert given["panels"] > 1
        assert given["blocks"] > 1
        check(made, host, SMALL_TILE)


def test_layers_of_networks_are_one_command_each() -> None:
    rng = np.random.default_rng(0)
    x, w, bias = (nnc.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((2, 9, 9, 8), (3, 3, 8, 16), (16,)))
    with nnc.deferred():
        y = nnc.relu(nnc.conv2d(x, w, padding="SAME") + bias)
    run = nnc.export({"x": x, "w": w, "bias": bias}, {"y": y}).compile()
    assert "fused(conv add relu)" in run.explain() and "[packed; " in run.explain()
    apart = np.maximum(np.asarray(nnc.conv2d(x, w, padding="SAME")) + np.asarray(bias), 0)
    np.testing.assert_allclose(np.asarray(run(x=x, w=w, bias=bias)["y"]), apart, rtol=1e-5, atol=1e-5)


def test_operands_that_lie_apart_are_refused_where_rows_are_pixels() -> None:
    made = command("conv", CASES["3x3"], float32)
    x, kernel = made.inputs
    step = 4 * 5
    refused = {
        "contiguous": made._replace(inputs=(Layout(x.shape, float32, 0, (step * 84, step * 14, 2 * step, 8)), kernel)),
        "lie apart": made._replace(outputs=(Layout((2, 6, 7, 9), float32, 0, (4000, 400, 36, 4)),)),
        "channels are not the last": made._replace(attributes=(*made.attributes[:-1], "NCHW")),
        "depthwise convolutions of float16": command("conv", CASES["depthwise"], float16),
        "nothing to multiply": made._replace(inputs=(Layout.packed((0, 6, 7, 5), float32), kernel)),
    }
    for reason, wrong in refused.items():
        assert reason in (PackedProducts("conv").refuse(wrong) or ""), reason


@st.composite
def apart(draw: st.DrawFn) -> Windows:
    """Windows that lie apart on some axis, of images of one to three dimensions."""
    rank = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 9 if rank < 3 else 5)) for _ in range(rank)]
    window = [draw(st.integers(1, 4)) for _ in range(rank)]
    dilation = [draw(st.integers(1, 3)) for _ in range(rank)]
    padding = []
    for size, elements, step in zip(sizes, window, dilation, strict=True):
        least = max(0, (elements - 1) * step + 1 - size)
        before = draw(st.integers(0, least + 2))
        padding.append((before, max(0, least - before) + draw(st.integers(0, 2))))
    strides = [draw(st.integers(1, 4)) for _ in range(rank)]
    groups = draw(st.sampled_from((1, 1, 2)))
    taken, given = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    return Windows((draw(st.integers(1, 2)), *sizes, groups * taken), (*window, taken, groups * given), tuple(strides),
                   tuple(padding), tuple(dilation), groups)


@given(windows=apart(), operator=st.sampled_from(OPERATIONS), dtype=st.sampled_from((float32, float64)))
def test_windows_of_any_size_and_distance(windows: Windows, operator: str, dtype: DType) -> None:
    made = command(operator, windows, dtype)
    check(made, tile=Tile(min(3, problem_of(made).rows), 1))


def test_gradients_of_depthwise_kernels_go_through_the_images_once() -> None:
    wide = Windows((2, 20, 20, 70), (3, 3, 1, 70), (1, 1), ((1, 1), (1, 1)), (1, 1), 70)
    made = command("conv_kernel_gradient", wide, float32)
    assert PackedProducts("conv_kernel_gradient").refuse(made) is None
    problem = problem_of(made)
    assert (problem.rows, problem.columns, problem.steps) == (9, 70, 800), "elements of the kernel by channels"
    solid = Windows((2, 6, 9, 9, 70), (3, 3, 3, 1, 70), (1, 1, 1), ((1, 1), (1, 1), (1, 1)), (1, 1, 1), 70)
    refused = PackedProducts("conv_kernel_gradient").refuse(command("conv_kernel_gradient", solid, float32))
    assert "lanes that are not there" in (refused or ""), "images of three dimensions are left to their loop nest"


def test_updates_of_depthwise_kernels_are_one_command_with_their_gradient() -> None:
    rng = np.random.default_rng(0)
    x, w = (nnc.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((4, 12, 13, 40), (3, 3, 1, 40)))

    def step(x: nnc.Tensor, w: nnc.Tensor) -> Any:
        by_w = nnc.grad(lambda w: nnc.sum(nnc.conv2d(x, w, padding="SAME", groups=40) ** 2))(w)
        return w - 0.01 * by_w

    compiled = nnc.jit(step)
    assert "fused(conv_kernel_gradient multiply subtract)" in compiled.explain(x, w)
    for deterministic in (True, False):
        with nnc.config.using(deterministic=deterministic):
            ours, theirs = np.asarray(compiled(x, w)), np.asarray(step(x, w))
        assert (ours == theirs).all() or not deterministic
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_pixels_that_no_window_sees_are_ended_too() -> None:
    g, w = (nnc.asarray(np.full(shape, 1.0, np.float32)) for shape in ((2, 8, 8, 16), (1, 1, 16, 16)))
    f = nnc.jit(lambda g, w: nnc.exp(nnc.conv_transpose2d(g, w, strides=2) + 1.0))
    found = np.asarray(f(g, w))
    np.testing.assert_allclose(found[:, ::2, ::2], np.exp(17.0), rtol=1e-5)
    np.testing.assert_allclose(found[:, 1::2], np.exp(1.0), rtol=1e-5)
    np.testing.assert_allclose(found[:, :, 1::2], np.exp(1.0), rtol=1e-5)


def test_gradients_by_windows_that_lie_apart_are_one_command_each() -> None:
    rng = np.random.default_rng(0)
    x, w = (nnc.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((2, 9, 8, 16), (3, 3, 16, 24)))
    with nnc.deferred():
        y = nnc.conv2d(x, w, strides=2, padding="SAME")
        by_x, by_w = nnc.grad(lambda x, w: nnc.sum(nnc.conv2d(x, w, strides=2, padding="SAME") ** 2), (0, 1))(x, w)
    run = nnc.export({"x": x, "w": w}, {"y": y, "by_x": by_x, "by_w": by_w}).compile()
    text = run.explain()
    assert "numpy" not in text and text.count("[packed; ") == 3


def test_images_of_few_channels_are_padded_for_their_convolution_and_its_gradient() -> None:
    rng = np.random.default_rng(0)
    x, w = (nnc.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((6, 12, 13, 3), (5, 5, 3, 16)))

    def both(x: nnc.Tensor, w: nnc.Tensor) -> Any:
        def loss(w: nnc.Tensor) -> nnc.Tensor:
            return nnc.sum(nnc.conv2d(x, w, strides=2, padding="SAME") ** 2)

        return nnc.conv2d(x, w, strides=2, padding="SAME"), nnc.grad(loss)(w)

    compiled = nnc.jit(both)
    found = compiled(x, w)
    text = compiled.explain(x, w)
    assert text.count("pad(") == 1 and text.count("[packed; ") == 2
    with nnc.config.using(deterministic=True):
        for ours, theirs in zip(found, both(x, w), strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-4)


def test_what_other_code_does_sooner_is_left_to_it() -> None:
    few = Windows((8, 20, 20, 2), (3, 3, 2, 16), (1, 1), ((1, 1), (1, 1)), (1, 1))
    one = Windows((8, 20, 20, 2), (3, 3, 2, 1), (1, 1), ((1, 1), (1, 1)), (1, 1))
    assert PackedProducts("conv").refuse(command("conv", few, float32)) is None
    for operator, windows in (("conv_kernel_gradient", few), ("conv", one)):
        made = command(operator, windows, float32)
        assert "lanes that are not there" in (PackedProducts(operator).refuse(made) or "")
        [*_, chosen] = [b for b in CpuDevice(machine_code=True).backends(operator) if b.refuse(made) is None]
        assert chosen.fallback, "its loop nest goes first"

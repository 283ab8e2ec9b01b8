"""Elementwise kernels that load and store words: the interpreter's bits wherever arrays lie, and what NVRTC makes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, bfloat16, boolean, float16, float32, float64, int8, int64
from nnc_core.base.errors import PluginError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import CLikeKernel, GroupsWriter, expand, general, interpret, program_of
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest
from nnc_cuda import nvrtc, vectors
from nnc_cuda.device import CudaDevice
from nnc_cuda.dialect import CUDA
from nnc_cuda.kernel import THREADS
from nnc_cuda.vectors import WORTH, VectorsWriter, threads_of, width_of, writers_of
from tests.cpu.products.running import same_bits, values

WIDTHS = [(float32, 4), (float64, 2), (float16, 8), (bfloat16, 8), (int8, 8), (boolean, 8), (int64, 2)]


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words pay from a few points on."""
    monkeypatch.setattr(vectors, "WORTH", 300)


def nest_of(name: str, *layouts: Layout, attributes: tuple[Any, ...] = ()) -> LoopNest:
    """The nest of an elementwise operator on these inputs and an output, the last."""
    op = OPERATORS[name]
    assert op.scalar is not None
    return elementwise_nest(op.scalar, Command(name, attributes, layouts[:-1], layouts[-1:]))


def check(device: CudaDevice, nest: LoopNest, *layouts: Layout) -> bool:
    """Tell whether the bits are those of the interpreter, in all of the output's storage."""
    *inputs, ours = (values(x, seed) for seed, x in enumerate(layouts))
    theirs = ours.copy()
    buffers = [device.allocate(array.nbytes) for array in (*inputs, ours)]
    for array, buffer in zip((*inputs, ours), buffers, strict=True):
        device.upload(array, buffer)
    device.compile(nest).bind(buffers)()
    device.download(buffers[-1], ours).wait()
    interpret(expand(nest), [array.reshape(-1).view(np.uint8) for array in (*inputs, theirs)])
    return same_bits(ours, theirs)


def at(first: int, *shape: int, dtype: DType = float32, gap: int = 0) -> Layout:
    """A packed array, or one with a gap behind each row, from an element of its storage on."""
    packed = Layout.packed(shape, dtype)
    strides = [*packed.strides]
    if gap:
        strides[-2] += gap * dtype.itemsize
    return Layout(shape, dtype, first * dtype.itemsize, tuple(strides))


@pytest.mark.parametrize(("dtype", "width"), WIDTHS, ids=str)
def test_words_of_every_dtype(gpu: CudaDevice, dtype: DType, width: int) -> None:
    """Whole words, words and a rest, and a word less than one."""
    for count in (8 * THREADS, 8 * THREADS + 3, 301):
        x = at(0, count, dtype=dtype)
        nest = nest_of("maximum", x, x, x)
        assert writers_of(general(nest)[0]) == (VectorsWriter,) and width_of(nest) == width
        assert check(gpu, nest, x, x, x)


def test_nothing_is_written_behind_the_last_point(gpu: CudaDevice) -> None:
    for count in (1025, 1026, 1027):
        x, beside = at(0, count), np.full(1032, 7, np.float32)
        buffer = gpu.allocate(beside.nbytes)
        gpu.upload(beside, buffer)
        gpu.compile(nest_of("negative", x, x)).bind([buffer, buffer])()
        gpu.download(buffer, beside).wait()
        np.testing.assert_array_equal(beside, np.where(np.arange(1032) < count, -7, 7))


@pytest.mark.parametrize("first", range(5))
def test_wherever_arrays_begin(gpu: CudaDevice, first: int) -> None:
    """One code for all: its addresses are looked at when it runs."""
    x, y, out = at(first, 1030), at(0, 1030), at(4 - first, 1030)
    assert check(gpu, nest_of("add", x, y, out), x, y, out)
    small = at(first, 1030, dtype=float16)
    assert check(gpu, nest_of("cast", small, y, attributes=(float32,)), small, y)


@pytest.mark.parametrize("columns", [64, 66, 67])
def test_rows(gpu: CudaDevice, columns: int) -> None:
    """Rows of whole words, of halves of words, and others; a row for all, a number for each row, rows with gaps."""
    whole_rows, row, column = at(0, 40, columns), at(0, columns), at(0, 40, 1)
    for one in (row, column):
        assert check(gpu, nest_of("add", whole_rows, one, whole_rows), whole_rows, one, whole_rows)
    for gap in (8, 4, 1):
        apart = at(0, 40, columns, gap=gap)
        assert check(gpu, nest_of("multiply", apart, row, whole_rows), apart, row, whole_rows)
        assert check(gpu, nest_of("multiply", whole_rows, row, apart), whole_rows, row, apart)


def test_words_that_would_go_beyond_a_row(gpu: CudaDevice) -> None:
    """Rows begin where words may, and end in the middle of one."""
    apart, row = at(0, 40, 66, gap=6), at(0, 66)
    assert writers_of(general(nest_of("add", apart, row, apart))[0]) == (VectorsWriter,)
    assert check(gpu, nest_of("add", apart, row, apart), apart, row, apart)


def test_what_lies_across_is_loaded_one_by_one(gpu: CudaDevice) -> None:
    x, out = at(0, 48, 64), at(0, 48, 64)
    across = x._replace(strides=(4, 4 * 48))
    assert check(gpu, nest_of("subtract", x, across, out), x, across, out)


def test_memory_that_is_written_over(gpu: CudaDevice) -> None:
    given = np.arange(1030, dtype=np.float32)
    buffer = gpu.allocate(given.nbytes)
    gpu.upload(given, buffer)
    x = at(0, 1030)
    gpu.compile(nest_of("add", x, x, x)).bind([buffer] * 3)()
    found = np.empty_like(given)
    gpu.download(buffer, found).wait()
    np.testing.assert_array_equal(found, 2 * given)


def test_words_are_where_addresses_are_aligned(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose words are wrong: its results are where they are taken."""
    right = VectorsWriter.word

    def doubled(self: VectorsWriter, instruction: Any, number: int) -> None:
        right(self, instruction, number)
        if instruction.operation == "load":
            self.line(f"for (int n = 0; n < 4; ++n) w{number}.n[n] *= 2;")

    monkeypatch.setattr(VectorsWriter, "word", doubled)
    for first, count, taken in ((0, 1030, True), (4, 1030, True), (1, 1030, False), (2, 1030, False),
                                (0, 299, False)):  # as many threads as points
        x = at(first, count)
        assert check(device, nest_of("negative", x, x), x, x) == (not taken), (first, count)


def test_what_is_left_to_other_kernels() -> None:
    def writers(nest: LoopNest) -> object:
        return writers_of(general(nest)[0])

    x, across = at(0, 48, 64), at(0, 48, 64)._replace(strides=(4, 4 * 48))
    assert writers(nest_of("add", x, x, across)) == (CLikeKernel,), "results lie across"
    assert writers(nest_of("lgamma", x, x)) == (CLikeKernel,), "too much is computed"
    assert writers(nest_of("add", at(0, 9), at(0, 9), at(0, 9))) == (CLikeKernel,), "few points"
    rows = OPERATORS["sum"].nest(Command("sum", ((1,), False), (x,), (at(0, 48),)))  # type: ignore[misc]
    assert issubclass(writers(rows)[0], GroupsWriter)  # type: ignore[index]


def test_few_points_have_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    few, many = (nest_of("add", *[at(0, count)] * 3) for count in (WORTH - 1, WORTH + 1))
    assert threads_of(few) == WORTH - 1 and threads_of(many) == WORTH // 4 + 1


# ---- NVRTC
@pytest.fixture(scope="module")
def ptx() -> nvrtc.NVRTC:
    try:
        compiler = nvrtc.NVRTC((8, 0))
    except PluginError as error:
        pytest.skip(f"{error.message}: {error.hint}")
    compiler.target, compiler.options = "compute_80", ("--gpu-architecture=compute_80", *nvrtc.OPTIONS)
    return compiler


@pytest.mark.parametrize(("dtype", "word"), [(float32, "v4.f32"), (float64, "v2.f64"), (float16, "v4.u32")], ids=str)
def test_words_are_one_instruction(ptx: nvrtc.NVRTC, dtype: DType, word: str) -> None:
    x = at(0, 100_000, dtype=dtype)
    made = ptx.compile(program_of({"k": (general(nest_of("add", x, x, x))[0], VectorsWriter)}, CUDA)).decode()
    assert len(re.findall(rf"ld\.global\.{word}", made)) == 2 and len(re.findall(rf"st\.global\.{word}", made)) == 1

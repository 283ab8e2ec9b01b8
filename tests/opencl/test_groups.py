"""Kernels for devices that run work items in groups, with local memory and barriers: right on every device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import DType, accumulator, float16, float32, float64, int32, int64
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import CLikeKernel, expand, interpret, writers_for_groups
from nnc_core.codegen.clike_group_columns import GroupColumnsWriter
from nnc_core.codegen.clike_groups import GroupsWriter
from nnc_core.codegen.clike_two_pass import ChunksWriter
from nnc_core.codegen.group_states import CHUNK
from nnc_opencl.device import OpenCLDevice
from tests.cpu.products.running import same_bits, values, whole
from tests.opencl.grouped import grouped
from tests.opencl.test_runs import nest_of, softmax_nest

Values = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def gpu(_opened: tuple[OpenCLDevice | None, str]) -> Iterator[OpenCLDevice]:
    device, fault = _opened
    if device is None:
        pytest.skip(f"no OpenCL device works here: {fault}")
    made = grouped(device)
    yield made
    made.close()


def run(gpu: OpenCLDevice, nest: LoopNest, y: Layout, *inputs: Values) -> Values:
    result = np.full(whole(y), 9).astype(y.dtype)
    buffers = [gpu.allocate(array.nbytes) for array in (*inputs, result)]
    for array, buffer in zip((*inputs, result), buffers, strict=True):
        gpu.upload(array, buffer)
    gpu.compile(nest).bind(buffers)()
    gpu.download(buffers[-1], result).wait()
    return result


def interpreted(nest: LoopNest, y: Layout, *inputs: Values) -> Values:
    result = np.full(whole(y), 9).astype(y.dtype)
    interpret(expand(nest), [array.reshape(-1).view(np.uint8) for array in (*inputs, result)])
    return result


def lanes(count: int) -> int:
    return max(32, min(256, 1 << (count - 1).bit_length()))


def tree(parts: Values) -> Values:
    """The sum of lanes, which lie along the last axis."""
    while parts.shape[-1] > 1:
        half = parts.shape[-1] // 2
        parts = parts[..., :half] + parts[..., half:]
    return parts[..., 0]


def sum_of(rows: Values) -> Values:
    """Sums along the last axis in the order of a group."""
    if rows.shape[-1] > CHUNK:
        cuts = range(CHUNK, rows.shape[-1], CHUNK)
        return folded(np.stack([folded(part, 256) for part in np.split(rows, cuts, -1)], -1), 256)
    return folded(rows, lanes(rows.shape[-1]))


def folded(rows: Values, count: int) -> Values:
    parts = np.zeros((*rows.shape[:-1], count), rows.dtype)
    for place in range(rows.shape[-1]):
        parts[..., place % count] += rows[..., place]
    return tree(parts)


@pytest.mark.parametrize(("shape", "axes", "writer"), [
    ((3, 700), (1,), GroupsWriter), ((40, 33), (1,), GroupsWriter), ((7, 64), (1,), GroupsWriter),
    ((5003,), (0,), GroupsWriter), ((4, 6, 50), (1, 2), GroupsWriter), ((5, 31), (1,), CLikeKernel),
    ((2, 3, 20000), (2,), GroupsWriter), ((1, 70001), (1,), ChunksWriter), ((3, 2, 65536), (2,), ChunksWriter),
    ((700, 40), (0,), GroupColumnsWriter), ((33, 100), (0,), GroupColumnsWriter),
    ((3, 60, 5, 33), (1, 2), GroupColumnsWriter), ((17000, 40), (0,), GroupColumnsWriter)])  # fmt: skip
def test_sums_are_folded_in_the_order_of_groups(gpu: OpenCLDevice, shape: tuple[int, ...], axes: tuple[int, ...],
                                                writer: type[CLikeKernel]) -> None:
    x = Layout.packed(shape, float32)
    nest, y = nest_of("sum", x, axes, False)
    assert writers_for_groups(nest)[0] is writer
    given = values(x, 0)
    kept = [n for n in range(len(shape)) if n not in axes]
    rows = given.reshape(shape).transpose(*kept, *axes).reshape(*[shape[n] for n in kept], -1)
    expected = sum_of(rows) if writer is not CLikeKernel else interpreted(nest, y, given)
    assert same_bits(run(gpu, nest, y, given).reshape(-1), np.asarray(expected).reshape(-1))


def test_kernels_of_one_program_have_names_of_their_own(gpu: OpenCLDevice) -> None:
    """The second kernel of a sum in two passes, and the only one of a nest whose name ends in a number."""
    x, few = Layout.packed((1, 70001), float32), Layout.packed((5,), float32)
    (long, total), (short, negated) = nest_of("sum", x, (1,), False), nest_of("negative", few)
    long, short = replace(long, name="twice"), replace(short, name="twice_0")
    assert len(writers_for_groups(long)) == 2
    gpu.compile_all([long, short])
    given = values(x, 0)
    assert same_bits(run(gpu, long, total, given).reshape(-1), sum_of(given.reshape(1, -1)))
    assert same_bits(run(gpu, short, negated, given[:5].copy()), -given[:5])


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "all", "any"])
@pytest.mark.parametrize(("shape", "axis"), [
    ((5, 300), 1), ((40, 33), 1), ((3, 70000), 1), ((300, 35), 0), ((20000, 33), 0), ((1, 20000), 1)])
def test_what_no_order_changes(gpu: OpenCLDevice, name: str, shape: tuple[int, ...], axis: int) -> None:
    x = Layout.packed(shape, float32)
    given = np.random.default_rng(0).integers(-3 * shape[axis], 3 * shape[axis], shape).astype(np.float32)
    given[:, ::7][:1] = np.nan if axis else 5
    if name in ("all", "any"):
        x, given = Layout.packed(shape, np.dtype(bool)), given > (2 if name == "any" else -3 * shape[axis])
    nest, y = nest_of(name, x, axis if name.startswith("arg") else (axis,), False)
    assert same_bits(run(gpu, nest, y, given), interpreted(nest, y, given))


@pytest.mark.parametrize("dtype", [float16, float32, float64, int32, int64], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum"])
def test_of_every_dtype(gpu: OpenCLDevice, name: str, dtype: DType) -> None:
    if dtype.name not in gpu.spec.dtypes:
        pytest.skip(f"no {name} of {dtype} here")
    for shape in ((5, 300), (33, 40)):
        x = Layout.packed(shape, dtype)
        given = (values(x, 0) / 8 + 1).astype(dtype) if name == "prod" else values(x, 0)
        attributes = (1, False) if name == "cumulative_sum" else ((1,), False)
        nest, y = nest_of(name, x, *attributes)
        ours, theirs = (z.astype(accumulator(z.dtype)) for z in (run(gpu, nest, y, given), interpreted(nest, y, given)))
        bound = {"float16": 4e-3, "float32": 1e-4}.get(dtype.name, 1e-12)
        np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound * 20 * (dtype.kind != "i"))


@pytest.mark.parametrize("columns", [40, 203, 700, 20000])
def test_rows_that_are_folded_and_written(gpu: OpenCLDevice, columns: int) -> None:
    for x in (Layout.packed((3, columns), float32), Layout((5, columns), float32, 8, (columns * 16, 16))):
        y = Layout.packed(x.shape, float32)
        nest, given = softmax_nest(x, y), values(x, 0)
        np.testing.assert_allclose(run(gpu, nest, y, given), interpreted(nest, y, given), rtol=2e-5)


@pytest.mark.parametrize("name", ["cumulative_sum", "cummax", "cumulative_prod", "logcumsumexp"])
@pytest.mark.parametrize(("shape", "axis"), [((4, 700), 1), ((300, 5), 0), ((3, 40), 1), ((70, 33), 1)])
def test_scans(gpu: OpenCLDevice, name: str, shape: tuple[int, ...], axis: int) -> None:
    x = Layout.packed(shape, float32)
    for reverse in (False, True):
        nest, y = nest_of(name, x, axis, reverse)
        given = (values(x, 0) / 16 + 1).astype(np.float32)
        np.testing.assert_allclose(run(gpu, nest, y, given), interpreted(nest, y, given), rtol=2e-5)

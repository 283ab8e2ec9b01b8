"""Kernels whose work items go through many points: the interpreter's bits, with sums folded in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, float16, float32, float64, int32
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import OPENCL_LOOPS, CLikeKernel, expand, interpret, program_of, writers_for_loops
from nnc_core.codegen.clike_columns import ColumnsWriter
from nnc_core.codegen.clike_runs import HIDDEN, RunsWriter
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest, open_nest
from nnc_core.type import TensorSpec
from nnc_opencl.device import OpenCLDevice
from tests.cpu.products.running import same_bits, values, whole

Values = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _cpus_alone(device: OpenCLDevice) -> None:
    if "cpu" not in device.spec.features:
        pytest.skip("GPUs compute each point in a work item of its own")


def nest_of(name: str, x: Layout, *attributes: Any, others: tuple[Layout, ...] = ()) -> tuple[LoopNest, Layout]:
    """The nest of an operator on arrays, and its result."""
    op = OPERATORS[name]
    inputs = (x, *others)
    y = op.infer(*[TensorSpec(z.shape, z.dtype) for z in inputs], *attributes).layout()
    command = Command(name, attributes, inputs, (y,))
    return op.nest(command) if op.nest is not None else elementwise_nest(op.scalar, command), y


def check(device: OpenCLDevice, nest: LoopNest, y: Layout, *layouts: Layout, given: Values | None = None) -> Values:
    inputs = [values(x, n) for n, x in enumerate(layouts)] if given is None else [given]
    ours, theirs = (np.full(whole(y), 9).astype(y.dtype) for _ in range(2))
    buffers = [device.allocate(array.nbytes) for array in (*inputs, ours)]
    for array, buffer in zip((*inputs, ours), buffers, strict=True):
        device.upload(array, buffer)
    assert writers_for_loops(nest) != (CLikeKernel,)
    device.compile(nest).bind(buffers)()
    device.download(buffers[-1], ours).wait()
    interpret(expand(nest), [array.reshape(-1).view(np.uint8) for array in (*inputs, theirs)],
              in_parts=lambda reduction, stage, nest: reduction.kind != "dot")
    assert same_bits(ours, theirs)
    return ours


def softmax_nest(x: Layout, y: Layout) -> LoopNest:
    """The rows of x as shares of the sum of their exponentials."""
    nest = open_nest(Command("softmax", (1,), (x,), (y,)))
    rows, columns = x.shape
    (row,) = nest.outer(rows)
    with nest.stage(columns) as (k,):
        highest = nest.fold("maximum", nest.load(0, row, k))
    with nest.stage(columns) as (k,):
        total = nest.fold("sum", (nest.load(0, row, k) - highest).apply("exp"))
    with nest.stage(columns) as (k,):
        nest.store(0, (nest.load(0, row, k) - highest).apply("exp") / total, row, k)
    return nest.build()


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize(("shape", "axes"), [
    ((3, 700), (1,)), ((700, 3), (0,)), ((2, 5), (1,)), ((4, 6, 48), (0, 2)), ((4, 6, 50), (1, 2)), ((1, 16), (1,)),
    ((5003,), (0,)), ((7, 31), (1,)), ((9, 33), (0, 1)),
    ((40, 130), (0,)), ((5, 70), (0,)), ((3, 6, 5, 33), (0, 2)), ((2, 18, 3, 20), (1, 2))])  # fmt: skip
def test_folds_in_parts(device: OpenCLDevice, name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = Layout.packed(shape, float32)
    check(device, *nest_of(name, x, axes, False), x)


@pytest.mark.parametrize("dtype", [float16, float64], ids=str)
def test_folds_of_other_dtypes(device: OpenCLDevice, dtype: DType) -> None:
    if dtype.name not in device.spec.dtypes:
        pytest.skip(f"no {dtype} here")
    for shape in ((3, 700), (700, 3)):
        x = Layout.packed(shape, dtype)
        check(device, *nest_of("sum", x, (1,), False), x)


def test_numbers_that_are_none_and_no_numbers_at_all(device: OpenCLDevice) -> None:
    x = Layout.packed((3, 100), float32)
    given = np.random.default_rng(0).standard_normal((3, 100)).astype(np.float32)
    given[0, 40], given[1, 99], given[2, 3] = np.nan, np.inf, -np.inf
    for name in ("sum", "max", "min"):
        check(device, *nest_of(name, x, (1,), False), x, given=given)
    assert nnc.sum(nnc.zeros((3, 0), device=device.spec.id), axis=1).numpy().tolist() == [0, 0, 0]
    assert nnc.max(nnc.full((1,), -3.0, device=device.spec.id)).item() == -3


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("columns", [40, 203, 700, 9000])
def test_what_rows_compute_once_and_read_twice(device: OpenCLDevice, columns: int, dtype: DType) -> None:
    if dtype.name not in device.spec.dtypes:
        pytest.skip(f"no {dtype} here")
    for x in (Layout.packed((3, columns), dtype), Layout((3, columns), dtype, 8, (columns * 16, 16))):
        y = Layout.packed(x.shape, dtype)
        check(device, softmax_nest(x, y), y, x)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [float32, float16, int32], ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((40, 130), 0), ((5, 70), 0), ((3, 40, 33), 1), ((1, 70), 0)])
def test_positions_along_columns(device: OpenCLDevice, name: str, dtype: DType, shape: tuple[int, ...],
                                 axis: int) -> None:
    """The first of equals, or of what is no number."""
    x = Layout.packed(shape, dtype)
    given = np.random.default_rng(0).integers(-5, 5, shape).astype(dtype)
    if dtype != int32:
        given[..., 3], given.reshape(-1)[::61] = -0.0, np.nan
    nest, y = nest_of(name, x, axis, False)
    assert writers_for_loops(nest) == (ColumnsWriter,)
    check(device, nest, y, x, given=given)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_windows_and_their_gradients(device: OpenCLDevice, layout: str) -> None:
    """Rows of windows are short: channels, where they are last, are folded abreast."""
    given = np.random.default_rng(0).standard_normal((2, 9, 11, 20)).astype(np.float32)

    def slopes(x: Any) -> Any:
        pools = [make(x, 3, strides=step, padding="SAME", layout=layout)
                 for make in (nnc.max_pool2d, nnc.avg_pool2d) for step in (1, 2)]
        return sum([nnc.sum(pool * pool) for pool in pools])

    ours, theirs = (nnc.jit(nnc.grad(slopes))(nnc.asarray(given, device=name)) for name in (device.spec.id, "strict:0"))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


def test_zeros_of_both_signs(device: OpenCLDevice) -> None:
    x = Layout.packed((6, 100), float32)
    given = np.where(np.random.default_rng(0).random((6, 100)) < 0.5, 0.0, -0.0).astype(np.float32)
    given[:3] -= np.random.default_rng(1).random((3, 100)) < 0.9
    given[4, 17], given[5, 99] = np.nan, -np.nan
    for name in ("max", "min"):
        check(device, *nest_of(name, x, (1,), False), x, given=given)


@pytest.mark.parametrize("layout", [
    Layout.packed((5000,), float32), Layout((33, 40), float32, 8, (400, 4)), Layout((40, 33), float32, 0, (4, 160)),
    Layout((3, 40, 50), float32, 0, (0, 200, 4)), Layout((70, 20), float32, 6000, (-80, 4))], ids=str)
def test_neighbouring_points(device: OpenCLDevice, layout: Layout) -> None:
    for name in ("tanh", "floor", "sqrt", "sign"):
        check(device, *nest_of(name, layout), layout)


def test_rows_are_the_same_alone_and_fused(device: OpenCLDevice) -> None:
    x = nnc.asarray(np.random.default_rng(0).standard_normal((37, 203)).astype(np.float32), device=device.spec.id)

    def normed(x: Any) -> Any:
        y = nnc.softmax(x * 3)
        return (y - nnc.mean(y, axis=1, keepdims=True)) / nnc.sqrt(nnc.var(y, axis=0))

    with config.using(deterministic=True, fusion=True):
        fused = nnc.jit(normed)(x).numpy()
    with config.using(deterministic=True, fusion=False):
        apart = nnc.jit(normed)(x).numpy()
    assert same_bits(fused, apart)
    y = np.exp(x.numpy().astype(np.float64) * 3)
    y /= y.sum(1, keepdims=True)
    np.testing.assert_allclose(fused, (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(0)), rtol=1e-3, atol=1e-4)


# ---- functions of the compiler's library
@pytest.mark.parametrize(("name", "dtype", "operands", "runs"), [
    ("cos", float16, 1, False), ("fmod", float32, 2, False), ("remainder", int32, 2, True), ("exp", float16, 1, True)])
def test_functions_of_the_library_are_computed_abreast(name: str, dtype: DType, operands: int, runs: bool) -> None:
    x = Layout.packed((64,), dtype)
    nest, _ = nest_of(name, x, others=(x,) * (operands - 1))
    assert (writers_for_loops(nest) == (CLikeKernel,)) is not runs


@pytest.mark.parametrize("name", ["cos", "fmod"])
def test_calls_for_one_point_beside_calls_for_many(device: OpenCLDevice, name: str) -> None:
    """Intel's compiler died of such programs, fused and not, in reductions too."""
    f: Any = (lambda x: nnc.fmod(x, 0.25)) if name == "fmod" else nnc.cos
    many, one = np.linspace(0.5, 2, 700, dtype=np.float16).reshape(7, 100), np.float16(0.75)
    with nnc.use_device(device.spec.id):
        found = nnc.jit(lambda x, y: (f(x) + f(y), nnc.sum(f(x), axis=1) + f(y), nnc.sum(f(x) + f(y), axis=0)))(
            nnc.asarray(many), nnc.asarray(one))
    expected = [f(nnc.asarray(a).astype("float64")).numpy() for a in (many, one)]
    wanted = [expected[0] + expected[1], expected[0].sum(1) + expected[1], (expected[0] + expected[1]).sum(0)]
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got.numpy(), value, rtol=4e-3, atol=4e-3)


# ---- constants
def polynomial_nest(x: Layout, count: int) -> LoopNest:
    """1 / 2, then so many times: times x, plus a number that is no power of two."""
    nest = open_nest(Command("polynomial", (), (x,), (x,)))
    (i,) = nest.outer(*x.shape)
    value = nest.load(0, i)
    total = value.constant(0.5)
    for n in range(count):
        total = total * value + (n + 5) / 3
    nest.store(0, total, i)
    return nest.build()


def test_compilers_are_told_to_make_no_vectors_of_work_items_that_run_alone() -> None:
    """Which took Intel's as long as all the rest."""
    nest = expand(polynomial_nest(Layout.packed((100,), float32), 2))
    before, _ = program_of({"kernel": (nest, RunsWriter)}, OPENCL_LOOPS).split("__kernel", 1)
    assert "vec_type_hint(float16)" in before and "reqd_work_group_size(1, 1, 1)" in before


def test_constants_are_read_before_the_loops() -> None:
    nest = expand(polynomial_nest(Layout.packed((100,), float32), 4))
    head, loops = program_of({"kernel": (nest, RunsWriter)}, OPENCL_LOOPS).split("while (", 1)
    for constant in np.float32([5 / 3, 7 / 3, 8 / 3]):
        assert f"= {float(constant).hex()}f;" in head
        assert float(constant).hex() not in loops
    for power in (0.5, 2.0):  # the second is 6 / 3
        assert float(power).hex() not in head
        assert float(power).hex() in loops


@pytest.mark.parametrize("dtype", [float16, float32, float64])
@pytest.mark.parametrize("count", [3, HIDDEN + 20])
def test_few_or_many_constants(device: OpenCLDevice, dtype: DType, count: int) -> None:
    x = Layout.packed((533,), dtype)
    given = np.linspace(-1, 1, 533).astype(dtype)
    check(device, polynomial_nest(x, count), x, x, given=given)


def squares(x: Layout, dtype: DType, turned: bool = False) -> tuple[LoopNest, Layout]:
    """The sums of squares of rows in another dtype."""
    rows, columns = x.shape
    y = Layout.packed((rows,), dtype)
    nest = open_nest(Command("squares", (), (x,), (y,)))
    (row,) = nest.outer(rows)
    with nest.stage(columns) as (k,):
        value = nest.load(0, row, columns - 1 - k if turned else k).cast(dtype)
        total = nest.fold("sum", value * value)
    nest.store(0, total, row)
    return nest.build(), y


@pytest.mark.parametrize(("dtype", "turned", "at_once"), [
    (float32, False, 16), (float32, True, 256), (float64, False, 256), (float16, False, 256)])
@pytest.mark.parametrize("columns", [48, 533])
def test_terms_are_computed_by_vectors_or_by_hundreds(device: OpenCLDevice, dtype: DType, turned: bool, at_once: int,
                                                      columns: int) -> None:
    x = Layout.packed((5, columns), dtype if dtype == float16 else float32)
    nest, y = squares(x, float32 if dtype == float16 else dtype, turned)
    text = program_of({"kernel": (expand(nest), RunsWriter)}, OPENCL_LOOPS)
    assert f"_terms[{at_once}];" in text
    check(device, nest, y, x)

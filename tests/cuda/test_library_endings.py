"""What follows a product, given to cuBLASLt: which endings it takes, with what values, and which it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64, int8, int32, uint8
from nnc_core.base.layout import Layout
from nnc_core.operator.program import Literal
from nnc_core.stacks import make_stack
from nnc_cuda.cublaslt import BIAS, IN_INT32, PLAIN, RELU
from nnc_cuda.device import CudaDevice
from nnc_cuda.products.library import LibraryProducts
from tests.cpu.products.running import by_itself, interpreted, values
from tests.cpu.products.test_joined import Around
from tests.cpu.products.test_matmul import matrices
from tests.cuda.host_cublaslt import WORKSPACE, FakeCublasLt
from tests.cuda.host_driver import HostDriver

SHAPE, STEPS = (65, 72), 64


def around(dtype: DType = float32, turned: bool = False) -> Around:
    return Around(dtype, SHAPE, STEPS, turned)


def library(gpu: CudaDevice, operator: str = "matmul") -> LibraryProducts:
    found = gpu.backends(operator)[0]
    assert isinstance(found, LibraryProducts)
    return found


def check(gpu: CudaDevice, command: Command, tolerance: float = 1e-4) -> None:
    """The values of the fused nest, whatever lies beside the result untouched."""
    backend = library(gpu)
    assert backend.refuse(command) is None, backend.refuse(command)
    *inputs, ours = (values(x, seed) for seed, x in enumerate([*command.inputs, command.output]))
    theirs = ours.copy()
    buffers = [gpu.allocate(array.nbytes) for array in (*inputs, ours)]
    for array, buffer in zip((*inputs, ours), buffers, strict=True):
        gpu.upload(array, buffer)
    backend.prepare(command).bind([*buffers, gpu.allocate(backend.workspace(command))])()
    gpu.download(buffers[-1], ours).wait()
    interpreted(by_itself(command), [*inputs, theirs])
    np.testing.assert_allclose(*[x.astype(np.float64) for x in (ours, theirs)], rtol=tolerance, atol=20 * tolerance)


def bias(p: Around) -> Command:
    return p.command(p.step("add", p.product, p.given(SHAPE[1])))


def relu(p: Around) -> Command:
    return p.command(p.step("relu", p.product))


def bias_and_relu(p: Around) -> Command:
    return p.command(p.step("relu", p.step("add", p.given(SHAPE[1]), p.product)))


def matrix(p: Around) -> Command:
    return p.command(p.step("add", p.given(*SHAPE), p.product))


def all_of_it(p: Around) -> Command:
    scaled = p.step("multiply", p.product, Literal.of(0.3, float32))
    moved = p.step("add", p.step("add", scaled, p.given(SHAPE[1])), p.given(*SHAPE))
    return p.command(p.step("relu", moved))


ENDINGS: dict[Callable[[Around], Command], int] = {
    bias: BIAS, relu: RELU, bias_and_relu: BIAS | RELU, matrix: PLAIN, all_of_it: BIAS | RELU}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.__name__)
def test_endings(with_library: CudaDevice, fake: FakeCublasLt, ending: Callable[[Around], Command],
                 turned: bool) -> None:
    check(with_library, ending(around(turned=turned)))
    assert [epilogue for _, epilogue in fake.calls][-1] == ENDINGS[ending]


def test_operands_that_lie_apart(with_library: CudaDevice) -> None:
    """A matrix with gaps behind its rows, from an element on; a bias that is not aligned."""
    p = around()
    y = p.step("add", p.step("add", p.product, p.given(*SHAPE)), p.given(SHAPE[1]))
    layouts = {2: Layout(SHAPE, float32, 8, (4 * 80, 4)), 3: Layout(SHAPE[1:], float32, 12, (4,))}
    check(with_library, p.command(y, layouts=layouts))


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_halves(with_library: CudaDevice, dtype: DType) -> None:
    """Added as float32 and rounded once; or left as float32."""
    p = around(dtype)
    moved = p.step("add", p.product, p.given(SHAPE[1], dtype=dtype), dtype=dtype)
    check(with_library, p.command(p.step("relu", moved, dtype=dtype)), 2e-2)
    p = around(dtype)
    wide = p.step("cast", p.product, attributes=(float32,))
    check(with_library, p.command(p.step("add", wide, p.given(SHAPE[1]))), 2e-2)


def refused(gpu: CudaDevice, command: Command, reason: str) -> None:
    assert reason in (library(gpu).refuse(command) or "it is taken")


def test_endings_that_are_something_else(with_library: CudaDevice, fake: FakeCublasLt) -> None:
    def made(*steps: Any, dtype: DType = float32, **options: Any) -> Command:
        p = around(dtype)
        x = p.product
        for name, operand in steps:
            given = p.given(*operand) if isinstance(operand, tuple) else Literal.of(operand or 0.0, float32)
            x = p.step(name, x, *[] if operand is None else [given], **options)
        return p.command(x)

    row, whole = SHAPE[1:], SHAPE
    for command, reason in [
            (made(("tanh", None)), "no tanh"), (made(("gelu", None), attributes=("tanh",)), "like this"),
            (made(("add", row), ("add", row)), "one matrix, row by row, and one row"),
            (made(("add", whole), ("add", whole)), "one matrix"),
            (made(("add", (SHAPE[0], 1))), "row by row"), (made(("add", ())), "row by row"),
            (made(("relu", None), ("add", row)), "no add like this"),
            (made(("add", row), ("multiply", 2.0)), "no multiply like this"),
            (made(("multiply", row)), "no multiply like this"), (made(("maximum", 1.0)), "no maximum like this")]:
        refused(with_library, command, reason)
    p = around()
    there = p.step("cast", p.product, attributes=(float16,), dtype=float16)
    refused(with_library, p.command(p.step("cast", there, attributes=(float32,))), "no cast like this")
    refused(with_library, p.command(p.product, p.step("relu", p.product)), "one result")
    p = around(float64)
    moved = p.command(p.step("add", p.product, p.given(SHAPE[1], dtype=float64), dtype=float64))
    refused(with_library, moved, "no algorithm")
    with config.using(deterministic=True):
        refused(with_library, bias(around()), "one by one")
    assert not fake.calls


def test_relu_that_makes_numbers_of_nan_is_not_taken(with_library: CudaDevice, fake: FakeCublasLt,
                                                     driver: HostDriver) -> None:
    used, fake.drops_nan = driver.used, True
    refused(with_library, relu(around()), "of what is none")
    p = around(float16)
    refused(with_library, p.command(p.step("relu", p.product, dtype=float16)), "of what is none")
    assert library(with_library).refuse(bias(around())) is None
    assert driver.used == used, "what was asked is forgotten"


def integers(columns: int, steps: int, dtype: DType = int8, tb: bool = True) -> Command:
    made = matrices(65, columns, steps, dtype, False, tb)
    return made._replace(name="matmul_integer", outputs=(Layout.packed((65, columns), int32),))


def test_integers_where_the_library_has_them(with_library: CudaDevice, fake: FakeCublasLt) -> None:
    """Rows of both factors lie side by side, at distances of four bytes."""
    backend = library(with_library, "matmul_integer")
    for command in (integers(72, 64, tb=False), integers(72, 66), integers(70, 64)):
        assert "no algorithm" in (backend.refuse(command) or "")
    a, b = (np.random.default_rng(n).integers(-128, 128, shape).astype(np.int8)
            for n, shape in enumerate(((65, 64), (72, 64))))
    assert backend.refuse(integers(72, 64)) is None
    buffers = [with_library.allocate(nbytes) for nbytes in (a.nbytes, b.nbytes, 65 * 72 * 4, WORKSPACE)]
    for array, buffer in zip((a, b), buffers, strict=False):
        with_library.upload(array, buffer)
    backend.prepare(integers(72, 64)).bind(buffers)()
    found = np.empty((65, 72), np.int32)
    with_library.download(buffers[2], found).wait()
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.T.astype(np.int32))
    assert fake.calls == [(IN_INT32, PLAIN)]


def test_integers_that_are_left_to_nests(with_library: CudaDevice) -> None:
    backend = library(with_library, "matmul_integer")
    for command, reason in ((integers(72, 64, uint8), "without a sign"), (integers(72, 1 << 17), "may not fit")):
        assert reason in (backend.refuse(command) or "")


# ---- in graphs
def test_a_layer_is_one_call(with_library: CudaDevice, fake: FakeCublasLt, driver: HostDriver) -> None:
    x, w, b, r = (np.random.default_rng(n).standard_normal(shape).astype(np.float32)
                  for n, shape in enumerate(((65, 64), (64, 72), (72,), (65, 72))))
    with nnc.use_device(make_stack(with_library)):
        layer = nnc.jit(lambda x, w, b, r: nnc.relu(x @ w + b + r))
        given = [nnc.asarray(one) for one in (x, w, b, r)]
        launched = driver.launches
        found = layer(*given).numpy()
        np.testing.assert_allclose(found, np.maximum(x @ w + b + r, 0), rtol=1e-4, atol=1e-4)
        assert [epilogue for _, epilogue in fake.calls][-1] == BIAS | RELU and driver.launches == launched
        gated = nnc.jit(lambda x, w, b: nnc.tanh(x @ w + b))(*given[:3]).numpy()
    np.testing.assert_allclose(gated, np.tanh(x @ w + b), rtol=1e-4, atol=1e-4)
    assert [epilogue for _, epilogue in fake.calls][-1] == BIAS and driver.launches == launched + 1


def test_batches_with_what_follows_them(with_library: CudaDevice, fake: FakeCublasLt) -> None:
    """A matrix for each of several products, a row for all of them."""
    x, w, r, b = (np.random.default_rng(n).standard_normal(shape).astype(np.float32)
                  for n, shape in enumerate(((5, 40, 41), (5, 41, 44), (5, 40, 44), (44,))))
    with nnc.use_device(make_stack(with_library)):
        layer = nnc.jit(lambda x, w, r, b: x @ w + r + b)
        found = layer(*map(nnc.asarray, (x, w, r, b))).numpy()
    np.testing.assert_allclose(found, x @ w + r + b, rtol=1e-4, atol=1e-4)
    assert [epilogue for _, epilogue in fake.calls] == [BIAS]


def test_algorithms_are_chosen_once(with_library: CudaDevice, fake: FakeCublasLt) -> None:
    command = bias(around())
    check(with_library, command)
    asked = fake.asked
    check(with_library, command)
    assert fake.asked == asked and library(with_library).workspace(command) == WORKSPACE


def test_arrays_that_are_less_aligned_than_ours(with_library: CudaDevice, fake: FakeCublasLt) -> None:
    """Such may come from other libraries: another algorithm runs them."""
    command = matrices(65, 72, 64, float32)
    backend, asked = library(with_library), fake.asked
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    room = with_library.allocate(a.nbytes + 16)
    buffers = [with_library.view(room, 4, a.nbytes), *map(with_library.allocate, (b.nbytes, 65 * 72 * 4))]
    for array, buffer in zip((a, b), buffers, strict=False):
        with_library.upload(array, buffer)
    backend.prepare(command).bind([*buffers, with_library.allocate(backend.workspace(command))])()
    found = np.empty((65, 72), np.float32)
    with_library.download(buffers[-1], found).wait()
    np.testing.assert_allclose(found, a.reshape(65, 64) @ b.reshape(64, 72), rtol=1e-4, atol=1e-4)
    assert fake.asked == asked + 3  # for both precisions, and for these


def test_the_sum_may_lie_where_the_matrix_does(with_library: CudaDevice) -> None:
    backend = library(with_library)
    assert backend.inplace_of(matrix(around()), 0, ()) == (2,)
    assert backend.inplace_of(bias(around()), 0, ()) == ()


def test_descriptions_go_with_their_plans(with_library: CudaDevice, fake: FakeCublasLt) -> None:
    check(with_library, bias(around()))
    blas = library(with_library).blas()
    assert fake.described and blas is not None
    blas._plans.clear()  # type: ignore[attr-defined]
    assert not fake.described

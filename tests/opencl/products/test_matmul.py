"""Matrix products as OpenCL kernels: the interpreter's bits for every remainder of tiles and panels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.layout import Layout
from nnc_core.operator.loops import broadcast_layout
from nnc_core.operator.products.arrange import arranged
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.products.kernel import TiledCompiler
from nnc_opencl.products.kind import SumTile
from nnc_opencl.products.plan import choose_tile, plan_of
from nnc_opencl.products.tiles import tile_source
from tests.cpu.products.test_matmul import TURNED, command_of, matrices, packed
from tests.opencl.products.running import SMALL_TILE, check

WIDE = SumTile(4, 2, 16, 32)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_all_remainders(device: OpenCLDevice, compiler: TiledCompiler, ta: bool, tb: bool) -> None:
    """Rows, columns and steps around those of tiles, panels and vectors."""
    for size in ((3, 16, 32), (4, 17, 33), (5, 31, 1), (6, 5, 70), (67, 66, 31), (1, 4, 2)):
        check(device, compiler, matrices(*size, float32, ta, tb), SMALL_TILE)
    check(device, compiler, matrices(101, 65, 65, float32, ta, tb), WIDE)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float64], ids=str)
def test_other_dtypes(device: OpenCLDevice, compiler: TiledCompiler, dtype: DType) -> None:
    """float16 and bfloat16 are added as float32."""
    if dtype.name not in device.spec.dtypes:
        pytest.skip(f"no {dtype} here")
    tile = SumTile(3, 2, 8 if dtype == float64 else 16, 32)
    for ta, tb in TURNED[1:3]:
        check(device, compiler, matrices(7, 35, 67, dtype, ta, tb), tile)


def test_matrices_in_batches(device: OpenCLDevice, compiler: TiledCompiler) -> None:
    check(device, compiler, packed((3, 7, 9), (3, 9, 20)), SMALL_TILE)
    check(device, compiler, packed((2, 1, 7, 9), (3, 9, 20)), SMALL_TILE)
    check(device, compiler, packed((2, 3, 7, 9), (9, 20)), SMALL_TILE)
    check(device, compiler, packed((3, 9, 7), (3, 20, 9), ta=True, tb=True), SMALL_TILE)


def test_matrices_that_lie_apart(device: OpenCLDevice, compiler: TiledCompiler) -> None:
    """Offsets, distances, steps of rows and columns, one row many times, neither axis dense."""
    a, b = Layout((7, 9), float32, 8, (52, 4)), Layout((9, 20), float32, 4, (84, 4))
    out = Layout((7, 20), float32, 12, (96, 4))
    check(device, compiler, command_of(a, b, out=out), SMALL_TILE)
    check(device, compiler, command_of(a._replace(strides=(120, 12)), b._replace(strides=(168, 8))), SMALL_TILE)
    check(device, compiler, command_of(a, b, out=out._replace(strides=(4, 28))), SMALL_TILE)
    check(device, compiler, command_of(broadcast_layout(Layout.packed((9,), float32), (7, 9)), b), SMALL_TILE)
    check(device, compiler, command_of(a._replace(strides=(-52, 4), offset=400), b), SMALL_TILE)


def test_what_is_no_number_stays_in_its_row(device: OpenCLDevice, compiler: TiledCompiler) -> None:
    command = matrices(5, 40, 33, float32)
    a, b = (np.random.default_rng(n).standard_normal(x.shape).astype(np.float32) for n, x in enumerate(command.inputs))
    a[1, 3], a[2, 7], b[5, 11] = np.nan, np.inf, -np.inf
    [result] = check(device, compiler, command, SMALL_TILE, [a, b])
    finite = np.isfinite(result.reshape(5, 40))
    assert not finite[1:3].any()
    assert not finite[:, 11].any()
    assert np.delete(finite[[0, 3, 4]], 11, 1).all()


def test_tiles_that_are_chosen(device: OpenCLDevice, compiler: TiledCompiler) -> None:
    for size in ((100, 70, 260), (2, 130, 150)):
        check(device, compiler, matrices(*size, float32))


def test_tiles_waste_few_rows() -> None:
    assert choose_tile(arranged(matrices(100, 1024, 64, float32)), 100) == SumTile(10, 2, 16, 256)
    assert choose_tile(arranged(matrices(2, 1024, 64, float32)), 2).vectors == 4
    assert choose_tile(arranged(matrices(1024, 10, 64, float64)), 1024) == SumTile(12, 2, 8, 256)


def test_they_run_in_graphs_and_add_up_to_what_numpy_says(device: OpenCLDevice) -> None:
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((33, 70), (70, 50), (50,)))
    x, w, v = (nnc.asarray(array, device=device.spec.id) for array in (a, b, bias))
    layer = nnc.jit(lambda x, w, v: nnc.maximum(nnc.matmul(x, w) + v, 0))
    expected = np.maximum(a.astype(np.float64) @ b + bias, 0)
    np.testing.assert_allclose(layer(x, w, v).numpy(), expected, rtol=1e-5, atol=1e-5)
    assert "tiles" in layer.explain(x, w, v)
    empty = nnc.matmul(nnc.zeros((3, 0), device=device.spec.id), nnc.zeros((0, 5), device=device.spec.id))
    assert empty.numpy().tolist() == np.zeros((3, 5)).tolist()


def test_complex_ones_are_products_of_their_parts(device: OpenCLDevice) -> None:
    """Where the bits of the operator are not promised, and there are enough columns for vectors."""
    rng = np.random.default_rng(0)
    for shapes in (((40, 30), (30, 20)), ((3, 40, 30), (30, 20)), ((40, 300), (300, 2))):
        a, b = ((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64) for shape in shapes)
        for deterministic in (False, True):
            with nnc.use_device(nnc.make_stack(device)), nnc.config.using(deterministic=deterministic):
                f: Any = nnc.jit(lambda a, b: nnc.conj(a @ b))
                given = nnc.asarray(a), nnc.asarray(b)
                found = f(*given).numpy()
                by_parts = "matmul(float32[" in f.explain(*given)
            wanted = (a.astype(np.complex128) @ b).conj()
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
            assert by_parts == (not deterministic and b.shape[-1] > 2)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_no_element_of_a_panel_is_looked_at_one_by_one(ta: bool, tb: bool) -> None:
    """Compilers unroll loops of a panel's width, and took three times as long for a product whose loop asks for each
    element whether it is there."""
    kind = plan_of(arranged(matrices(67, 66, 31, float32, ta, tb)), False, 2, SMALL_TILE).kind
    loops = [line for line in tile_source(kind).splitlines() if "< WIDTH" in line]
    assert loops
    assert not [line for line in loops if "?" in line]

"""Products and convolutions as tiles of CUDA C: the interpreter's bits, on the processor, and what NVRTC makes of
them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.errors import NotSupportedError, PluginError
from nnc_core.base.layout import Layout
from nnc_core.operator.loops import broadcast_layout
from nnc_core.operator.products.arrange import arranged
from nnc_core.stacks import make_stack
from nnc_cuda import nvrtc
from nnc_cuda.device import CudaDevice
from nnc_cuda.products.backend import CudaProducts
from nnc_cuda.products.plan import plan_of
from nnc_cuda.products.tiles import product_source
from tests.cpu.products.running import same_bits, values
from tests.cpu.products.test_convolution import CASES as WINDOWS
from tests.cpu.products.test_convolution import OPERATIONS, Windows, command
from tests.cpu.products.test_joined import CASES as ENDINGS
from tests.cpu.products.test_joined import SHAPE, Around, bias_and_relu, momentum, residual
from tests.cpu.products.test_matmul import TURNED, command_of, matrices, packed
from tests.cuda.products import check, compiled_products, run

TILES = [(4, 4), (8, 8), *[pytest.param(tile, marks=pytest.mark.slow) for tile in ((4, 8), (8, 4))]]
SAMPLE = 6
"""Kinds that NVRTC compiles where not all of them are asked for."""
BLOCKS = {
    "many channels": Windows((2, 7, 8, 130), (2, 2, 130, 20), (1, 1), ((1, 0), (0, 1)), (1, 1)),
    "many rows": Windows((1, 18, 17, 20), (3, 3, 20, 40), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "long runs": Windows((2, 12, 13, 3), (5, 7, 3, 40), (2, 2), ((2, 2), (3, 3)), (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize(("ta", "tb"), TURNED)
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_all_remainders(gpu: CudaDevice, tile: tuple[int, int], ta: bool, tb: bool) -> None:
    """Rows, columns and steps around those of tiles and rounds."""
    for size in ((3, 16, 32), (4, 17, 33), (5, 31, 1), (67, 66, 31), (64, 128, 16), (130, 129, 17)):
        check(gpu, matrices(*size, float32, ta, tb), tile)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float64], ids=str)
def test_other_dtypes(gpu: CudaDevice, dtype: DType) -> None:
    """float16 and bfloat16 are added as float32."""
    for ta, tb in TURNED[1:3]:
        check(gpu, matrices(7, 35, 67, dtype, ta, tb))


def test_matrices_in_batches(gpu: CudaDevice) -> None:
    check(gpu, packed((3, 7, 9), (3, 9, 20)))
    check(gpu, packed((2, 1, 7, 9), (3, 9, 20)))
    check(gpu, packed((2, 3, 7, 9), (9, 20)))
    check(gpu, packed((3, 9, 7), (3, 20, 9), ta=True, tb=True))


def test_matrices_that_lie_apart(gpu: CudaDevice) -> None:
    """Offsets, distances, steps of rows and columns, one row many times, neither axis dense."""
    a, b = Layout((7, 9), float32, 8, (52, 4)), Layout((9, 20), float32, 4, (84, 4))
    out = Layout((7, 20), float32, 12, (96, 4))
    check(gpu, command_of(a, b, out=out))
    check(gpu, command_of(a._replace(strides=(120, 12)), b._replace(strides=(168, 8))))
    check(gpu, command_of(a, b, out=out._replace(strides=(4, 28))))
    check(gpu, command_of(broadcast_layout(Layout.packed((9,), float32), (7, 9)), b))
    check(gpu, command_of(a._replace(strides=(-52, 4), offset=400), b))


def test_what_is_no_number_stays_in_its_row(gpu: CudaDevice) -> None:
    given = matrices(5, 40, 33, float32)
    a, b = (np.random.default_rng(n).standard_normal(x.shape).astype(np.float32) for n, x in enumerate(given.inputs))
    a[1, 3], a[2, 7], b[5, 11] = np.nan, np.inf, -np.inf
    [result] = check(gpu, given, given=[a, b])
    finite = np.isfinite(result.reshape(5, 40))
    assert not finite[1:3].any() and not finite[:, 11].any()
    assert np.delete(finite[[0, 3, 4]], 11, 1).all()


# ---- pieces
@pytest.mark.parametrize("pieces", [2, 3, 7])
def test_steps_in_pieces(gpu: CudaDevice, pieces: int) -> None:
    for ta, tb in TURNED:
        check(gpu, matrices(33, 70, 129, float32, ta, tb), pieces=pieces)
    check(gpu, packed((2, 3, 7, 90), (3, 90, 20)), pieces=pieces)
    check(gpu, bias_and_relu(), pieces=pieces)
    for operator in OPERATIONS:
        check(gpu, command(operator, BLOCKS["many rows"], float32), pieces=pieces)
        check(gpu, command(operator, WINDOWS["strides"], float32), pieces=pieces)


def test_what_is_split_is_decided_by_sizes() -> None:
    kept, split = (plan_of(arranged(matrices(64, 64, steps, float32))) for steps in (512, 50_000))
    assert not kept.kind.split and not kept.partial
    assert split.kind.split and split.partial == 64 * 64 * split.parts[0].blocks
    wide = plan_of(arranged(matrices(4096, 4096, 4096, float32)))
    assert not wide.kind.split and (wide.kind.rows, wide.kind.columns) == (8, 8)


def test_long_sums_in_a_graph_and_alone(gpu: CudaDevice) -> None:
    """Few results of long sums: their pieces lie in memory that the planner knows of."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 4000), (4000, 21)))
    with nnc.use_device(make_stack(gpu)):
        x, y = nnc.asarray(a), nnc.asarray(b)
        alone, within = x @ y, nnc.jit(lambda x, y: nnc.relu(x @ y) + 1)(x, y)
        np.testing.assert_allclose(alone.numpy(), a @ b, rtol=1e-4, atol=1e-3)
        assert same_bits(within.numpy(), np.maximum(alone.numpy(), 0) + 1)


# ---- convolutions
@pytest.mark.parametrize("name", [name for name in WINDOWS if "depth" not in name and "two filters" not in name])
@pytest.mark.parametrize("operator", OPERATIONS)
def test_windows_of_every_kind(gpu: CudaDevice, operator: str, name: str) -> None:
    check(gpu, command(operator, WINDOWS[name], float32))


@pytest.mark.parametrize("operator", OPERATIONS)
def test_halves_are_added_as_float32(gpu: CudaDevice, operator: str) -> None:
    check(gpu, command(operator, WINDOWS["strides"], float16))


@pytest.mark.parametrize("tile", TILES[:2], ids=str)
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_blocks_of_rows_and_steps(gpu: CudaDevice, operator: str, name: str, tile: tuple[int, int]) -> None:
    check(gpu, command(operator, BLOCKS[name], float32), tile)


def test_channels_that_are_multiplied_one_by_one_are_left_to_nests() -> None:
    with pytest.raises(NotSupportedError, match="one by one"):
        plan_of(arranged(command("conv", WINDOWS["depthwise"], float32)))


# ---- endings
@pytest.mark.parametrize("case", ENDINGS, ids=lambda case: case.__name__)
def test_what_follows_has_the_bits_of_the_fused_nest(gpu: CudaDevice, case: object) -> None:
    assert callable(case)
    check(gpu, case())


def test_operands_that_lie_apart(gpu: CudaDevice) -> None:
    p = Around()
    y = p.step("add", p.step("multiply", p.product, p.given(*SHAPE)), p.given(37))
    layouts = {2: Layout(SHAPE, float32, 8, (4, 4 * 9)), 3: Layout((37,), float32, 12, (8,))}
    check(gpu, p.command(y, layouts=layouts))


def test_operands_may_be_written_over(gpu: CudaDevice) -> None:
    backend = CudaProducts("matmul", compiled_products(gpu))
    assert backend.inplace_of(residual(), 0, ()) == (2,)
    assert backend.inplace_of(bias_and_relu(), 0, ()) == ()
    assert backend.inplace_of(momentum(), 1, ()) == (2, 3)
    given = residual()
    a, b, r = (values(x, seed) for seed, x in enumerate(given.inputs))
    apart = np.zeros(SHAPE, np.float32)
    run(gpu, given, [a, b, r.copy(), apart])
    kernel = compiled_products(gpu).kernel(arranged(given))
    buffers = [gpu.allocate(x.nbytes) for x in (a, b, r)]
    for array, buffer in zip((a, b, r), buffers, strict=True):
        gpu.upload(array, buffer)
    kernel.bind([*buffers, buffers[2]])()
    gpu.download(buffers[2], r).wait()
    assert same_bits(r.reshape(SHAPE), apart)


def test_what_is_refused(gpu: CudaDevice) -> None:
    backend = CudaProducts("matmul", compiled_products(gpu))
    assert "too small" in (backend.refuse(residual()) or "")
    assert "made for matmul" in (backend.refuse(residual()._replace(name="conv")) or "")
    assert "columns that are not there" in (backend.refuse(matrices(4096, 2, 64, float32)) or "")


# ---- NVRTC
def commands() -> Iterator[Command]:
    """One of each way to lie, to slide, to end and to split."""
    for ta, tb in TURNED:
        yield matrices(300, 300, 70, float32, ta, tb)
    for dtype in (float16, bfloat16, float64):
        yield matrices(300, 300, 70, dtype)
    yield matrices(64, 64, 5000, float32)
    for operator in OPERATIONS:
        yield command(operator, BLOCKS["long runs"], float32)
        yield command(operator, WINDOWS["strides"], float32)
    yield from [case() for case in ENDINGS]


@pytest.mark.parametrize("sample", [SAMPLE, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)], ids=str)
def test_nvrtc_compiles_them(capability: tuple[int, int], sample: int | None, rng: np.random.Generator) -> None:
    try:
        made = nvrtc.NVRTC(capability)
    except PluginError as error:
        pytest.skip(f"{error.message}: {error.hint}")
    kinds = list(dict.fromkeys([plan_of(arranged(one), tile).kind for one in commands() for tile in (None, (8, 8))]))
    for n in rng.choice(len(kinds), sample or len(kinds), replace=False):
        assert made.compile(product_source(kinds[n]))[:4] == b"\x7fELF"


def test_places_beyond_32_bits_are_counted_with_64() -> None:
    near, far = (plan_of(arranged(matrices(rows, 64, 64, float32))).kind for rows in (1 << 20, 1 << 26))
    assert not near.far and far.far
    assert "typedef long long place" in product_source(far)

"""Convolutions and their gradients as OpenCL kernels: the interpreter's bits, for windows of every kind."""

from __future__ import annotations

import pytest

from nnc_core.base.dtype import float16, float32
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.products.arrange import arranged
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.products.kernel import TiledCompiler
from tests.cpu.products.test_convolution import CASES, OPERATIONS, Windows, command
from tests.opencl.products.running import SMALL_TILE, check

BLOCKS = {
    "many channels": Windows((2, 7, 8, 130), (2, 2, 130, 20), (1, 1), ((1, 0), (0, 1)), (1, 1)),
    "many rows": Windows((1, 18, 17, 20), (3, 3, 20, 40), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    "long runs": Windows((2, 12, 13, 3), (5, 7, 3, 40), (2, 2), ((2, 2), (3, 3)), (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CASES if "depth" not in name and "two filters" not in name])
@pytest.mark.parametrize("operator", OPERATIONS)
def test_bits_are_the_interpreters(device: OpenCLDevice, compiler: TiledCompiler, operator: str, name: str) -> None:
    check(device, compiler, command(operator, CASES[name], float32), SMALL_TILE)


@pytest.mark.parametrize("operator", OPERATIONS)
def test_halves_are_added_as_float32(device: OpenCLDevice, compiler: TiledCompiler, operator: str) -> None:
    check(device, compiler, command(operator, CASES["strides"], float16), SMALL_TILE)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_blocks_of_rows_and_steps(device: OpenCLDevice, compiler: TiledCompiler, operator: str, name: str) -> None:
    check(device, compiler, command(operator, BLOCKS[name], float32))


def test_channels_that_are_multiplied_one_by_one_are_left_to_nests(compiler: TiledCompiler) -> None:
    with pytest.raises(NotSupportedError, match="one by one"):
        compiler.kernel(arranged(command("conv", CASES["depthwise"], float32)))

"""Convolutions and their gradients as OpenCL kernels: the interpreter's bits, for windows of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.dtype import float16, float32
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.products.arrange import arranged
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.products.kernel import TiledCompiler
from tests.cpu.products.running import values
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


DEPTHWISE = {
    "depthwise": CASES["depthwise"], "depthwise with strides": CASES["depthwise with strides"],
    "strides, several panels": Windows((2, 9, 11, 417), (3, 5, 1, 417), (2, 3), ((1, 1), (2, 2)), (1, 1), 417),
    "dilation": Windows((1, 9, 9, 32), (3, 3, 1, 32), (1, 1), ((2, 2), (1, 3)), (2, 3), 32),
    "one dimension": Windows((3, 20, 24), (5, 1, 24), (2,), ((2, 1),), (1,), 24),
    "three dimensions": Windows((2, 4, 3, 5, 8), (2, 3, 2, 1, 8), (1, 2, 1), ((1, 0), (1, 1), (0, 1)), (1, 1, 2), 8),
    "pointwise": Windows((2, 4, 5, 48), (1, 1, 1, 48), (1, 1), ((0, 0), (0, 0)), (1, 1), 48),
    "pixels that nothing sees": Windows((3, 40, 20), (5, 1, 20), (2,), ((2, 1),), (2,), 20),
    "long windows": Windows((1, 4, 30, 16), (2, 17, 1, 16), (1, 1), ((0, 0), (8, 8)), (1, 1), 16),
}  # fmt: skip


@pytest.fixture
def by_items(device: OpenCLDevice, _compilers: dict[str, TiledCompiler]) -> TiledCompiler:
    return _compilers["tiles"]


@pytest.mark.parametrize("name", DEPTHWISE)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_channels_that_are_multiplied_one_by_one(device: OpenCLDevice, by_items: TiledCompiler, operator: str,
                                                 name: str) -> None:
    check(device, by_items, command(operator, DEPTHWISE[name], float32))


@pytest.mark.parametrize("operator", OPERATIONS)
def test_halves_of_channels_that_are_multiplied_one_by_one(device: OpenCLDevice, by_items: TiledCompiler,
                                                           operator: str) -> None:
    check(device, by_items, command(operator, DEPTHWISE["depthwise"], float16))


@pytest.mark.parametrize("operator", OPERATIONS)
def test_what_lies_outside_of_images_is_zero(device: OpenCLDevice, by_items: TiledCompiler, operator: str) -> None:
    """So an infinite factor beside it gives NaN, as with the operator's own loops."""
    found = command(operator, DEPTHWISE["depthwise"], float32)
    given = [values(x, seed) for seed, x in enumerate(found.inputs)]
    given[0].reshape(-1)[:200] = np.inf
    given[1].reshape(-1)[:200] = np.inf
    assert np.isnan(check(device, by_items, found, given=given)[0]).any()


def test_channels_that_are_multiplied_one_by_one_are_left_to_nests(device: OpenCLDevice, compiler: TiledCompiler,
                                                                   by_items: TiledCompiler) -> None:
    """On GPUs, and where they lie apart."""
    found = command("conv", CASES["depthwise"], float32)
    apart = found._replace(inputs=tuple([x._replace(strides=x.strides[::-1]) for x in found.inputs]))
    for made, refused in ((compiler, found if compiler.grouped else apart), (by_items, apart)):
        with pytest.raises(NotSupportedError):
            made.kernel(arranged(refused))

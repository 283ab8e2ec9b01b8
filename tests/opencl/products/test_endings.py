"""What follows a product, written into its tiles: the bits of the fused nest."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32
from nnc_core.base.layout import Layout
from nnc_core.operator.products.arrange import arranged
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.products.backend import OpenCLProducts
from nnc_opencl.products.kernel import TiledCompiler
from tests.cpu.products.running import same_bits, values
from tests.cpu.products.test_joined import CASES, SHAPE, Around, bias_and_relu, doubles, momentum, residual
from tests.opencl.products.running import SMALL_TILE, check, run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bits_are_those_of_the_fused_nest(device: OpenCLDevice, compiler: TiledCompiler, case: object) -> None:
    assert callable(case)
    command: Command = case()
    if "float64" not in device.spec.dtypes and command == doubles():
        pytest.skip("no float64 here")
    check(device, compiler, command, SMALL_TILE._replace(lanes=8) if case is doubles else SMALL_TILE)


def test_arrays_that_lie_apart(device: OpenCLDevice, compiler: TiledCompiler) -> None:
    p = Around()
    y = p.step("add", p.step("multiply", p.product, p.given(*SHAPE)), p.given(37))
    layouts = {2: Layout(SHAPE, float32, 8, (4, 4 * 9)), 3: Layout((37,), float32, 12, (8,))}
    check(device, compiler, p.command(y, layouts=layouts), SMALL_TILE)


def test_operands_may_be_written_over(device: OpenCLDevice, compiler: TiledCompiler) -> None:
    backend = OpenCLProducts("matmul", compiler)
    assert backend.inplace_of(residual(), 0, ()) == (2,)
    assert backend.inplace_of(bias_and_relu(), 0, ()) == ()
    assert backend.inplace_of(momentum(), 1, ()) == (2, 3)
    command = residual()
    a, b, r = (values(x, seed) for seed, x in enumerate(command.inputs))
    kernel = compiler.kernel(arranged(command), None if compiler.grouped else SMALL_TILE)
    apart = np.zeros(SHAPE, np.float32)
    run(device, kernel, [a, b, r.copy(), apart])
    buffers = [device.allocate(x.nbytes) for x in (a, b, r)]
    for array, buffer in zip((a, b, r), buffers, strict=True):
        device.upload(array, buffer)
    kernel.bind([*buffers, buffers[2]])()
    device.download(buffers[2], r).wait()
    assert same_bits(r.reshape(SHAPE), apart)


def test_what_is_refused(compiler: TiledCompiler) -> None:
    backend = OpenCLProducts("matmul", compiler)
    assert "too small" in (backend.refuse(residual()) or "")
    assert "made for matmul" in (backend.refuse(residual()._replace(name="conv")) or "")

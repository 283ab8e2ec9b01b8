"""Fused commands where nothing is compiled: what their parts give, to the bit, in pieces, broadcast, and in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import bfloat16, float32, float64
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Pattern, Program, Step
from nnc_core.type import TensorSpec
from nnc_cpu import fused
from nnc_cpu.device import CpuDevice
from tests.cpu.harness import bits, garbage, put

PATTERNS = {"fma": fused.MULTIPLY_ADD, "adagrad_update": fused.ADAGRAD}
SHAPES = {"fma": [((7, 5),) * 3, ((7, 5), (5,), ()), ((), (), ()), ((0, 3),) * 3, ((3, fused.PIECE),) * 3],
          "adagrad_update": [((7, 5),) * 3 + ((), ()), ((2, fused.PIECE),) * 3 + ((), ()), ((4,),) * 3 + ((1,), (4,)),
                             ((),) * 5]}
CASES = [(name, shapes) for name, found in SHAPES.items() for shapes in found]


def program_of(pattern: Pattern, arrays: list[Any]) -> Program:
    """The pattern's steps on these arrays."""
    inputs = tuple([TensorSpec(x.shape, x.dtype) for x in arrays])
    steps: list[Step] = []
    for name, operands in pattern:
        program = Program(tuple(steps), inputs, ())
        op = OPERATORS[name]
        steps.append(Step(op, (), operands, op.infer(*[program.spec_of(x) for x in operands])))
    return Program(tuple(steps), inputs, (len(steps) - 1,))


def run(name: str, arrays: list[Any], onto: int | None = None) -> Any:
    device = CpuDevice(machine_code=False)
    layouts = tuple(Layout.packed(x.shape, x.dtype) for x in arrays)
    out = Layout.packed(np.broadcast_shapes(*[x.shape for x in arrays]), arrays[0].dtype)
    command = Command(FUSED.name, (program_of(PATTERNS[name], arrays),), layouts, (out,))
    (backend,) = device.backends(FUSED.name)
    assert backend.refuse(command) is None
    buffers = [garbage(device, max(x.nbytes, 1)) for x in layouts]
    if onto is not None:
        assert onto in backend.inplace(command, FUSED.inplace)
    target = garbage(device, max(out.nbytes, 1)) if onto is None else buffers[onto]
    scratch = backend.workspace(command)
    launch = backend.prepare(command).bind([*buffers, target, *([garbage(device, scratch)] if scratch else [])])
    for x, layout, buffer in zip(arrays, layouts, buffers, strict=True):
        put(device.array(buffer, layout), x)
    launch()
    return np.array(device.array(target, out))


def drawn(shapes: tuple[tuple[int, ...], ...], dtype: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    return [np.asarray(rng.uniform(0.1, 2, shape)).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [float32, float64, bfloat16], ids=str)
@pytest.mark.parametrize(("name", "shapes"), CASES)
def test_equals_its_parts(name: str, shapes: tuple[tuple[int, ...], ...], dtype: Any) -> None:
    arrays = drawn(shapes, dtype)
    assert FUSED.reference is not None
    wanted = FUSED.reference(*arrays, program_of(PATTERNS[name], arrays))
    assert bits(run(name, arrays)) == bits(np.asarray(wanted, dtype))


@pytest.mark.parametrize(("name", "onto"), [("fma", 0), ("fma", 2), ("adagrad_update", 0), ("adagrad_update", 1)])
def test_in_place(name: str, onto: int) -> None:
    arrays = drawn(SHAPES[name][0], float32)
    assert bits(run(name, arrays, onto)) == bits(run(name, arrays))

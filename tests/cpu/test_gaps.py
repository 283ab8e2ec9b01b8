"""Results in the memory of an operand with gaps between their elements: pieces of a concatenation.

NumPy 2.4 negates so wrongly for gaps of some lengths, and writes into the gaps.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import DTypeError
from nnc_core.operator import OPERATORS
from nnc_core.type import Op, TensorSpec
from nnc_cpu.device import CpuDevice
from nnc_cpu.elementwise import FUNCTIONS, INPLACE, UFUNCS
from nnc_plugins.conformance.agreement import assert_agree
from nnc_plugins.conformance.case import draw
from tests.cpu.harness import by_kernel, by_reference

DTYPES = (dt.float16, dt.float32, dt.float64, dt.int32, dt.int64, dt.uint8, dt.boolean, dt.complex64)
NAMES = sorted(name for name in (*UFUNCS, *FUNCTIONS, "relu", "sigmoid") if 0 in INPLACE[name])


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice()


def keeps(op: Op, dtype: DType) -> bool:
    """Whether the result may lie in the memory of such operands."""
    try:
        return bool(op.infer(*[TensorSpec((9, 1), dtype)] * len(op.inputs)).dtype == dtype)
    except DTypeError:
        return False


CASES = [(name, dtype) for name in NAMES for dtype in DTYPES if keeps(OPERATORS[name], dtype)]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=[f"{name}-{dtype}" for name, dtype in CASES])
def test_in_place_with_gaps(device: CpuDevice, name: str, dtype: DType) -> None:
    op, rng = OPERATORS[name], np.random.default_rng(0)
    for step in (2, 3, 4, 5, 8, 16):
        given = [draw(rng, dtype, (9, step), 0.1, 2)[:, -1:] for _ in op.inputs]
        wanted = by_reference(name, given, ())
        found = by_kernel(device, name, given, (), out=lambda _, x=given[0]: device.layout_of(x), onto=0)
        assert_agree(op, found, wanted, f"every {step}th")


def test_pieces_of_a_concatenation_are_negated() -> None:
    x = nnc.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.concat([x[:, :3], -(x[:, 2:3] - x[:, 3:])], axis=1)

    for dtype in ("float32", "float64", "int32", "int64"):
        y = x.astype(dtype)
        assert nnc.jit(f)(y).tolist() == f(y).tolist()

"""exp of weights against NumPy's, with more digits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from nnc_core.base.dtype import DType, float32, float64
from nnc_cpu.attention.exponential import exponential
from nnc_cpu.llvm.compiler import HostCompiler
from nnc_cpu.llvm.ir import FunctionWriter, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.products.writing import function_text, loaded, moved, parameters, store
from tests.cpu.machine_code.running import HOSTS

SIGNATURE = (("x", "ptr"), ("y", "ptr"), ("count", "i64"))


def exps(x: np.ndarray, dtype: DType, above: bool) -> np.ndarray:
    """Computed four at a time."""
    declared: dict[str, None] = {}
    f = FunctionWriter(declared)
    source, target, count = parameters(SIGNATURE)
    with f.loop(integer(0), count, 4) as n:
        value = loaded(f, moved(f, source, held(dtype), n), held(dtype), 4, dtype.itemsize, None)
        store(f, exponential(f, value, dtype, above), moved(f, target, held(dtype), n), dtype.itemsize, None)
    text = function_text(f, "exps", SIGNATURE, linkage="")
    machine = HostCompiler(HOSTS["here"])
    module = machine.load([machine.compile("\n".join([*declared, text]))], ["exps"])
    x, y = np.ascontiguousarray(x, dtype), np.zeros(len(x), dtype)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(module.addresses["exps"])
    run(x.ctypes.data, y.ctypes.data, len(x))
    return y


@pytest.mark.parametrize("dtype", [float32, float64])
def test_close_to_exp(dtype: DType) -> None:
    """Near 0 to 1.5 units in the last place; further below by as much more as the argument's rounding makes."""
    x = -np.geomspace(1e-9, 80, 40000).astype(dtype)
    wanted = np.exp(x.astype(np.longdouble))
    units = np.abs(exps(x, dtype, False) - wanted) / (wanted * np.finfo(dtype).eps)
    assert (units <= 1.5 + np.abs(x) / 8).all()


@pytest.mark.parametrize("dtype", [float32, float64])
def test_ends(dtype: DType) -> None:
    low, high = (88, 88) if dtype == float32 else (709, 709)
    x = np.array([0.0, -0.0, -np.inf, np.nan, -low - 50.0, -1e30, high + 50.0, np.inf])
    found = exps(x, dtype, True)
    np.testing.assert_array_equal(found[:6], [1, 1, 0, np.nan, 0, 0])
    assert (found[6:] > np.finfo(dtype).max / 10).all()
